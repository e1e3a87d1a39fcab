"""Work that CPython's JIT compiles into traces: traces.py SECONDS. Prints how often a trace ran
it."""
import sys
import time


class Point:
    def __init__(self, x):
        self.x = x

    def moved(self, by):
        return self.x + by


def add(n):
    s = 0
    for i in range(n):
        s += i & 3
    return s


def call(n):
    p, t = Point(3), 0
    for i in range(n):
        t += p.moved(i)
    return t


def build(n):
    made = []
    for i in range(n):
        made.append((i, str(i)))
    return made


def count(n):
    seen = {}
    for i in range(n):
        seen[i % 17] = seen.get(i % 17, 0) + 1.5
    return seen


def catch(n):
    t = 0
    for i in range(n):
        try:
            if i % 5 == 0:
                raise ValueError
            t += 1
        except ValueError:
            t += 2
    return t


def numbers(n):
    for i in range(n):
        yield i * 2


def generate(n):
    return sum(x for x in numbers(n))


def order(n):
    return sorted(range(n), key=lambda v: add(v % 50))


def recurse(n):
    return recurse(n - 1) + add(50) if n > 0 else 0


def ask(n):
    t = 0
    for i in range(n):
        t += sys._jit.is_active()
    return t


active, end = 0, time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    for work in add, call, build, count, catch, generate, order:
        work(2000)
    recurse(60)
    active += ask(2000)
print(active)
