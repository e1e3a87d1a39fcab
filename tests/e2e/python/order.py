# SPDX-License-Identifier: Apache-2.0
"""Python, qsort of the C library, Python, sorted() of the interpreter, Python: five times in and
out of native code."""
import ctypes
import sys
import time

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def spin(x):
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    return 0


def inner(a, b):
    sorted([1], key=spin)
    return 0


def outer(x):
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, COMPARE(inner))
    return x


def main():
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        sorted([1], key=outer)


main()
