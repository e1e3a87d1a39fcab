/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An item is a sample that waits, with the pieces of its stack. Each walk of an item that ends too
 * early notes what was missing (enum wait). The item is walked again when that may have come: there
 * are more parts, the slot has rows or another file, or the mappings changed. Otherwise it is
 * walked after a delay that doubles from walk to walk. After DEFERRED_PATIENCE_NS it is walked for
 * the last time.
 *
 * In each tick, the items that are due enter a lane for their owner. The lanes take turns, one item
 * each, until the time of the tick is used up. The owner behind the one that was served last
 * begins, so that all owners have a turn even if a tick is too short for all of them.
 *
 * Items of runtimes and fetched memory come in another ring than their sample. So they may come
 * before it, and then wait in `ahead`.
 */
#include "tools/prof-bpf/stream/deferred.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <utlist.h>
#include "common/walk/native_walk.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/stream/walk_turns.h"

/* Bytes kept below RSP: the red zone, and bytes that are read together with it. */
#define BELOW_RSP 256
/* How many of the newest items are searched for equal pieces. */
#define SHARE_AMONG 8

#define MANY_MAPPINGS 1024
#define AGAIN_NS_PER_MAPPING 2000u

/* Delay after a walk for which the mappings could not be gathered: the owner had no time left. */
#define REFUSED_NS 20000000ull

/* A look at all items visits memory that is in no cache, so it pauses if there are many. */
#define MANY_ITEMS 64
#define LOOK_NS_PER_ITEM 10000u

/* Delays between two walks of an item while nothing changes that it waits for. */
#define RETRY_NS 100000000ull
#define RETRY_MOST_NS 1000000000ull

/* A piece of a stack. Items share equal pieces: samples of one thread, or of children made by
 * vfork, often differ only in the leaf's page. */
struct piece {
	uint32_t items;	     /* number of items that share it */
	uint32_t from;	     /* offset in its DEFERRED_CHUNK; the bytes before are not kept */
	struct owner *owner; /* the owner charged for it; NULL: none */
	uint8_t bytes[];
};

/* The event that an item waits for before another walk is useful. */
enum wait {
	WAIT_NOTHING,  /* it was never walked, or another try costs little */
	WAIT_PARTS,    /* its items or lines */
	WAIT_ROWS,     /* rows of the file in `slot` */
	WAIT_MAPPINGS, /* mappings of its process, or a slot for a file */
};

struct deferred_item {
	struct deferred_item *prev, *next;
	struct deferred_item *next_due; /* in its lane */
	size_t bytes;			/* size without its pieces */
	struct owner *owner;		/* the owner charged for it; NULL: none */
	uint64_t again_ns;		/* not tried again before */
	enum wait wait;
	uint16_t slot;
	uint32_t slot_serial; /* of `slot` */
	uint32_t frames;      /* the number of frames of the last walk */
	uint64_t seen;	      /* WAIT_PARTS: parts_came; WAIT_MAPPINGS: what config.changes told */
	uint64_t retry_ns;    /* walked again at this time, even if nothing changes */
	uint64_t delay_ns;    /* the next delay until retry_ns */
	struct sample sample;
	uint64_t pc, regs[16], tls;
	uint32_t exact, chunks, g_below;
	bool scanned;		  /* its stack was searched for return addresses */
	bool lacks_items;	  /* its items have not come yet: their space in head[] is empty */
	bool lacks_lines;	  /* likewise, for lines */
	struct sample_line *line; /* fetched by runtimes; owned, and charged to the owner */
	uint32_t lines;
	uint8_t code[8]; /* from pc - 4 on */
	struct probed_return returns[DEFERRED_RETURNS];
	struct deferred_range ranges[DEFERRED_STACKS];
	uint64_t chunk_at[DEFERRED_CHUNKS];
	struct piece *piece[DEFERRED_CHUNKS]; /* `chunks` of them; NULL: no memory */
	uint32_t objects;
	struct deferred_words *object; /* stored after head[] */
	uint64_t head[];	       /* as many words as the sample's counts say */
};

/* A runtime's items, or lines of memory, for a deferred sample that comes before or after them: the
 * order between two rings is unknown. */
struct ahead {
	uint64_t time_ns;
	uint32_t tid, words;
	bool fetched;	/* these are lines */
	uint64_t *data; /* NULL: unused */
};
#define AHEAD 64 /* entries without a sample; the oldest are dropped */

