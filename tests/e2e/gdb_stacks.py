# SPDX-License-Identifier: Apache-2.0
"""Run by gdb: the pcs of every thread's frames, without inlined ones and those that gdb infers from
tail calls. It reads orders from standard input, `attach PID`, `core PROGRAM CORE` or `here`, one a
line, and answers each with a line of JSON behind a mark, so that one gdb serves many stops."""
import json
import os
import sys

import gdb

gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set exec-file-mismatch off")
gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")


def stacks():
    found = {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame, pcs = gdb.newest_frame(), []
        while frame is not None:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                pcs.append(frame.pc())
            try:
                frame = frame.older()
            except gdb.error:
                break
        found[thread.ptid[1]] = pcs
    return found


known = None
for line in sys.stdin:
    order, *words = line.rstrip("\n").split("\t")
    try:
        if order == "attach":
            # Another program than before: nothing of the old one's symbols may stay.
            program = os.stat(f"/proc/{words[0]}/exe")
            if known != (program.st_dev, program.st_ino):
                gdb.execute("file", to_string=True)
                known = program.st_dev, program.st_ino
            gdb.execute(f"attach {words[0]}", to_string=True)
        elif order == "core":
            gdb.execute(f"file {words[0]}", to_string=True)
            gdb.execute(f"core-file {words[1]}", to_string=True)
        answer = stacks()
        if order != "here":
            gdb.execute("detach" if order == "attach" else "core-file", to_string=True)
    except (gdb.error, OSError) as e:
        answer = {"error": str(e)}
    sys.stdout.write(f"STACKS{json.dumps(answer)}\n")
    sys.stdout.flush()
