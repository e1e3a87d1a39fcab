/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/output/folded.h"

#include <errno.h>
#include <inttypes.h>
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/model/paths/namesakes.h"
#include "tools/prof-export/model/paths/paths.h"

struct labels {
	struct pool pool;
	struct table_strings strings;
	uint32_t *frame, *process, *thread, *rank;
};

static int intern(struct labels *l, struct buf *name, uint32_t *ret)
{
	for (size_t i = 0; i < name->len; i++)
		if (name->data[i] == ';')
			name->data[i] = ':';
	const int r = table_strings_intern(
		&l->strings, &l->pool,
		(struct str){ .data = (char *)name->data, .len = (uint32_t)name->len }, ret);

	buf_reset(name);
	return r ? -ENOMEM : 0;
}

/* The sort key of a label: the label and the character after it in a line: `;`, or a blank if it is
 * the last one. */
static struct str symbol(const struct labels *l, uint32_t i, char *ret_end)
{
	*ret_end = i & 1 ? ' ' : ';';
	return table_strings_get(&l->strings, i / 2);
}

static int compare_symbols(const void *a, const void *b, void *labels)
{
	char ends[2];
	const struct str x = symbol(labels, *(const uint32_t *)a, &ends[0]),
			 y = symbol(labels, *(const uint32_t *)b, &ends[1]);
	const uint32_t n = x.len < y.len ? x.len : y.len;
	const int order = n ? memcmp(x.data, y.data, n) : 0;

	if (order)
		return order;
	/* If one is a prefix of the other, compare the character after the shorter one. */
	const unsigned char p = (unsigned char)(x.len > n ? x.data[n] : ends[0]),
			    q = (unsigned char)(y.len > n ? y.data[n] : ends[1]);

	if (p != q)
		return p < q ? -1 : 1;
	return x.len < y.len ? -1 : x.len > y.len;
}

static int rank_labels(struct labels *l)
{
	const size_t n = 2 * l->strings.len;
	uint32_t *order = reallocarray(NULL, n ? n : 1, sizeof(*order));

	l->rank = reallocarray(NULL, n ? n : 1, sizeof(*l->rank));
	if (!order || !l->rank) {
		free(order);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, n, sizeof(*order), compare_symbols, l);
	for (size_t i = 0; i < n; i++)
		l->rank[order[i]] = (uint32_t)i;
	free(order);
	return 0;
}

/* Appends the frame's label, and the line number if the model keeps lines. */
static int label_frame(struct buf *b, const struct namesakes *namesakes, const struct model *m,
		       const struct model_frame *f)
{
	const uint32_t line = f->kind == MODEL_INTERPRETED && f->count ? *model_lines_of(m, f) : 0;
	int r = namesakes_label(namesakes, b, m, f);

	return !r && line ? buf_printf(b, ":%" PRIu32, line) : r;
}

static int make_labels(struct labels *l, const struct model *m, bool threads)
{
	const struct model_frame *frames;
	const struct model_process *processes;
	const struct model_thread *thread;
	const size_t nf = model_frames(m, &frames), np = model_processes(m, &processes),
		     nt = model_threads(m, &thread);
	struct buf name = BUF_INIT(0);
	struct namesakes namesakes;
	int r = namesakes_find(&namesakes, m);

	l->pool.max = SIZE_MAX;
	l->frame = reallocarray(NULL, nf + 1, sizeof(*l->frame));
	l->process = reallocarray(NULL, np + 1, sizeof(*l->process));
	l->thread = threads ? reallocarray(NULL, nt + 1, sizeof(*l->thread)) : NULL;
	if (!l->frame || !l->process || (threads && !l->thread))
		r = -ENOMEM;
	for (size_t i = 0; !r && i < nf; i++) {
		r = label_frame(&name, &namesakes, m, &frames[i]);
		if (!r)
			r = intern(l, &name, &l->frame[i]);
	}
	for (size_t i = 0; !r && i <= np; i++) {
		r = label_process(&name, model_definitions(m), i < np ? (uint32_t)i : MODEL_NONE);
		if (!r)
			r = intern(l, &name, &l->process[i]);
	}
	for (size_t i = 0; !r && threads && i <= nt; i++) {
		r = label_thread(&name, model_definitions(m), i < nt ? (uint32_t)i : MODEL_NONE);
		if (!r)
			r = intern(l, &name, &l->thread[i]);
	}
	buf_done(&name);
	namesakes_done(&namesakes);
	return r ? r : rank_labels(l);
}

