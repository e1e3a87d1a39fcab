/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/names/generated.h"

#include <errno.h>
#include <unistd.h>

#define PROCESS 1 /* there is only one */
#define PIECES (2 * JIT_BURST / JIT_PIECE)

void generated_init(struct generated *g)
{
	*g = (struct generated){ 0 };
	for (unsigned k = 0; k < MSG_JIT_KINDS; k++)
		g->files[k] = -1;
}

void generated_done(struct generated *g)
{
	for (unsigned k = 0; k < MSG_JIT_KINDS; k++)
		generated_take(g, k, -1);
	if (g->ready)
		jit_done(&g->jit);
	g->ready = false;
}

void generated_take(struct generated *g, uint64_t kind, int fd)
{
	int *to = kind < MSG_JIT_KINDS ? &g->files[kind] : &fd;

	if (*to >= 0)
		close(*to);
	*to = fd;
}

static int give(void *ctx, const struct jit_request *rq)
{
	struct generated *g = ctx;
	int fd = g->files[rq->kind];

	g->files[rq->kind] = -1;
	jit_answer(&g->jit, rq->id, fd, 0);
	return 0;
}

/* Reads everything, piece by piece. */
static int read_files(struct generated *g)
{
	int r = jit_init(&g->jit, JIT_MEMORY, give, g);

	if (r)
		return r;
	g->ready = true;
	jit_want(&g->jit, PROCESS, PROCESS, 0);
	r = JIT_LATER;
	for (uint64_t i = 0; r == JIT_LATER && i < PIECES; i++)
		r = jit_settle(&g->jit, PROCESS, 0);
	/* If there is more than it reads at once, use the first part. */
	if (r == JIT_LATER)
		r = jit_settle(&g->jit, PROCESS, JIT_WAIT_NS);
	return r < 0 ? r : 0;
}

int generated_lookup(struct generated *g, uint64_t address, struct names *ret)
{
	int r = 0;

	if (g->failed)
		return JIT_UNKNOWN;
	if (!g->ready)
		r = read_files(g);
	g->failed = r < 0;
	if (!r)
		r = jit_lookup(&g->jit, PROCESS, PROCESS, address, g->time_ns, JIT_WAIT_NS, ret);
	return r > 0 ? JIT_UNKNOWN : r;
}
