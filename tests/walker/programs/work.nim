# SPDX-License-Identifier: Apache-2.0
# Closures, exceptions, tables, iterators.
import std/[algorithm, strutils, tables]

proc fib(n: int): int = (if n < 2: n else: fib(n - 1) + fib(n - 2))
proc thrower(depth: int): int =
  if depth == 0: raise newException(ValueError, "the end")
  thrower(depth - 1) + 1

var sum = 0
for round in 0 ..< 1_000_000_000:
  var t = initTable[int, string]()
  for i in 0 ..< 40: t[i] = $i & "x"
  var v: seq[int]
  for i in 0 ..< 60: v.add(i * 7919 mod 1009)
  v.sort(proc(a, b: int): int = cmp(b, a))
  try: discard thrower(6)
  except ValueError as e: sum += e.msg.len
  sum += fib(9) + t.len + v[3] + join(["a", "b"], ",").len
echo sum
