// SPDX-License-Identifier: Apache-2.0
// Fibers of boost.context, each on a stack of its own.
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <cstdlib>

namespace ctx = boost::context;

static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static int yield_deep(ctx::fiber &main, int depth)
{
	if (depth)
		return yield_deep(main, depth - 1) + fib(depth);
	main = std::move(main).resume();
	return fib(7);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 1 << 30;
	long sum = 0;

	for (int round = 0; round < rounds; round++) {
		ctx::fiber f{ [&](ctx::fiber &&main) {
			for (int i = 0; i < 6; i++)
				sum += yield_deep(main, i);
			return std::move(main);
		} };
		while (f)
			f = std::move(f).resume();
	}
	std::printf("%ld\n", sum);
}