/* The items of one owner that are due in this tick, oldest first. */
struct lane {
	struct deferred_item *first, *last;
	struct lane *next;
};

struct deferred_queue {
	struct deferred_config config;
	struct owners *owners; /* NULL: no owner is charged */
	struct ahead ahead[AHEAD];
	uint32_t next_ahead;
	uint64_t parts_came; /* how many entries have come */
	struct deferred_item *items;
	uint32_t count; /* of items */
	size_t bytes;
	uint64_t now_ns, look_ns; /* look_ns: when to look at the items again */
	struct walk_turns turns;
	struct lane lane[OWNERS_MAX]; /* by number of the owner; 0: also items without an owner */
	uint32_t served;	      /* number of the owner who was served last */
	const struct deferred_item *reading; /* the item whose stack is being read */
	bool past_end;			     /* the last failed read was after the end of the
					      * copy */
	struct env env;
	struct walk walk;
	struct {
		struct sample sample;
		uint64_t words[SAMPLE_WORDS];
	} out;
};

static int compare_lines(const void *a, const void *b)
{
	const struct sample_line *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Returns the bytes at addr that a runtime fetched, at most *ret_n of them, or NULL. */
static const uint8_t *fetched_line(const struct deferred_item *i, uint64_t addr, size_t *ret_n)
{
	const struct sample_line key = { .at = addr & ~(SAMPLE_FETCHED_BYTES - 1ull) };
	const struct sample_line *line =
		i->lines ? bsearch(&key, i->line, i->lines, sizeof(*line), compare_lines) : NULL;

	if (!line)
		return NULL;
	*ret_n = SAMPLE_FETCHED_BYTES - (addr - line->at);
	return line->bytes + (addr - line->at);
}

/* Returns the copied bytes at addr, at most *ret_n of them, or NULL. */
static const uint8_t *copied(const struct deferred_item *i, uint64_t addr, size_t *ret_n)
{
	for (uint32_t n = 0; n < i->chunks; n++) {
		uint64_t at = addr - i->chunk_at[n];

		if (at < DEFERRED_CHUNK && i->piece[n] && at >= i->piece[n]->from) {
			*ret_n = DEFERRED_CHUNK - at;
			return i->piece[n]->bytes + (at - i->piece[n]->from);
		}
	}
	for (unsigned n = 0; n < i->objects; n++) {
		const struct deferred_words *o = &i->object[n];
		uint64_t at = addr - o->at;

		if (o->at && at < sizeof(o->words)) {
			*ret_n = sizeof(o->words) - at;
			return (const uint8_t *)o->words + at;
		}
	}
	return fetched_line(i, addr, ret_n);
}

/* Whether addr was not copied because the copy was full. */
static bool past_end(const struct deferred_item *i, uint64_t addr)
{
	for (unsigned n = 0; n < DEFERRED_STACKS; n++) {
		const struct deferred_range *r = &i->ranges[n];

		if (r->end && addr >= r->end && addr - r->end < WALK_FP_MAX_FRAME)
			return true;
	}
	return i->chunks == DEFERRED_CHUNKS;
}

/* Whether a runtime may need more lines than were fetched, for the frame that the walk has
 * reached. */
static bool is_short(const struct deferred_queue *q, const struct deferred_item *i)
{
	const uint64_t above = q->walk.sp - i->regs[UNWIND_REG_RSP];

	return i->lines == SAMPLE_FETCHED_LINES || (i->lines && above >= SAMPLE_FETCHED_STACK);
}

/* Reads from the copy. It holds untrusted data: everything outside it is unreadable, and so is what
 * the kernel could not read. */
static long read_copy(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	struct deferred_queue *q = ctx;
	const struct deferred_item *i = q->reading;

	if (addr == i->pc - 4 && size == sizeof(i->code)) {
		memcpy(dst, i->code, sizeof(i->code));
		return 0;
	}
	for (uint32_t done = 0; done < size;) {
		size_t n;
		const uint8_t *from = copied(i, addr + done, &n);

		if (!from) {
			q->past_end = past_end(i, addr);
			q->env.is_short |= is_short(q, i);
			return -EFAULT;
		}
		if (n > size - done)
			n = size - done;
		memcpy((uint8_t *)dst + done, from, n);
		done += (uint32_t)n;
	}
	return 0;
}

int deferred_new(const struct deferred_config *c, struct deferred_queue **ret)
{
	struct deferred_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->config = *c;
	tables_env(c->tables, &q->env);
	q->env.read_user = read_copy;
	q->env.ctx = q;
	q->env.is_copy = true;
	*ret = q;
	return 0;
}

void deferred_keep_owners(struct deferred_queue *q, struct owners *o)
{
	q->owners = o;
	q->turns.owners = o;
}

static void hold(struct deferred_queue *q, struct owner *w, size_t bytes)
{
	q->bytes += bytes;
	if (w)
		owner_hold(q->owners, w, OWNER_STACKS, bytes);
}

static void release(struct deferred_queue *q, struct owner *w, size_t bytes)
{
	q->bytes -= bytes;
	if (w)
		owner_release(q->owners, w, OWNER_STACKS, bytes);
}

static size_t piece_bytes(const struct piece *p)
{
	return sizeof(*p) + DEFERRED_CHUNK - p->from;
}

/* Returns a piece of the copy from `from` on: an existing equal one, or a new one. NULL: no
 * memory. */
static struct piece *piece_get(struct deferred_queue *q, struct owner *owner, uint64_t at,
			       uint32_t from, const uint8_t *bytes)
{
	struct deferred_item *i = q->items ? q->items->prev : NULL;
	size_t size = DEFERRED_CHUNK - from;
	struct piece *p;

	for (unsigned looked = 0; i && looked < SHARE_AMONG; looked++) {
		for (uint32_t n = 0; n < i->chunks; n++) {
			p = i->piece[n];
			if (i->chunk_at[n] == at && p && p->from == from && p->owner == owner &&
			    memcmp(p->bytes, bytes + from, size) == 0) {
				p->items++;
				return p;
			}
		}
		i = i == q->items ? NULL : i->prev;
	}
	p = malloc(sizeof(*p) + size);
	if (!p)
		return NULL;
	p->items = 1;
	p->from = from;
	p->owner = owner;
	memcpy(p->bytes, bytes + from, size);
	hold(q, owner, piece_bytes(p));
	return p;
}

static void piece_put(struct deferred_queue *q, struct piece *p)
{
	if (!p || --p->items)
		return;
	release(q, p->owner, piece_bytes(p));
	free(p);
}

static void item_free(struct deferred_queue *q, struct deferred_item *i)
{
	DL_DELETE(q->items, i);
	q->count--;
	for (uint32_t n = 0; n < i->chunks; n++)
		piece_put(q, i->piece[n]);
	release(q, i->owner, i->bytes);
	free(i->line);
	free(i);
}

static void item_drop(struct deferred_queue *q, struct deferred_item *i)
{
	if (i->sample.at_slot == TABLES_UNASKED)
		q->config.is_behind(q->config.ctx, &i->sample);
	item_free(q, i);
}

void deferred_free(struct deferred_queue *q)
{
	if (!q)
		return;
	while (q->items)
		item_free(q, q->items);
	for (unsigned i = 0; i < AHEAD; i++)
		free(q->ahead[i].data);
	free(q);
}

/* Emits the sample with the frames that w found, or without frames (NULL). */
static void emit(struct deferred_queue *q, const struct sample *s, const uint64_t *head,
		 const struct walk *w)
{
	uint32_t head_words = sample_head(s);

	q->out.sample = *s;
	/* By now the thread may run another virtual thread, so the title may be wrong. */
	q->out.sample.flags &= (uint16_t) ~(SAMPLE_DEFERRED | SAMPLE_TITLED);
	q->out.sample.generation = 0; /* its frames come from the mappings of its time */
	memcpy(q->out.words, head, head_words * sizeof(*head));
	if (w) {
		q->out.sample.reason = w->reason;
		q->out.sample.at_slot = w->at_slot;
		q->out.sample.user_frames = (uint16_t)w->count;
		q->out.sample.flags |= w->sample.flags & SAMPLE_TAKEN;
		memcpy(q->out.words + head_words, w->words + w->base,
		       w->count * sizeof(w->words[0]));
	}
	q->config.emit(q->config.ctx, &q->out.sample);
}

/* Copies a runtime's items, or lines that it fetched, into the item, if they have come. */
static void take_ahead(struct deferred_queue *q, struct deferred_item *i)
{
	const struct sample *s = &i->sample;
	uint32_t words = s->items * 2u;

	for (unsigned n = 0; (i->lacks_items || i->lacks_lines) && n < AHEAD; n++) {
		struct ahead *a = &q->ahead[n];

		if (!a->data || a->time_ns != s->time_ns || a->tid != s->tid)
			continue;
		if (a->fetched && i->lacks_lines) {
			i->lines = a->words / (uint32_t)(sizeof(*i->line) / sizeof(uint64_t));
			i->line = (struct sample_line *)a->data;
			qsort(i->line, i->lines, sizeof(*i->line), compare_lines);
			i->lacks_lines = false;
			i->bytes += a->words * sizeof(uint64_t);
			hold(q, i->owner, a->words * sizeof(uint64_t));
		} else if (!a->fetched && i->lacks_items && a->words == words) {
			memcpy(i->head + s->kernel_frames, a->data, words * sizeof(uint64_t));
			free(a->data);
			i->lacks_items = false;
		} else {
			continue;
		}
		a->data = NULL;
	}
}

/* Requests rows after the walk reached a file without rows. The stack shows which files come next,
 * so they are requested together. */
static void want_files(struct deferred_queue *q, struct deferred_item *i)
{
	uint64_t at[1 + DEFERRED_CHUNK / sizeof(uint64_t)];
	const uint64_t pc = q->walk.exact ? q->walk.pc : q->walk.pc - 1;

	q->config.wants(q->config.ctx, &i->sample, &pc, 1);
	for (uint32_t n = 0; n < i->chunks && !i->scanned; n++) {
		const struct piece *p = i->piece[n];
		size_t found = 0;

		for (uint32_t k = p ? (p->from + 7) & ~7u : DEFERRED_CHUNK; k < DEFERRED_CHUNK;
		     k += sizeof(uint64_t)) {
			uint64_t word;

			memcpy(&word, p->bytes + (k - p->from), sizeof(word));
			if (word >= WALK_NULL_END && word < WALK_ADDRESS_END)
				at[found++] = word - 1;
		}
		q->config.wants(q->config.ctx, &i->sample, at, found);
	}
	i->scanned = true;
}

/* Returns a number that changes with the mappings of the item's process. */
static uint64_t changes(const struct deferred_queue *q, const struct deferred_item *i)
{
	return q->config.changes(q->config.ctx, &i->sample);
}

/* Notes what the item waits for after a walk that ended too early. slot, frames: where it ended.
 * soon: the first retry is in the next tick, whatever happens. */
static void wait_for(struct deferred_queue *q, struct deferred_item *i, enum wait wait,
		     uint16_t slot, uint32_t frames, bool soon)
{
	const bool same = i->wait == wait && i->slot == slot && i->frames == frames;

	i->wait = wait;
	i->slot = slot;
	i->slot_serial = tables_file_serial(q->config.tables, slot);
	i->frames = frames;
	if (!same)
		i->delay_ns = RETRY_NS;
	if (!same && soon) {
		i->retry_ns = 0;
		return;
	}
	i->retry_ns = q->now_ns + i->delay_ns;
	i->delay_ns = i->delay_ns < RETRY_MOST_NS / 2 ? 2 * i->delay_ns : RETRY_MOST_NS;
}

/* The same, for a walk that reached code. Returns false if it is not worth waiting. */
static bool wait_for_walk(struct deferred_queue *q, struct deferred_item *i, bool whole)
{
	const struct walk *w = &q->walk;

	if (w->reason == WALK_ROWS_PENDING && w->at_slot != TABLES_UNASKED) {
		wait_for(q, i, WAIT_ROWS, w->at_slot, w->count, false);
		return true;
	}
	if (w->reason == WALK_ROWS_PENDING || w->reason == WALK_STALE) {
		/* The file gets a slot now, or another one in the mappings of the next walk. */
		wait_for(q, i, WAIT_MAPPINGS, w->at_slot, w->count, true);
		if (w->reason == WALK_ROWS_PENDING)
			want_files(q, i);
		return true;
	}
	if (!whole && w->reason == WALK_NO_MAPPING) {
		wait_for(q, i, WAIT_MAPPINGS, w->at_slot, w->count, false);
		return true;
	}
	return false;
}

/* Whether another walk may find more than the last one. */
static bool is_useful(const struct deferred_queue *q, const struct deferred_item *i)
{
	if (q->now_ns < i->again_ns)
		return false;
	switch (i->wait) {
	case WAIT_NOTHING:
		return true;
	case WAIT_PARTS:
		return i->seen != q->parts_came;
	case WAIT_ROWS:
		return q->now_ns >= i->retry_ns ||
		       tables_file_state(q->config.tables, i->slot) != TABLES_FILE_PENDING ||
		       tables_file_serial(q->config.tables, i->slot) != i->slot_serial;
	case WAIT_MAPPINGS:
		return q->now_ns >= i->retry_ns || !q->config.changes || i->seen != changes(q, i);
	}
	return true;
}

/* Walks a copy with the current tables into q->walk. Returns false if they do not know enough yet,
 * or if a part has not come. last: walk what is known. */
static bool walk(struct deferred_queue *q, struct deferred_item *i, bool last)
{
	take_ahead(q, i);
	if ((i->lacks_items || i->lacks_lines) && !last) {
		i->wait = WAIT_PARTS;
		i->seen = q->parts_came;
		return false;
	}
	if (i->lacks_items)
		i->sample.items = 0;
	i->lacks_items = false;

	const struct tables_mapping *m;
	struct process_entry p;
	struct walk *w = &q->walk;
	bool whole;
	/* Take the number first: the mappings may change while they are gathered. */
	const uint64_t seen = q->config.changes && !last ? changes(q, i) : 0;
	ssize_t n = q->config.mappings(q->config.ctx, &i->sample, &m, &whole);

	/* Gathering many mappings takes long, so wait longer before the next try. */
	i->again_ns = n > MANY_MAPPINGS ? q->now_ns + (uint64_t)n * AGAIN_NS_PER_MAPPING : 0;
	if (n < 0) {
		i->again_ns = q->now_ns + REFUSED_NS;
		i->wait = WAIT_NOTHING;
		return false;
	}
	i->seen = seen;
	if ((n == 0 && !whole) || tables_walk_maps(q->config.tables, m, (size_t)n, &p)) {
		wait_for(q, i, WAIT_MAPPINGS, 0, 0, false);
		return false;
	}
	w->pc = i->pc;
	w->sp = i->regs[UNWIND_REG_RSP];
	w->fp = i->regs[UNWIND_REG_RBP];
	memcpy(w->regs, i->regs, sizeof(w->regs));
	q->reading = i;
	q->past_end = q->env.is_short = false;
	q->env.tls = i->tls;
	q->env.g_below = i->g_below;
	q->env.returned = i->returns;
	q->env.returns = DEFERRED_RETURNS;
	env_current = &q->env;
	walk_begin(w, &p, (uint8_t)i->exact);
	w->sample = i->sample;
	memcpy(w->words, i->head, sample_head(&i->sample) * sizeof(*i->head));
	walk_place(w);
	walk_find_entries(w);
	while (!native_walk_step(w))
		;
	if (!last && wait_for_walk(q, i, whole))
		return false;
	if (w->reason == WALK_STACK_UNREADABLE && q->past_end)
		w->reason = WALK_COPY_END;
	if (i->sample.flags & SAMPLE_IN_EXEC)
		walk_exec(w);
	return true;
}

/* Walks, charges the time that it takes, and emits the sample if the walk is done. */
static bool walk_and_emit(struct deferred_queue *q, struct deferred_item *i, bool last)
{
	const uint64_t began_ns = walk_turns_clock();
	const bool done = walk(q, i, last);

	walk_turns_spend(&q->turns, i->owner, walk_turns_clock() - began_ns, q->now_ns);
	if (done)
		emit(q, &i->sample, i->head, &q->walk);
	return done;
}

/* Walks an item for the last time. If its owner has spent far too much, it keeps only what is
 * known without a walk. */
static void give_up(struct deferred_queue *q, struct deferred_item *i)
{
	const bool may = walk_turns_may_last(&q->turns, i->owner, q->now_ns);

	if (!may)
		owner_refuse(i->owner, OWNER_WALKS_CPU, 1);
	if (!may || !walk_and_emit(q, i, true)) {
		take_ahead(q, i);
		if (i->lacks_items)
			i->sample.items = 0;
		emit(q, &i->sample, i->head, NULL);
	}
	item_drop(q, i);
}

/* Returns the owner of a sample, without a reference: what is charged to the owner keeps it
 * alive. */
static struct owner *owner_of(struct deferred_queue *q, const struct sample *s)
{
	if (!q->owners)
		return NULL;
	struct owner *w = owners_get(
		q->owners,
		(struct owner_key){ .uid = s->owner_uid, .container = s->owner_container });
	owner_put(q->owners, w);
	return w;
}

/* Returns the offset from which the page at `at` is kept: bytes far below the leaf's RSP are never
 * read. */
static uint32_t kept_from(const struct deferred *d, uint64_t at)
{
	uint64_t rsp = d->regs[UNWIND_REG_RSP];

	return rsp - at < DEFERRED_CHUNK && rsp - at > BELOW_RSP
		       ? (uint32_t)(rsp - at - BELOW_RSP) & ~7u
		       : 0;
}

/* Returns the oldest sample of the owner who has most. */
static struct deferred_item *first_to_go(struct deferred_queue *q)
{
	struct owner *most = q->owners ? owners_largest(q->owners, OWNER_STACKS) : NULL;
	struct deferred_item *i;

	DL_FOREACH(q->items, i) {
		if (i->owner == most)
			break;
	}
	if (most)
		owner_refuse(most, OWNER_STACKS, 1);
	return i ? i : q->items;
}

void deferred_ahead(struct deferred_queue *q, const struct sample *s)
{
	const bool fetched = s->flags & SAMPLE_FETCHED;
	/* Skip the number of lines, which follows from the number of bytes. */
	const uint64_t *from = fetched ? sample_words(s) + 1 : sample_items(s);
	uint32_t words = s->items * 2u;

	if (fetched && !s->user_frames)
		return;
	if (fetched)
		words = s->user_frames - 1u;

	struct ahead *a = &q->ahead[q->next_ahead++ % AHEAD];
	q->parts_came++;
	size_t bytes = words * sizeof(uint64_t);

	free(a->data);
	*a = (struct ahead){
		.time_ns = s->time_ns, .tid = s->tid, .words = words, .fetched = fetched
	};
	a->data = malloc(bytes ? bytes : 1);
	if (a->data)
		memcpy(a->data, from, bytes);
}

void deferred_put(struct deferred_queue *q, const struct deferred_sample *d)
{
	uint32_t chunks = d->deferred.chunks < DEFERRED_CHUNKS ? d->deferred.chunks
							       : DEFERRED_CHUNKS;
	size_t kernel = d->sample.kernel_frames < SAMPLE_MAX_KERNEL ? d->sample.kernel_frames
								    : SAMPLE_MAX_KERNEL;
	uint32_t items = d->sample.items <= RUNTIME_MAX_ITEMS ? d->sample.items : 0;
	size_t head = kernel + 2 * (size_t)items;
	uint32_t objects = 0;

	for (unsigned n = 0; n < DEFERRED_OBJECTS; n++)
		objects += d->deferred.objects[n].at != 0;

	size_t bytes = sizeof(struct deferred_item) + head * sizeof(uint64_t) +
		       objects * sizeof(struct deferred_words);
	size_t most = bytes + chunks * (sizeof(struct piece) + DEFERRED_CHUNK);
	struct deferred_item *i = most <= q->config.ceiling ? malloc(bytes) : NULL;

	if (!i) {
		struct sample bare = d->sample;

		bare.items = 0;
		emit(q, &bare, (const uint64_t *)d->kernel, NULL);
		return;
	}
	i->bytes = bytes;
	i->owner = owner_of(q, &d->sample);
	hold(q, i->owner, bytes);
	i->again_ns = 0;
	i->wait = WAIT_NOTHING;
	i->slot = 0;
	i->frames = 0;
	i->scanned = false;
	i->sample = d->sample;
	i->sample.kernel_frames = (uint16_t)kernel;
	i->sample.items = (uint16_t)items;
	i->lacks_items = items;
	i->lacks_lines = d->sample.flags & SAMPLE_FETCHES;
	i->line = NULL;
	i->lines = 0;
	memcpy(i->head, d->kernel, kernel * sizeof(uint64_t));
	take_ahead(q, i);
	i->pc = d->deferred.pc;
	memcpy(i->regs, d->deferred.regs, sizeof(i->regs));
	i->tls = d->deferred.tls;
	i->g_below = d->deferred.g_below;
	memcpy(i->code, d->deferred.code, sizeof(i->code));
	memcpy(i->returns, d->deferred.returns, sizeof(i->returns));
	memcpy(i->ranges, d->deferred.ranges, sizeof(i->ranges));
	memcpy(i->chunk_at, d->deferred.chunk_at, sizeof(i->chunk_at));
	i->exact = d->deferred.exact;
	i->object = (struct deferred_words *)(i->head + head);
	i->objects = 0;
	for (unsigned n = 0; n < DEFERRED_OBJECTS; n++) {
		if (d->deferred.objects[n].at)
			i->object[i->objects++] = d->deferred.objects[n];
	}
	for (i->chunks = 0; i->chunks < chunks; i->chunks++) {
		uint64_t at = i->chunk_at[i->chunks];

		i->piece[i->chunks] =
			piece_get(q, i->owner, at, kept_from(&d->deferred, at),
				  d->deferred.stack + (size_t)i->chunks * DEFERRED_CHUNK);
	}
	DL_APPEND(q->items, i);
	q->count++;
	while (q->bytes > q->config.ceiling)
		give_up(q, first_to_go(q));
}

static bool is_expired(const struct deferred_queue *q, const struct deferred_item *i)
{
	return q->now_ns > i->sample.time_ns &&
	       q->now_ns - i->sample.time_ns > DEFERRED_PATIENCE_NS;
}

static uint32_t lane_of(const struct deferred_item *i)
{
	return i->owner ? i->owner->number : 0;
}

/* Puts the items that are due into the lanes of their owners. Returns the lanes with items, as a
 * ring of which it gives the last one: the owner after the one who was served last comes first. */
static struct lane *lanes_fill(struct deferred_queue *q, bool all)
{
	struct deferred_item *i;
	struct lane *last = NULL;
	bool any = false;

	DL_FOREACH(q->items, i) {
		if (!all && !is_expired(q, i) &&
		    (!is_useful(q, i) || !walk_turns_may(&q->turns, i->owner, q->now_ns)))
			continue;
		struct lane *l = &q->lane[lane_of(i)];

		i->next_due = NULL;
		if (l->first)
			l->last->next_due = i;
		else
			l->first = i;
		l->last = i;
		any = true;
	}
	for (uint32_t n = 1; any && n <= OWNERS_MAX; n++) {
		struct lane *l = &q->lane[(q->served + n) % OWNERS_MAX];

		if (!l->first)
			continue;
		l->next = last ? last->next : l;
		if (last)
			last->next = l;
		last = l;
	}
	return last;
}

/* Removes the first lane of the ring. Returns the last one, or NULL: none is left. */
static struct lane *lanes_drop_first(struct lane *last)
{
	struct lane *l = last->next;

	l->first = NULL;
	if (l == last)
		return NULL;
	last->next = l->next;
	return last;
}

static void serve(struct deferred_queue *q, struct deferred_item *i, bool all)
{
	q->served = lane_of(i);
	if (all || is_expired(q, i))
		give_up(q, i);
	else if (walk_turns_may(&q->turns, i->owner, q->now_ns) && walk_and_emit(q, i, false))
		item_drop(q, i);
}

void deferred_run(struct deferred_queue *q, uint64_t now_ns, bool all)
{
	if (!all && now_ns < q->look_ns)
		return;
	q->now_ns = now_ns;
	q->look_ns = q->count > MANY_ITEMS ? now_ns + (uint64_t)q->count * LOOK_NS_PER_ITEM : 0;
	walk_turns_tick(&q->turns);

	struct lane *last = lanes_fill(q, all);

	/* One item of each owner in turn. */
	while (last && (all || !walk_turns_tick_is_over(&q->turns))) {
		struct lane *l = last->next;
		struct deferred_item *i = l->first;

		l->first = i->next_due;
		last = l->first ? l : lanes_drop_first(last);
		serve(q, i, all);
	}
	/* What did not fit into this tick comes in the next one. */
	if (last)
		q->look_ns = 0;
	while (last)
		last = lanes_drop_first(last);
}

bool deferred_empty(const struct deferred_queue *q)
{
	return !q->items;
}
