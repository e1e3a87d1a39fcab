/* SPDX-License-Identifier: Apache-2.0 */
/* Recursion, callbacks, variable arguments, longjmp, and handlers on both kinds of stacks. It
 * includes only headers of the C library, so any C compiler accepts it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf back;
static volatile int handled;

static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int sum(int n, ...)
{
	va_list list;
	int s = 0;

	va_start(list, n);
	while (n--)
		s += va_arg(list, int);
	va_end(list);
	return s;
}

static void leave(int depth)
{
	char room[64];

	memset(room, depth, sizeof(room));
	if (depth)
		leave(depth - 1);
	else
		longjmp(back, 1 + room[7]);
	handled += room[3];
}

static void on_signal(int number)
{
	handled += fib(4);
}

int main(int argc, char **argv)
{
	static char other[65536];
	stack_t stack = { 0 };
	struct sigaction act;
	int a[200], round;
	char text[200];

	memset(&act, 0, sizeof(act));
	act.sa_handler = on_signal;
	stack.ss_sp = other;
	stack.ss_size = sizeof(other);
	sigaltstack(&stack, 0);
	for (round = 0; argc < 2 || round < atoi(argv[1]); round++) {
		act.sa_flags = round & 1 ? SA_ONSTACK : 0;
		sigaction(SIGUSR1, &act, 0);
		raise(SIGUSR1);
		for (int i = 0; i < 200; i++)
			a[i] = i * 7919 % 1009;
		qsort(a, 200, sizeof(a[0]), compare);
		if (!setjmp(back))
			leave(12);
		snprintf(text, sizeof(text), "%d %g %s %d\n", fib(11), 1.5 * a[7], "text",
			 sum(3, a[1], a[2], handled));
		free(strdup(text));
	}
	fputs(text, stdout);
	return 0;
}
