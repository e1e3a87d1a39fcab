/* SPDX-License-Identifier: Apache-2.0 */
/* Made into `framepointer` by make.sh: frames with a frame pointer below which RBX is saved, one of
 * them aligned to more than the caller's, one of any size. */
struct vector {
	float f[16];
} __attribute__((aligned(64)));

void callee(struct vector *v, long n);

__attribute__((noipa)) long realigned(long a, long b, long c, long d, long e, long f, long g,
				      long h)
{
	struct vector v[4] = { 0 };

	callee(v, a + b + c + d + e + f + g);
	callee(v + 1, h);
	return (long)v[1].f[2] + a + g + h;
}

__attribute__((noipa)) long of_any_size(long n, long m)
{
	long *v = __builtin_alloca((unsigned long)n * sizeof(*v));

	callee((struct vector *)v, m);
	callee((struct vector *)v, n);
	return v[1] + n + m;
}

__attribute__((noipa)) void callee(struct vector *v, long n)
{
	for (long i = 0; i < n; i++)
		v[i & 3].f[i & 7] += 1;
}

void _start(void)
{
	realigned(1, 2, 3, 4, 5, 6, 7, 8);
	of_any_size(4, 5);
	for (;;)
		;
}
