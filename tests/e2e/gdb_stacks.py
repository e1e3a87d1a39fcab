# SPDX-License-Identifier: Apache-2.0
"""Run by gdb: prints the pcs of every thread's frames, without inlined frames and those that gdb
infers from tail calls. It reads orders from standard input, one per line: `attach PID`, `core
PROGRAM CORE` or `here`. It answers each with a mark and a line of JSON, so that one gdb serves many
stops."""
import json
import os
import sys

import gdb

gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("set exec-file-mismatch off")
gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")


WORD, ENTRY_AT = 8, 24  # of a 64-bit ELF header: e_entry
AT_BASE = 7
# The code at ld.so's entry ends with the jump to the program. A function with call frame
# information follows.
ENTRY_BYTES = 64


def loaders_entry():
    """The address where ld.so begins; 0: the process has no ld.so. There is no call frame
    information there, so gdb would take argc and the arguments for return addresses."""
    inferior = gdb.selected_inferior()
    with open(f"/proc/{inferior.pid}/auxv", "rb") as f:
        words = memoryview(f.read()).cast("Q").tolist()
    base = dict(zip(words[::2], words[1::2])).get(AT_BASE)
    if not base:
        return 0
    return base + int.from_bytes(inferior.read_memory(base + ENTRY_AT, WORD), "little")


def stacks(begins=0):
    """begins: the address where ld.so begins; a frame there has no caller."""
    found = {}
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame, pcs = gdb.newest_frame(), []
        while frame is not None:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                pcs.append(frame.pc())
            if begins <= frame.pc() < begins + ENTRY_BYTES:
                break
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
            # Another program than before: no symbol of the old one may stay.
            program = os.stat(f"/proc/{words[0]}/exe")
            if known != (program.st_dev, program.st_ino):
                gdb.execute("file", to_string=True)
                known = program.st_dev, program.st_ino
            gdb.execute(f"attach {words[0]}", to_string=True)
        elif order == "core":
            gdb.execute(f"file {words[0]}", to_string=True)
            gdb.execute(f"core-file {words[1]}", to_string=True)
        answer = stacks(loaders_entry() if order == "attach" else 0)
        if order != "here":
            gdb.execute("detach" if order == "attach" else "core-file", to_string=True)
    except (gdb.error, OSError) as e:
        answer = {"error": str(e)}
    sys.stdout.write(f"STACKS{json.dumps(answer)}\n")
    sys.stdout.flush()
