/* SPDX-License-Identifier: Apache-2.0 */
/* Made into `ordinary` by make.sh: pushes, a frame pointer with variable length, an aligned stack,
 * and an entry point. */
long sink(long *, long);

__attribute__((noinline)) long pushes(long a, long b)
{
	long x[5] = { a, b, a + b, a - b, 7 };

	return sink(x, 5) + sink(x, 4) * a + b;
}

__attribute__((noinline)) long frame_pointer(long n)
{
	long *x = __builtin_alloca((unsigned long)n * sizeof(*x));

	return sink(x, n) + n;
}

__attribute__((noinline)) long aligned(long n)
{
	_Alignas(64) long x[8] = { n };

	return sink(x, 8) + n;
}

void _start(void)
{
	sink(0, pushes(1, 2) + frame_pointer(3) + aligned(4));
	__builtin_trap();
}

__attribute__((noinline)) long sink(long *x, long n)
{
	__asm__ volatile("" : : "r"(x) : "memory");
	return n;
}
