# SPDX-License-Identifier: Apache-2.0
"""Threads that stand where they are, and what Python itself says their stacks are.

Runs on every Python from 3.6 on, with the standard library alone. `python threads.py FILE` writes
{tid: [[file, line, function], ...]}, leaf first, and stays."""
import asyncio
import ctypes
import json
import os
import sys
import threading
import time

libc = ctypes.CDLL(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
tids = {}


def stay():
    tids[threading.get_ident()] = libc.syscall(186)
    time.sleep(1000)


def recursion(n):
    return recursion(n - 1) if n else stay()


def deep():
    recursion(900)


class Scene:
    def __lt__(self, other):
        [stay() for _ in range(1)]

    def method(self):
        sorted([self, self])


def callback():
    numbers = (ctypes.c_int * 4)(3, 1, 2, 0)
    libc.qsort(numbers, 4, 4, COMPARE(lambda a, b: Scene().method() or 0))


def generator(n):
    if n:
        yield from generator(n - 1)
    stay()
    yield n


def generators():
    sum(generator(5))


async def coroutine(n):
    await (coroutine(n - 1) if n else asyncio.sleep(0))
    stay()


def tasks():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(coroutine(4))


def naïve_名前():
    exec(compile("\n" * 70000 + "def made():\n  stay()\nmade()", "a file.py", "exec"), globals())


def handler():
    try:
        raise KeyError
    except KeyError:
        try:
            stay()
        finally:
            pass


def runs():
    tids[threading.get_ident()] = libc.syscall(186)
    while True: pass


def report():
    while len(tids) < len(started) + 1:
        time.sleep(0.01)
    time.sleep(0.2)
    stacks = {}
    for ident, frame in sys._current_frames().items():
        stack = []
        while frame:
            stack.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
            frame = frame.f_back
        if ident in tids:
            stacks[tids[ident]] = stack
    with open(sys.argv[1] + ".new", "w") as f:
        json.dump(stacks, f)
    os.rename(sys.argv[1] + ".new", sys.argv[1])


started = [threading.Thread(target=f, daemon=True)
           for f in (lambda: recursion(3), deep, callback, generators, tasks, naïve_名前, handler,
                     runs)]
for t in started:
    t.start()
threading.Thread(target=report, daemon=True).start()
stay()
