-- dev: local investigation, the default.
return {
  summary = "local investigation: 999 Hz, 32 KiB of each stack",
  -- Not a round number, so that samples do not beat with the program's own timers.
  rate = 999,
  stack_bytes = 32768,
}
