/* SPDX-License-Identifier: Apache-2.0 */
/* Spins for the given seconds, three functions deep, and rests two thirds of the time. */
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline, noclone)) int leaf_of_it(void)
{
	for (volatile long i = 0; i < 100000; i++)
		;
	return 1;
}

__attribute__((noinline, noclone)) int middle_of_it(void)
{
	int r = leaf_of_it();

	__asm__ volatile("" : "+r"(r));
	return r + 1;
}

int main(int argc, char **argv)
{
	const double end = now() + (argc > 1 ? atof(argv[1]) : 1);
	int sum = 0;

	while (now() < end) {
		for (int i = 0; i < 60; i++)
			sum += middle_of_it();
		nanosleep(&(struct timespec){ .tv_nsec = 6000000 }, NULL);
	}
	return sum == 1;
}
