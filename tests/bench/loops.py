# SPDX-License-Identifier: Apache-2.0
"""The Python programs that the bench profiles; the first argument selects one. They read commands
from standard input, and answer each with a line."""
import json
import random
import re
import sys
import time


# --- loops like those of benchmarks for interpreters: a call is a unit of work ---


def nbody():
    """Planets: arithmetic on floats, attributes and lists."""
    bodies = [([random.random() for _ in range(3)], [0.0, 0.0, 0.0], random.random())
              for _ in range(5)]
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1:]]
    while True:
        for _ in range(40):
            for ((x1, y1, z1), v1, m1), ((x2, y2, z2), v2, m2) in pairs:
                dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
                mag = 0.01 / (dx * dx + dy * dy + dz * dz + 0.1) ** 1.5
                for v, m, sign in ((v1, m2, -1), (v2, m1, 1)):
                    v[0] += sign * dx * m * mag
                    v[1] += sign * dy * m * mag
                    v[2] += sign * dz * m * mag
            for r, v, _ in bodies:
                for k in range(3):
                    r[k] += 0.01 * v[k]
        yield


class Packet:
    def __init__(self, kind, value):
        self.kind, self.value, self.next = kind, value, None


class Task:
    def __init__(self, name):
        self.name, self.queue, self.done = name, None, 0

    def put(self, packet):
        packet.next, self.queue = self.queue, packet

    def take(self):
        packet = self.queue
        if packet is not None:
            self.queue = packet.next
        return packet

    def step(self, all_of):
        packet = self.take()
        if packet is not None:
            self.handle(packet, all_of)
        return packet is not None


class Worker(Task):
    def handle(self, packet, all_of):
        self.done += packet.value & 7
        packet.value = (packet.value * 1103515245 + 12345) & 0x7fffffff
        all_of[packet.value % len(all_of)].put(packet)


class Device(Task):
    def handle(self, packet, all_of):
        self.done += 1
        all_of[self.done % len(all_of)].put(packet)


def objects():
    """A scheduler of tasks that hand packets to each other: method calls and attributes."""
    tasks = [(Worker if i % 2 else Device)(f"task{i}") for i in range(6)]
    for i in range(40):
        tasks[i % 6].put(Packet(i & 3, i))
    while True:
        for _ in range(60):
            for t in tasks:
                t.step(tasks)
        yield


def documents():
    """Encodes and decodes JSON: C code that Python calls."""
    data = {f"key{i}": [i, i * 0.5, str(i), None, {"inner": list(range(10))}] for i in range(20)}
    while True:
        assert json.loads(json.dumps(data)) == data
        yield


def patterns():
    """Regular expressions over text, with a function for each match."""
    text = " ".join(f"user{i}@host{i % 17}.example.org 2024-0{i % 9 + 1}-1{i % 10} {i * 7919}"
                    for i in range(60))
    mail, date = re.compile(r"(\w+)@(\w+)\.example\.(org|com)"), re.compile(
            r"(\d{4})-(\d\d)-(\d\d)")
    while True:
        mail.sub(lambda m: m[2] + "/" + m[1], text)
        sum(int(d[1]) for d in date.findall(text))
        yield


def pipeline():
    """Generators that feed each other."""
    def numbers(n):
        yield from range(n)

    def evens(it):
        for x in it:
            if x % 2 == 0:
                yield x

    def squares(it):
        for x in it:
            yield x * x
    while True:
        sum(x for x in squares(evens(numbers(2000))))
        yield


def pages():
    """The work of a web application for a request: a route, a query, a template, headers."""
    routes = [(re.compile(p), f) for p, f in (
        (r"/static/(.+)", lambda m: m[1]),
        (r"/user/(\d+)", lambda m: show(int(m[1]))),
        (r"/list/(\d+)", lambda m: listing(int(m[1]))))]
    users = {i: {"id": i, "name": f"user {i}", "tags": [f"t{i % 7}", f"t{i % 11}"]}
             for i in range(500)}

    def show(i):
        return json.dumps(users[i % 500])

    def listing(n):
        rows = sorted((u for u in users.values() if u["id"] % 7 == n % 7), key=lambda u: u["name"])
        return "".join("<tr><td>{id}</td><td>{name}</td></tr>".format(**u) for u in rows)

    def answer(path):
        for route, handler in routes:
            m = route.fullmatch(path)
            if m:
                body = handler(m)
                return 200, {"Content-Length": str(len(body)), "Content-Type": "text/html"}, body
        return 404, {}, ""
    n = 0
    while True:
        n += 1
        assert answer(f"/user/{n}")[0] == answer(f"/list/{n}")[0] == 200
        yield


LOOPS = (nbody, objects, documents, patterns, pipeline)


def work(name):
    """Runs as many units as the command says, and prints how many seconds of cpu time and of real
    time that took."""
    loop = globals()[name]()
    for line in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(int(line)):
            next(loop)
        print(time.process_time() - cpu, time.perf_counter() - wall, flush=True)


# --- stacks ---


def spin(seconds):
    end = time.perf_counter() + seconds if seconds else float("inf")
    while time.perf_counter() < end:
        for _ in range(1000):
            pass


def recursion(n):
    return recursion(n - 1) if n else spin(0)


CALLER = """
def {prefix}_{i}(seconds, options=None):
    if options is None:
        options = {{"depth": {i}, "name": "{prefix}"}}
    total = 0
    for key in options:
        total += len(key)
    if total < 0:
        raise ValueError(f"{{total}} of {prefix}")
    try:
        return {callee}(seconds)
    finally:
        total -= 1
"""


def chain(depth, prefix="step", file="chain.py"):
    """Makes `count` different functions in one file, each of which calls the next; the last one
    spins. Returns the first."""
    space = {"spin": spin}
    source = "".join(CALLER.format(prefix=prefix, i=i,
                                   callee=f"{prefix}_{i + 1}" if i + 1 < depth else "spin")
                     for i in range(depth))
    exec(compile(source, file, "exec"), space)
    return space[f"{prefix}_0"]


def depth(kind, frames):
    """Keeps a stack of this depth forever, of one function or of as many as the depth."""
    n = int(frames)
    sys.setrecursionlimit(10000)
    print("begun", flush=True)
    # The module, this function and spin() are also frames.
    if kind == "recursion":
        recursion(n - 4)
    else:
        chain(n - 3)(0)


def functions(count, depth, seconds):
    """At each command, each of `count` functions is on a stack for `seconds`; before the first
    command, a few other functions are. `depth` is the depth of the stacks."""
    count, depth, seconds = int(count), int(depth), float(seconds)
    chains = [chain(depth)] * 40
    for line in sys.stdin:
        if line.strip() == "make":
            chains = [chain(depth, f"handler{i}", f"/srv/application/package{i % 10}/module{i}.py")
                      for i in range(count // depth)]
        for c in chains:
            c(seconds)
        print("done", flush=True)


globals()[sys.argv[1]](*sys.argv[2:])
