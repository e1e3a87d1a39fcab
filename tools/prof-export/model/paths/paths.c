/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths_sort is multikey quicksort (Bentley and Sedgewick, "Fast algorithms for sorting and
 * searching strings", 1997). The stacks of one program share long prefixes. This algorithm compares
 * each step of a prefix once; a sort by comparison would do so every time.
 */
#include "tools/prof-export/model/paths/paths.h"

#include <errno.h>

#define FEW 12 /* insertion sort is faster up to this length */

void paths_init(struct paths *p, const struct model *m)
{
	const struct model_process *processes;

	*p = (struct paths){ .model = m };
	p->n = model_buckets(m, &p->buckets);
	model_stacks(m, &p->stacks);
	p->thread_count = model_threads(m, &p->threads);
	p->process_count = model_processes(m, &processes);
}

void paths_done(struct paths *p)
{
	free(p->sorted);
	p->sorted = NULL;
}

size_t paths_length(const struct paths *p, uint32_t bucket)
{
	return p->stacks[p->buckets[bucket].stack].count + 1 + !!p->thread_label;
}

uint32_t paths_label(const struct paths *p, uint32_t bucket, size_t depth)
{
	const struct model_bucket *b = &p->buckets[bucket];
	const uint32_t thread = b->thread;
	const size_t before = 1 + !!p->thread_label;

	if (!depth)
		return p->process_label[thread == MODEL_NONE ? p->process_count
							     : p->threads[thread].process];
	if (depth < before)
		return p->thread_label[thread == MODEL_NONE ? p->thread_count : thread];
	const struct model_stack *s = &p->stacks[b->stack];
	const uint32_t frame = model_frames_of(p->model, s)[s->count - 1 - (depth - before)];

	return p->frame_label ? p->frame_label[frame] : frame;
}

/* 0 at the end of a path. */
static uint64_t key(const struct paths *p, uint32_t bucket, size_t depth)
{
	const size_t n = paths_length(p, bucket);

	if (depth >= n)
		return 0;
	const uint64_t label = paths_label(p, bucket, depth);

	return 1 + (p->rank ? p->rank[2 * label + (depth + 1 == n)] : label);
}

static int compare(const struct paths *p, uint32_t a, uint32_t b, size_t depth)
{
	for (;; depth++) {
		const uint64_t x = key(p, a, depth), y = key(p, b, depth);

		if (x != y)
			return x < y ? -1 : 1;
		if (!x)
			return 0;
	}
}

static void insertion(const struct paths *p, uint32_t *v, size_t n, size_t depth)
{
	for (size_t i = 1; i < n; i++) {
		const uint32_t x = v[i];
		size_t at = i;

		for (; at > 0 && compare(p, x, v[at - 1], depth) < 0; at--)
			v[at] = v[at - 1];
		v[at] = x;
	}
}

struct range {
	size_t from, n, depth;
};

static int push(struct range **stack, size_t *len, size_t *cap, struct range r)
{
	if (*len == *cap) {
		const size_t more = *cap ? *cap * 2 : 64;
		struct range *grown = reallocarray(*stack, more, sizeof(**stack));

		if (!grown)
			return -ENOMEM;
		*stack = grown;
		*cap = more;
	}
	(*stack)[(*len)++] = r;
	return 0;
}

static void swap(uint32_t *a, uint32_t *b)
{
	const uint32_t t = *a;

	*a = *b;
	*b = t;
}

static uint64_t median(uint64_t a, uint64_t b, uint64_t c)
{
	if (a < b)
		return b < c ? b : a < c ? c : a;
	return a < c ? a : b < c ? c : b;
}

int paths_sort(struct paths *p)
{
	struct range *stack = NULL;
	size_t len = 0, cap = 0;
	int r;

	p->sorted = reallocarray(NULL, p->n ? p->n : 1, sizeof(*p->sorted));
	if (!p->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		p->sorted[i] = (uint32_t)i;
	r = push(&stack, &len, &cap, (struct range){ .n = p->n });
	while (!r && len) {
		const struct range at = stack[--len];
		uint32_t *v = p->sorted + at.from;

		if (at.n <= FEW) {
			insertion(p, v, at.n, at.depth);
			continue;
		}
		const uint64_t pivot = median(key(p, v[0], at.depth), key(p, v[at.n / 2], at.depth),
					      key(p, v[at.n - 1], at.depth));
		size_t less = 0, more = at.n;

		for (size_t i = 0; i < more;) {
			const uint64_t k = key(p, v[i], at.depth);

			if (k < pivot)
				swap(&v[less++], &v[i++]);
			else if (k > pivot)
				swap(&v[i], &v[--more]);
			else
				i++;
		}
		if (less > 1)
			r = push(&stack, &len, &cap, (struct range){ at.from, less, at.depth });
		if (!r && at.n - more > 1)
			r = push(&stack, &len, &cap,
				 (struct range){ at.from + more, at.n - more, at.depth });
		if (!r && pivot && more - less > 1)
			r = push(&stack, &len, &cap,
				 (struct range){ at.from + less, more - less, at.depth + 1 });
	}
	free(stack);
	return r;
}

size_t paths_common(const struct paths *p, uint32_t a, uint32_t b)
{
	const size_t x = paths_length(p, a), y = paths_length(p, b), n = x < y ? x : y;
	size_t i = 0;

	while (i < n && paths_label(p, a, i) == paths_label(p, b, i))
		i++;
	return i;
}
