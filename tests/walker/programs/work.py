# SPDX-License-Identifier: Apache-2.0
import re


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def thrower(d):
    if not d:
        raise ValueError("the end")
    return thrower(d - 1) + 1


total = 0
while True:
    h = {i * 7919 % 1009: f"x{i}" for i in range(40)}
    v = sorted(h, key=lambda k: h[k])
    try:
        thrower(5)
    except ValueError as e:
        total += len(str(e))
    total += sum(fib(i) for i in range(5)) + len(re.sub(r"(\d)(\d)", lambda m: m[2] + m[1], str(v)))
