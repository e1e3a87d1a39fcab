// SPDX-License-Identifier: Apache-2.0
// Delegates, ranges, exceptions, the collector, and fibers.
import core.thread : Fiber;
import std.algorithm, std.array, std.conv, std.stdio;

int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int thrower(int depth)
{
	scope (exit) counted++;
	if (depth == 0)
		throw new Exception("the end");
	return thrower(depth - 1) + 1;
}

int counted;

void main()
{
	long sum;
	foreach (round; 0 .. 1 << 30) {
		auto v = iota60.map!(i => i * 7919 % 1009).array;
		v.sort!((a, b) => a > b);
		string[int] m;
		foreach (i, x; v)
			m[x] = to!string(i);
		try
			thrower(6);
		catch (Exception e)
			sum += e.msg.length;
		auto f = new Fiber({ foreach (i; 0 .. 5) { sum += fib(i + 3); Fiber.yield(); } });
		while (f.state != Fiber.State.TERM)
			f.call();
		int delegate(int) d = (int x) => fib(x) + cast(int) m.length;
		sum += d(9) + v[3];
	}
	writeln(sum, counted);
}

int[] iota60()
{
	int[] a;
	foreach (i; 0 .. 60)
		a ~= i;
	return a;
}
