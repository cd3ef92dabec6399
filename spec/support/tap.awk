# tap.awk - count the results of a program that speaks TAP.
#
# Prints "PASSED FAILED SKIPPED" and writes what a person should read of it to the file `report`:
# failures with their diagnostics and the command to run them again, skips with their reasons.
# `rc` is the program's status: one that failed in no test, or ran none, is itself a failure.

function told(text) { details = details text "\n" }

# The diagnostics that follow a failure; cmocka's and busted's begin with "# ".
function flush() {
  if (failing != "") {
    told("FAILED " part ": " failing)
    if (length(diagnostics) > 4000) diagnostics = substr(diagnostics, 1, 4000) " ...\n"
    details = details diagnostics
    told("  again: ./dev test " part ":" name)
  }
  failing = diagnostics = ""
}

/^1\.\./ { next }

/^(not )?ok .*# SKIP/ {
  flush()
  skipped++
  reason = $0
  sub(/.*# SKIP */, "", reason)
  told("skipped " part ": " reason (before != "" ? " (" before ")" : ""))
  before = ""
  next
}

/^ok / {
  flush()
  passed++
  before = ""
  next
}

/^not ok / {
  flush()
  failed++
  failing = $0
  sub(/^not ok [0-9]* *-? */, "", failing)
  if (before != "") diagnostics = "  " before "\n"
  before = ""
  next
}

/^# / && failing != "" {
  diagnostics = diagnostics "  " substr($0, 3) "\n"
  next
}

# What a test printed before its result: cmocka gives a skip's reason so.
!/^#/ && NF { before = $0 }

{ last[NR % 20] = $0 }

END {
  flush()
  if ((rc != 0 && failed == 0) || passed + failed + skipped == 0) {
    failed++
    why = rc != 0 ? "ended with status " rc : "ran no test"
    if (rc == 124 || rc == 137) why = "hangs (stopped after 600 s)"
    told("FAILED " part ": " name ": " why)
    for (i = NR - 19; i <= NR; i++) if (i > 0 && (i % 20) in last) told("  " last[i % 20])
    told("  again: ./dev test " part ":" name)
  }
  printf "%s", details > report
  print passed + 0, failed + 0, skipped + 0
}
