// SPDX-License-Identifier: Apache-2.0
// C++20 coroutines: generators that are resumed from different depths.
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

struct generator {
	struct promise_type {
		int value;
		generator get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		std::suspend_always yield_value(int v) { value = v; return {}; }
		void return_void() {}
		void unhandled_exception() { throw; }
	};
	std::coroutine_handle<promise_type> h;
	bool next() { h.resume(); return !h.done(); }
};

static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static generator numbers(int n)
{
	for (int i = 0; i < n; i++)
		co_yield fib(i % 9);
	throw std::runtime_error("no more");
}

static int drain(generator &g, int depth)
{
	if (depth)
		return drain(g, depth - 1) + 1;
	return g.next() ? g.h.promise().value : 0;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 1 << 30;
	long sum = 0;

	for (int round = 0; round < rounds; round++) {
		generator g = numbers(20);

		try {
			for (int i = 0; i < 30; i++)
				sum += drain(g, i % 7);
		} catch (const std::runtime_error &) {
			sum++;
		}
		g.h.destroy();
	}
	std::printf("%ld\n", sum);
}
