# SPDX-License-Identifier: Apache-2.0
# Run by gdb: the pcs of every thread's frames, inlined ones and those that gdb infers from tail calls left out, as JSON between two marks.
import json

import gdb

gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
stacks = {}
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
    stacks[thread.ptid[1]] = pcs
print("STACKS" + json.dumps(stacks) + "STACKS")