static void free_labels(struct labels *l)
{
	table_strings_done(&l->strings, &l->pool);
	free(l->frame);
	free(l->process);
	free(l->thread);
	free(l->rank);
}

/*
 * Paths are sorted by label, which is almost the order of the lines. An exception: in "a 5" the
 * first blank ends the name, but in "a b;c 1" it is part of the name. There the count decides the
 * order of the lines. Such lines are adjacent, so a line is held back until a later one is not
 * before it.
 */
struct held {
	struct buf *lines; /* sorted lines that are held back */
	size_t n, cap;
};

static int compare_lines(const struct buf *a, const struct buf *b)
{
	const size_t n = a->len < b->len ? a->len : b->len;
	const int order = n ? memcmp(a->data, b->data, n) : 0;

	return order ? order : a->len < b->len ? -1 : a->len > b->len;
}

static void let_go(struct held *h, size_t n, struct output *o)
{
	for (size_t i = 0; i < n; i++) {
		output_put(o, h->lines[i].data, h->lines[i].len);
		output_put(o, "\n", 1);
		buf_done(&h->lines[i]);
	}
	if (n)
		memmove(h->lines, h->lines + n, (h->n - n) * sizeof(*h->lines));
	h->n -= n;
}

/* Takes the line, and writes the held lines that no later line can precede. */
static int hold(struct held *h, struct buf *line, struct output *o)
{
	size_t before = 0;

	while (before < h->n && compare_lines(&h->lines[before], line) < 0)
		before++;
	let_go(h, before, o);
	if (h->n == h->cap) {
		const size_t cap = h->cap ? h->cap * 2 : 8;
		struct buf *lines = reallocarray(h->lines, cap, sizeof(*lines));

		if (!lines)
			return -ENOMEM;
		h->lines = lines;
		h->cap = cap;
	}
	memmove(h->lines + 1, h->lines, h->n * sizeof(*h->lines));
	h->lines[0] = *line;
	h->n++;
	*line = BUF_INIT(0);
	return 0;
}

/* No stack can imitate this line: names of processes are shorter. */
static int hold_distrust(struct held *h, const struct model *m, struct output *o)
{
	const struct witness_verdict v = model_totals(m)->witness;
	struct buf line = BUF_INIT(0);

	if (!v.more && !v.fewer && !v.losses)
		return 0;
	const int r = buf_printf(&line, "[do not trust this profile] %" PRIu64,
				 v.more + v.fewer + v.losses);

	return r ? r : hold(h, &line, o);
}

static int write_lines(const struct paths *p, const struct labels *l, struct output *o)
{
	struct held held = { 0 };
	struct buf line = BUF_INIT(0);
	int r = hold_distrust(&held, p->model, o);

	for (size_t i = 0; !r && i < p->n && !o->error;) {
		const uint32_t first = p->sorted[i];
		const size_t n = paths_length(p, first);
		uint64_t samples = 0;

		for (; i < p->n && paths_length(p, p->sorted[i]) == n &&
		       paths_common(p, first, p->sorted[i]) == n;
		     i++)
			samples += p->buckets[p->sorted[i]].samples;
		for (size_t k = 0; !r && k < n; k++) {
			const struct str name = table_strings_get(&l->strings,
								  paths_label(p, first, k));

			r = k ? buf_append(&line, ";", 1) : 0;
			if (!r)
				r = buf_append(&line, name.data, name.len);
		}
		if (!r)
			r = buf_printf(&line, " %" PRIu64, samples);
		if (!r)
			r = hold(&held, &line, o);
	}
	let_go(&held, held.n, o);
	free(held.lines);
	buf_done(&line);
	return r;
}

int folded_write(const struct model *m, bool threads, struct output *o)
{
	struct labels l = { 0 };
	struct paths p;
	int r = make_labels(&l, m, threads);

	paths_init(&p, m);
	p.frame_label = l.frame;
	p.process_label = l.process;
	p.thread_label = l.thread;
	p.rank = l.rank;
	if (!r)
		r = paths_sort(&p);
	if (!r)
		r = write_lines(&p, &l, o);
	paths_done(&p);
	free_labels(&l);
	return r;
}
