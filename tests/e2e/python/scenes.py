# SPDX-License-Identifier: Apache-2.0
"""Scenes, the kinds of stack that Python has: each burns cpu in spin_NAME, and records its stack by
Python's own traceback.

Runs on every Python from 3.6 on, with the standard library alone. `python scenes.py SECONDS FILE`
burns so much in each scene, and writes [{"scene", "stack": [[file, line, function], ...]}, ...],
root first, without spin_NAME itself."""
import asyncio
import ctypes
import functools
import json
import operator
import sys
import threading
import time
import traceback

SECONDS = float(sys.argv[1])
scenes, kept = [], []


def make_spin(name):
    """Makes a spin function with a name of its own for each scene, so that its frame identifies the
    scene."""
    source = """
def spin_%s():
    stack = [[f.filename, f.lineno, f.name] for f in traceback.extract_stack()[:-1]]
    scenes.append({"scene": "%s", "stack": stack})
    end = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + SECONDS
    while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:
        pass
""" % (name, name)
    exec(compile(source, "spin.py", "exec"), globals())
    return globals()["spin_" + name]


class Scene:
    def __init__(self, name):
        self.spin = make_spin(name)

    def method(self):
        self.spin()

    @classmethod
    def of_class(cls):
        cls("classmethod").method()

    @staticmethod
    def of_nothing(spin):
        spin()

    @property
    def attribute(self):
        self.spin()
        return 1

    def __lt__(self, other):
        self.spin()
        return False

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.spin()

    def __iter__(self):
        self.spin()
        yield 1

    def __del__(self):
        if self.spin.__name__ == "spin_finalizer":
            self.spin()

    def __call__(self, x):
        self.spin()
        return x

    def __getattr__(self, name):
        if name == "dynamic":
            self.spin()
        raise AttributeError(name)


def recurse(n, spin):
    if n == 0:
        spin()
        return 0
    return recurse(n - 1, spin) + 1


def even(n, spin):
    return odd(n - 1, spin) if n else spin()


def odd(n, spin):
    return even(n - 1, spin)


def closure():
    spin = make_spin("closure")

    def inner():
        def innermost():
            spin()
        innermost()
    inner()


def decorated(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper


@decorated
def comprehensions():
    spin = make_spin("comprehension")
    [spin() for _ in range(1)]
    spin = make_spin("set_comprehension")
    {spin() for _ in range(1)}
    spin = make_spin("generator_expression")
    sum(1 for _ in range(1) if not spin())


def generator(spin):
    yield 1
    spin()
    yield 2


def delegating(spin):
    yield from generator(spin)


def throwing(spin):
    try:
        yield 1
    except ValueError:
        spin()
    yield 2


async def leaf_task(spin):
    await asyncio.sleep(0)
    spin()


async def gathered(spin):
    await asyncio.gather(leaf_task(spin), asyncio.sleep(0))


async def chained(spin):
    await leaf_task(spin)


async def aiter(spin):
    yield 1
    spin()
    yield 2


async def awaits():
    await chained(make_spin("coroutine"))
    await gathered(make_spin("task"))
    spin = make_spin("async_generator")
    async for _ in aiter(spin):
        pass
    spin = make_spin("call_soon")
    asyncio.get_event_loop().call_soon(spin)
    await asyncio.sleep(0)
    spin = make_spin("executor")
    await asyncio.get_event_loop().run_in_executor(None, spin)


def run(coroutine):
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


def callbacks():
    spin = make_spin("sorted_key")
    sorted([1], key=lambda x: spin() or x)
    sorted([Scene("less_than"), Scene("unused")])
    spin = make_spin("map")
    list(map(lambda x: spin(), [1]))
    spin = make_spin("reduce")
    functools.reduce(lambda a, b: spin(), [1, 2])
    spin = make_spin("ctypes")
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    done = []

    def once(a, b):
        if not done:
            done.append(1)
            spin()
        return 0
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, compare(once))
    operator.methodcaller("method")(Scene("methodcaller"))
    Scene("property").attribute
    with Scene("exit"):
        pass
    list(Scene("iter"))
    list(map(Scene("call"), [1]))
    hasattr(Scene("getattr"), "dynamic")
    functools.partial(Scene.of_nothing, make_spin("partial"))()
    Scene("finalizer")


def exceptions():
    try:
        raise KeyError
    except KeyError:
        make_spin("handler")()
    finally:
        make_spin("finally")()
    spin = make_spin("raised_through")
    try:
        try:
            spin()
            recurse(3, lambda: 1 / 0)
        finally:
            pass
    except ZeroDivisionError:
        pass
    g = throwing(make_spin("throw"))
    next(g)
    g.throw(ValueError)


def long_lines(spin):
    spin(
    ) or (
        0)


# A line far from its function's first, over a jump of more than 255 lines.
exec(
        compile("def far(spin):\n    x = 1\n" + "\n" * 400 + "    x = (x,\n" + "\n" * 300
                + "         spin())\n", "far.py", "exec"))


def main():
    Scene("method").method()
    Scene.of_class()
    recurse(20, make_spin("recursion"))
    even(20, make_spin("mutual_recursion"))
    closure()
    comprehensions()
    list(generator(make_spin("generator")))
    list(delegating(make_spin("yield_from")))
    run(awaits())
    callbacks()
    exceptions()
    long_lines(make_spin("several_lines"))
    far(make_spin("far_lines"))
    # Kept until the end: names are read a moment after the sample.
    kept.append(compile("(lambda: spin())()", "<string>", "eval"))
    eval(kept[-1], {"spin": make_spin("eval")})
    kept.append(compile("class Body:\n    spin()\n", "<string>", "exec"))
    exec(kept[-1], {"spin": make_spin("class_body")})
    thread = threading.Thread(target=make_spin("thread"))
    thread.start()
    thread.join()
    pair = [threading.Thread(target=make_spin(n)) for n in ("thread_a", "thread_b")]
    for t in pair:
        t.start()
    for t in pair:
        t.join()
    sys.setrecursionlimit(3000)
    recurse(900, make_spin("deep"))


main()
with open(sys.argv[2], "w") as f:
    json.dump(scenes, f)
