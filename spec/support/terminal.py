"""terminal.py - talk to a program at a terminal: terminal.py STEPS.json COMMAND...

Steps, in order: {"send": TEXT} types, {"expect": REGEX} waits until it is seen after what was seen
before, {"end": true} waits for the end, {"press": TEXT} types again and again until then.
What is not seen in a minute is an error that shows what was.
"""
import json
import os
import pty
import re
import select
import sys
import time

steps, command = json.load(open(sys.argv[1])), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm", LANG="C.UTF-8", LC_ALL="C.UTF-8", COLUMNS="80")
    os.execvp(command[0], command)

shown, at = "", 0


def read(seconds):
    global shown
    ready, _, _ = select.select([fd], [], [], seconds)
    if not ready:
        return True
    try:
        piece = os.read(fd, 65536)
    except OSError:
        return False
    shown += piece.decode("utf-8", "replace")
    return bool(piece)


def give_up(what):
    os.kill(pid, 9)
    print(shown)
    raise SystemExit(what)


for step in steps:
    (kind, what), = step.items()
    deadline = time.monotonic() + 60
    if kind == "send":
        os.write(fd, what.encode())
    elif kind == "expect":
        while not (found := re.search(what, shown[at:], re.DOTALL)):
            if time.monotonic() > deadline or not read(1):
                give_up("not seen: " + what)
        at += found.end()
    elif kind == "press":
        while read(0.2):
            if time.monotonic() > deadline:
                give_up("it does not end")
            try:
                os.write(fd, what.encode())
            except OSError:
                break
    elif kind == "end":
        while read(1):
            if time.monotonic() > deadline:
                give_up("it does not end")
_, status = os.waitpid(pid, 0)
print(shown)
print("-- status %d" % (os.waitstatus_to_exitcode(status)))
