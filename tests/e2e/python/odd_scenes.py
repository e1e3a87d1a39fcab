# SPDX-License-Identifier: Apache-2.0
"""Scenes (see scenes.py) where a thread's state is unusual: forked children, subinterpreters,
released locks, profilers, the end of the interpreter.

As scenes.py, `python odd_scenes.py SECONDS FILE`; FILE has one scene per line, since several
interpreters and processes write it."""
import sys

SPIN = """
import json, os, sys, time, traceback, zlib

def note(name):
    stack = [[f.filename, f.lineno, f.name] for f in traceback.extract_stack()[:-2]]
    f = os.open(%(file)r, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    # open() needs parts of the interpreter that are gone at its end.
    os.write(f, (json.dumps({"scene": name, "stack": stack}) + "\\n").encode())
    os.close(f)

def make_spin(name, how="    pass"):
    source = '''
def spin_NAME(*args):
    note("NAME")
    end = time.monotonic() + %(seconds)r
    while time.monotonic() < end:
    HOW
'''.replace("NAME", name).replace("HOW", how)
    names = {"note": note, "time": time, "zlib": zlib}
    exec(compile(source, "spin.py", "exec"), names)
    return names["spin_" + name]
""" % {"seconds": float(sys.argv[1]), "file": sys.argv[2]}
exec(compile(SPIN, "spin.py", "exec"))
import asyncio
import atexit
import multiprocessing
import signal
import threading

DATA = os.urandom(1 << 20)


def in_threads():
    """Without the GIL for most of the time, while others run Python."""
    def compress():
        make_spin("no_gil", "    zlib.compress(args[0])")(DATA)
    stop = []

    def other():
        make_spin("beside")()
        while not stop:
            pass
    threads = [threading.Thread(target=t) for t in (compress, other)]
    for t in threads:
        t.start()
    threads[0].join()
    stop.append(1)
    threads[1].join()


def forked():
    child = os.fork()
    if child == 0:
        make_spin("forked")()
        grandchild = os.fork()
        if grandchild == 0:
            make_spin("grandchild")()
            os._exit(0)
        os.waitpid(grandchild, 0)
        os._exit(0)
    os.waitpid(child, 0)

    def in_thread():
        child = os.fork()
        if child == 0:
            make_spin("forked_in_thread")()
            os._exit(0)
        os.waitpid(child, 0)
    t = threading.Thread(target=in_thread)
    t.start()
    t.join()
    context = multiprocessing.get_context("fork")
    p = context.Process(target=make_spin("multiprocessing"))
    p.start()
    p.join()


def handler(number, frame):
    signal.setitimer(signal.ITIMER_REAL, 0)
    make_spin("signal")()


def signals():
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass


def traced(frame, event, arg):
    if frame.f_code.co_name == "watched" and event == "call":
        make_spin("tracer")()
    return traced


def profiled(frame, event, arg):
    if event == "c_return" and frame.f_code.co_name == "watched":
        make_spin("profiler")()


def watched():
    return len([])


def tracers():
    sys.settrace(traced)
    try:
        watched()
    finally:
        sys.settrace(None)
    sys.setprofile(profiled)
    try:
        watched()
    finally:
        sys.setprofile(None)
    if hasattr(sys, "monitoring"):
        m = sys.monitoring
        m.use_tool_id(1, "odd")
        def started(code, at):
            return make_spin("monitoring")() if code is watched.__code__ else None
        m.register_callback(1, m.events.PY_START, started)
        m.set_events(1, m.events.PY_START)
        watched()
        m.set_events(1, 0)


def recurse(n, spin):
    if n == 0:
        return spin()
    return recurse(n - 1, spin)


def subinterpreter():
    for name in ("_xxsubinterpreters", "_interpreters"):
        try:
            interpreters = __import__(name)
        except ImportError:
            continue
        source = (SPIN + "\ndef inside(n):\n    if n:\n        return inside(n - 1)\n"
                  "    make_spin('subinterpreter')()\ninside(4)\n")
        one = interpreters.create()
        interpreters.run_string(one, source)
        interpreters.destroy(one)
        one = interpreters.create()
        t = threading.Thread(target=interpreters.run_string,
                             args=(one, source.replace("subinterpreter", "subinterpreter_thread")))
        t.start()
        t.join()
        return


async def nested():
    loop = asyncio.new_event_loop()

    async def inner():
        make_spin("inner_loop")()
    asyncio._set_running_loop(None)
    loop.run_until_complete(inner())
    loop.close()


class Last:
    def __del__(self, spin=make_spin("finalization")):
        spin()


def contexts():
    try:
        import contextvars
    except ImportError:
        return
    contextvars.copy_context().run(make_spin("context"))


def main():
    in_threads()
    signals()
    tracers()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(nested())
    contexts()
    sys.setrecursionlimit(9000)
    threading.stack_size(256 << 20)
    t = threading.Thread(target=recurse, args=(1000, make_spin("thousand")))
    t.start()
    t.join()
    subinterpreter()
    forked()
    atexit.register(make_spin("atexit"))
    daemon = threading.Thread(target=make_spin("daemon"), daemon=True)
    daemon.start()
    sys.modules["last"] = Last()


main()
