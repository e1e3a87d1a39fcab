/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/space/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/walk/native_walk.h"
#include "common/walk/weave.h"
#include "tools/prof-dump/space/interpreted.h"

/* The frames that a walk gathers. */
struct gathered {
	uint64_t *pcs, *words; /* of native frames */
	uint32_t count, cap;
	struct interpreted_items items;
};

static void gathered_done(struct gathered *g)
{
	free(g->pcs);
	free(g->words);
	interpreted_done(&g->items);
}

static int push(struct gathered *g, uint64_t pc, uint64_t word)
{
	uint32_t cap = g->cap;
	int r = space_grow((void **)&g->pcs, g->count, &cap, SPACE_MAX_FRAMES, sizeof(*g->pcs));

	if (!r)
		r = space_grow((void **)&g->words, g->count, &g->cap, SPACE_MAX_FRAMES,
			       sizeof(*g->words));
	if (r)
		return r;
	g->pcs[g->count] = pc;
	g->words[g->count++] = word;
	return 0;
}

static int walk_interpreted(const struct space *s, struct walk *w, struct interpreted_items *ret)
{
	uint32_t found[TABLES_PROCESS_RUNTIMES_MAX], count = 0;
	int r = 0;

	/* The first mapping of each file gives its place. */
	for (uint32_t i = 0; !r && i < s->mapping_count && count < TABLES_PROCESS_RUNTIMES_MAX;
	     i++) {
		const struct space_mapping *m = &s->mappings[i];
		bool again = m->file == SPACE_NO_FILE || !s->files[m->file].build;

		for (uint32_t k = 0; k < count; k++)
			again |= found[k] == m->file;
		if (again)
			continue;
		found[count++] = m->file;
		w->slot = s->files[m->file].slot;
		r = interpreted_walk(w, &s->files[m->file].build->config, m->start - m->offset,
				     ret);
	}
	return r;
}

static const struct runtime_config *runtime_of(void *ctx, uint16_t slot)
{
	return tables_runtime(ctx, slot);
}

static uint32_t file_in_slot(const struct space *s, uint16_t slot)
{
	for (uint32_t i = 0; i < s->file_count; i++) {
		if (s->files[i].slot == slot)
			return i;
	}
	return SPACE_NO_FILE;
}

/* Adds only the native frames. */
static int put_pcs(const struct gathered *g, struct stack *st)
{
	st->frames = calloc(g->count + 1u, sizeof(*st->frames));
	if (!st->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->count; i += sample_frame_words(g->words[i]))
		st->frames[st->count++] = (struct stack_frame){
			.pc = g->pcs[i],
			.file = SPACE_NO_FILE,
			.exact = g->words[i] & SAMPLE_FRAME_EXACT,
			.by_fp = g->words[i] & SAMPLE_FRAME_FP,
		};
	return 0;
}

/* Merges native and interpreted frames into one stack. */
static int put_together(const struct space *s, const struct gathered *g, struct stack *st)
{
	const struct weave_config c = { .runtime = runtime_of, .ctx = s->tables };
	const struct weave_input in = { .native = g->words,
					.items = g->items.words,
					.native_count = g->count,
					.item_count = g->items.count };
	uint32_t max = g->count + g->items.count;
	bool truncated;

	if (!max)
		return 0;
	struct weave_frame *woven = calloc(max, sizeof(*woven));

	st->frames = calloc(max, sizeof(*st->frames));
	if (!woven || !st->frames) {
		free(woven);
		return -ENOMEM;
	}
	st->count = weave_all(&in, &c, woven, max, &truncated);
	for (uint32_t i = 0; i < st->count; i++) {
		const struct weave_frame *w = &woven[i];

		st->frames[i] = (struct stack_frame){
			.pc = w->interpreted ? w->address : g->pcs[w->at],
			.mark = w->mark,
			.object2 = w->address2,
			.mark2 = w->mark2,
			.file = w->interpreted ? file_in_slot(s, w->slot) : SPACE_NO_FILE,
			.interpreted = w->interpreted,
			.exact = w->word & SAMPLE_FRAME_EXACT,
			.by_fp = w->word & SAMPLE_FRAME_FP,
			.loop = w->loop,
		};
	}
	free(woven);
	if (truncated && st->reason == WALK_COMPLETE)
		st->reason = WALK_RUNTIME_CUT;
	return 0;
}

/* Whether the leaf's pc is exact. In a system call it is behind the instruction, like a return
 * address. But an exec, or a signal that is being delivered, may have moved it to the first byte of
 * a function. */
static bool is_exact(const struct space *s, const struct message_thread *t)
{
	static const uint8_t syscall[] = { 0x0f, 0x05 };
	uint8_t insn[sizeof(syscall)];

	return !t->in_syscall || (!s->read(s->ctx, insn, sizeof(insn), t->pc - sizeof(insn)) &&
				  memcmp(insn, syscall, sizeof(insn)) != 0);
}

int stack_walk(struct space *s, const struct message_thread *t, struct stack *ret)
{
	static struct walk w;
	struct stack st = { .tid = t->tid, .partial = t->partial };
	struct gathered g = { 0 };
	struct weave_run runs[TABLES_PROCESS_RUNTIMES_MAX];
	int stop = t->partial == MESSAGE_RUNNING;

	w.pc = t->pc;
	memcpy(w.regs, t->regs, sizeof(w.regs));
	w.sp = w.regs[UNWIND_REG_RSP];
	w.fp = w.regs[UNWIND_REG_RBP];
	s->env.tls = t->tls;
	env_current = &s->env;
	walk_begin(&w, &s->entry, is_exact(s, t));
	int r = s->pcs_only ? 0 : walk_interpreted(s, &w, &g.items);

	uint32_t run_count = weave_split(g.items.words, g.items.count, runs);

	walk_place(&w);
	if (t->partial) {
		w.fp = WALK_FP_UNKNOWN;
		w.tracked = 0;
		w.reason = WALK_NO_REGISTERS;
	}
	while (!r && !stop) {
		/* The kernel truncates a stack that does not fit into one sample. Here it
		 * continues. */
		if (w.count + 2 + 2 * SAMPLE_TAKEN_ITEMS > SAMPLE_MAX_USER)
			w.count = 0;
		uint64_t pc = w.pc;
		uint32_t before = w.count;

		if (!w.entry_at)
			interpreted_expect(&g.items, runs, run_count, &w);
		stop = native_walk_step(&w);
		for (uint32_t i = before; !r && i < w.count; i++)
			r = push(&g, pc, w.words[i]);
	}
	st.reason = r == SPACE_FULL ? WALK_DEPTH : w.reason;
	if (r >= 0)
		r = s->pcs_only ? put_pcs(&g, &st) : put_together(s, &g, &st);
	gathered_done(&g);
	if (r < 0) {
		stack_done(&st);
		return r;
	}
	*ret = st;
	return 0;
}

void stack_done(struct stack *s)
{
	free(s->frames);
	s->frames = NULL;
	s->count = 0;
}
