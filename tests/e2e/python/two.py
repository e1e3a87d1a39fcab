# SPDX-License-Identifier: Apache-2.0
"""two.py LIBPYTHON CPU_SECONDS: another interpreter's library in this process, called by this one's
functions."""
import ctypes
import os
import sys

# RTLD_DEEPBIND: the library takes its own symbols, and not those of the program's interpreter.
lib = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
lib.Py_InitializeEx(0)
INNER = b"""
import time

def inner_spin(end):
    while time.process_time() < end:
        pass

def inner_main(seconds):
    inner_spin(time.process_time() + seconds)

inner_main(%s)
"""


def outer_call():
    return lib.PyRun_SimpleString(INNER % sys.argv[2].encode())


def outer_main():
    if outer_call():
        sys.exit("the other interpreter failed")


outer_main()
