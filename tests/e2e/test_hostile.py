# SPDX-License-Identifier: Apache-2.0
"""Programs that do their worst to who profiles them, and a prof-symd that does: what they harm is their own."""
import collections

from conftest import profpipe
from test_python import interpreted

# A frame whose code object lies in memory that whoever reads it waits for, for ever: the kernel for another process, too.
TAR_PIT = """
import ctypes, fcntl, struct, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
fd = libc.syscall(323, 0o2000000)
assert fd >= 0
fcntl.ioctl(fd, 0xC018AA3F, struct.pack("QQQ", 0xAA, 0, 0))
region = libc.mmap(None, ctypes.c_size_t(65536), 3, 0x22, -1, ctypes.c_long(0))
fcntl.ioctl(fd, 0xC020AA00, struct.pack("QQQQ", region, 65536, 1, 0))
def victim():
    frame = sys._getframe()
    # The interpreter frame, to which a frame object of 3.11 points at 24; the code at 32 and the previous one at 48 of it.
    words = (ctypes.c_uint64 * 9).from_address(ctypes.c_uint64.from_address(id(frame) + 24).value)
    fake = (ctypes.c_uint64 * 9)(*(ctypes.c_uint64 * 9).from_address(words[6]))
    fake[4] = region + 4096
    was, words[6] = words[6], ctypes.addressof(fake)
    end = time.monotonic() + 2.5
    while time.monotonic() < end: pass
    words[6] = was
victim()
"""
# Another function each moment.
NEIGHBOUR = """
import time
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
kept = []
for i in range(26):
    kept.append(compile(f"def function_{i}(): spin(0.1)\\nfunction_{i}()", "neighbour.py", "exec"))
    exec(kept[i])
"""


def test_memory_that_hangs_its_reader_costs_nobody_else_a_name(tmp_path):
    (tmp_path / "hostile.py").write_text(TAR_PIT)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 199, "-o", out, "--", "sh", "-c", '/usr/bin/python3 "$0" & pit=$!; /usr/bin/python3 "$1"; wait $pit',
                 tmp_path / "hostile.py", tmp_path / "neighbour.py", timeout=60)
    assert p.returncode == 0, p.stderr
    names = collections.Counter(stack[-1][0] for stack in interpreted(out))
    print(names.most_common(8))
    # Its own are lost: it is not read again while it hangs.
    assert not names["hostile.victim"] and names["[python: gone]"] + names["[python: memory not read]"] > 5
    mine = [stack for stack in interpreted(out) if stack[-1][0] == "neighbour.spin"]
    named = [stack for stack in mine if not any(name.startswith("[python") for name, _, _ in stack)]
    print(len(mine), len(named), len({stack[-2] for stack in named}))
    assert len(mine) > 20 and len(named) >= 0.9 * len(mine) and len({stack[-2] for stack in named}) > 10
