/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/objects/objects_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include "common/base/bytes/numbers.h"
#include "common/wire/marks.h"
#include "common/wire/peer/lastword.h"
#include "tools/prof-symd/objects/telling.h"

#define EVICT_PART 32 /* this part of all objects is evicted at once */

int objects_new(int (*ask)(void *, const struct objects_request *), void *ctx, struct objects **ret)
{
	struct objects *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->ask = ask;
	o->ctx = ctx;
	o->next_request = 1;
	o->free_slot = o->newest = o->oldest = o->free_process = OBJECTS_NO_SLOT;
	o->dirty_first = o->dirty_last = OBJECTS_NO_SLOT;
	r = getrandom(&o->seed, sizeof(o->seed), 0) == sizeof(o->seed) ? 0 : -errno;
	o->sources.seed = o->seed;
	if (r == 0)
		r = idmap_init(&o->by_key, OBJECTS_MAX);
	if (r == 0)
		r = idmap_init(&o->by_process, OBJECTS_PROCESSES);
	if (r == 0)
		r = idmap_init(&o->by_request, OBJECTS_PROCESSES);
	if (r == 0)
		r = copies_init(&o->copies, o->seed, 0);
	o->copies.forgotten = &o->forgotten;
	if (r) {
		objects_free(o);
		return r;
	}
	objects_budget(o, OBJECTS_BUDGET);
	*ret = o;
	return 0;
}

void objects_owners(struct objects *o, uint64_t (*owner_of)(void *ctx, uint64_t process), void *ctx)
{
	o->owner_of = owner_of;
	o->owner_ctx = ctx;
}

void objects_forbid(struct objects *o, bool forbid)
{
	o->forbidden = forbid;
}

void objects_budget(struct objects *o, size_t bytes)
{
	o->most_copies = bytes / 16;
	o->most_reading = bytes / 8;
	o->budget = bytes - o->most_copies - o->most_reading;
	copies_limit(&o->copies, o->most_copies);
}

void objects_relieve(struct objects *o)
{
	copies_limit(&o->copies, 0);
	copies_limit(&o->copies, o->most_copies);
}

struct objects_counts objects_counts(const struct objects *o)
{
	struct objects_counts c = o->counts;

	c.kept = o->by_key.len;
	c.held_bytes = o->bytes + o->reading_bytes + o->copies.bytes.held;
	return c;
}

/* --- objects --- */

static void unlink_object(struct objects *o, uint32_t i)
{
	struct object *e = &o->at[i];

	*(e->prev != OBJECTS_NO_SLOT ? &o->at[e->prev].next : &o->newest) = e->next;
	*(e->next != OBJECTS_NO_SLOT ? &o->at[e->next].prev : &o->oldest) = e->prev;
}

static void link_newest(struct objects *o, uint32_t i)
{
	struct object *e = &o->at[i];

	e->prev = OBJECTS_NO_SLOT;
	e->next = o->newest;
	*(o->newest != OBJECTS_NO_SLOT ? &o->at[o->newest].prev : &o->oldest) = i;
	o->newest = i;
}

static void charge(struct objects *o, struct object *e, size_t bytes)
{
	const uint64_t owner = o->processes[e->process].owner;

	holdings_give(&o->held_by, owner, e->bytes);
	holdings_take(&o->held_by, owner, bytes);
	o->bytes += bytes - e->bytes;
	e->bytes = (uint32_t)bytes;
}

static struct object_id id_of(const struct objects *o, const struct object *e)
{
	return (struct object_id){ .process = o->processes[e->process].id,
				   .address = e->address,
				   .check = e->check };
}

static bool was_forgotten(const struct objects *o, const struct object *e)
{
	const struct object_id of = id_of(o, e);

	return forgotten_has(&o->forgotten, object_id_key(&of, o->seed));
}

bool objects_lacks_copy(const struct objects *o, const struct object *e)
{
	return e->address >= RUNTIME_KEYS && was_forgotten(o, e);
}

/* Names an object that is not being read. */
static void set_names(struct objects *o, struct object *e, struct object_names *names, size_t bytes)
{
	const struct object_id of = id_of(o, e);

	forgotten_remove(&o->forgotten, object_id_key(&of, o->seed));
	e->state = OBJECT_NAMED;
	e->names = names;
	charge(o, e, sizeof(*e) + bytes);
}

void objects_stop_reading(struct objects *o, struct object *e, enum object_state state,
			  uint64_t now_ns)
{
	struct objects_process *p = &o->processes[e->process];
	struct objects_reading *g = e->reading;

	o->reading_bytes -= g->memory.bytes.len;
	object_memory_done(&g->memory);
	e->reading = NULL;
	if (g->copied.names && state == OBJECT_GONE) {
		state = OBJECT_NAMED;
		set_names(o, e, g->copied.names, g->copied.bytes);
	} else if (g->copied.names) {
		object_names_free(g->copied.names);
	}
	free(g);
	e->state = state;
	e->since_ns = now_ns;
	e->late = false;
	p->reading--;
	o->reading--;
	holdings_give(&o->places_reading, p->owner, 1);
	e->failures += state == OBJECT_GONE && e->failures < UINT8_MAX;
	o->counts.gone += state == OBJECT_GONE;
	o->counts.refused += state == OBJECT_REFUSED;
	if (!o->reading)
		o->first_ns = 0;
}

static void remove_object(struct objects *o, uint32_t i)
{
	struct object *e = &o->at[i];
	uint32_t before = e->of_process[0], behind = e->of_process[1];

	if (e->state == OBJECT_READING)
		objects_stop_reading(o, e, OBJECT_GONE, 0);
	charge(o, e, 0);
	if (e->state == OBJECT_NAMED)
		object_names_free(e->names);
	if (before != OBJECTS_NO_SLOT)
		o->at[before].of_process[1] = behind;
	else
		o->processes[e->process].first = behind;
	if (behind != OBJECTS_NO_SLOT)
		o->at[behind].of_process[0] = before;
	const struct object_id of = id_of(o, e);

	idmap_remove(&o->by_key, object_id_key(&of, o->seed));
	unlink_object(o, i);
	*e = (struct object){ .next = o->free_slot };
	o->free_slot = i;
}

/* Evicts the least recently used objects, except `keep`, until at most `most` objects and `bytes`
 * bytes are left. */
static void evict(struct objects *o, uint32_t keep, bool small, size_t most, size_t bytes)
{
	for (uint32_t i = o->oldest;
	     i != OBJECTS_NO_SLOT && (o->by_key.len > most || o->bytes > bytes);) {
		const struct object *e = &o->at[i];
		const uint32_t newer = e->prev;

		if (i != keep && e->state != OBJECT_READING &&
		    (small || !holdings_is_small(&o->held_by, o->processes[e->process].owner))) {
			const struct object_id of = id_of(o, e);

			if (e->state == OBJECT_NAMED)
				forgotten_add(&o->forgotten, object_id_key(&of, o->seed));
			remove_object(o, i);
			o->counts.evicted++;
		}
		i = newer;
	}
}

/* Evicts objects of owners above the average first. It evicts more than necessary, since each call
 * walks past the oldest objects, which may belong to other owners. */
static void make_room(struct objects *o, uint32_t keep)
{
	if (o->by_key.len < OBJECTS_MAX && o->bytes <= o->budget)
		return;
	evict(o, keep, false, OBJECTS_MAX - OBJECTS_MAX / EVICT_PART,
	      o->budget - o->budget / EVICT_PART);
	evict(o, keep, true, OBJECTS_MAX - 1, o->budget);
}

/* --- processes --- */

static struct objects_process *find_process(const struct objects *o, uint64_t id)
{
	uint32_t i = idmap_get(&o->by_process, id);

	return i == IDMAP_NONE ? NULL : &o->processes[i];
}

static uint64_t owner_of(const struct objects *o, uint64_t process)
{
	return o->owner_of ? o->owner_of(o->owner_ctx, process) : 0;
}

/* Forgets a process of the owner with most processes, if none of its objects is being read. */
static void forget_one(struct objects *o, uint64_t owner)
{
	(void)holdings_gives_way(&o->places_known, owner, &owner);
	for (uint32_t n = 0; n < o->process_len; n++) {
		const struct objects_process *p = &o->processes[o->process_hand++ % o->process_len];

		if (p->used && p->owner == owner && !p->reading && !p->request) {
			objects_drop(o, p->id);
			return;
		}
	}
}

/* Adds a process. NULL: no memory, or all processes that it could replace have objects being
 * read. */
static struct objects_process *add_process(struct objects *o, uint64_t id, uint32_t pid)
{
	const uint64_t owner = owner_of(o, id);

	if (o->by_process.len >= OBJECTS_PROCESSES)
		forget_one(o, owner);
	uint32_t i = o->free_process;

	if (i == OBJECTS_NO_SLOT) {
		if (o->process_len == o->process_cap) {
			uint32_t cap = o->process_cap ? o->process_cap * 2 : 16;
			struct objects_process *all = reallocarray(o->processes, cap, sizeof(*all));

			if (!all)
				return NULL;
			o->processes = all;
			o->process_cap = cap;
		}
		i = o->process_len;
	}
	if (idmap_put(&o->by_process, id, i) != 0)
		return NULL;
	if (i == o->free_process)
		o->free_process = o->processes[i].next_dirty;
	else
		o->process_len++;
	holdings_take(&o->places_known, owner, 1);
	o->processes[i] = (struct objects_process){ .id = id,
						    .owner = owner,
						    .pid = pid,
						    .first = OBJECTS_NO_SLOT,
						    .next_dirty = OBJECTS_NO_SLOT,
						    .used = true };
	return &o->processes[i];
}

void objects_set_dirty(struct objects *o, struct objects_process *p)
{
	uint32_t i = (uint32_t)(p - o->processes);

	if (p->dirty)
		return;
	p->dirty = true;
	p->next_dirty = OBJECTS_NO_SLOT;
	*(o->dirty_last != OBJECTS_NO_SLOT ? &o->processes[o->dirty_last].next_dirty
					   : &o->dirty_first) = i;
	o->dirty_last = i;
}

void objects_forget_request(struct objects *o, struct objects_process *p)
{
	if (p->request) {
		idmap_remove(&o->by_request, p->request);
		holdings_give(&o->places_asked, p->owner, 1);
	}
	p->request = 0;
	p->sent_count = 0;
	free(p->sent);
	p->sent = NULL;
}

void objects_drop(struct objects *o, uint64_t process)
{
	struct objects_process *p = find_process(o, process);
	uint32_t i, *link = &o->dirty_first, last = OBJECTS_NO_SLOT;

	if (!p)
		return;
	while (p->first != OBJECTS_NO_SLOT)
		remove_object(o, p->first);
	objects_forget_request(o, p);
	i = (uint32_t)(p - o->processes);
	while (p->dirty && *link != OBJECTS_NO_SLOT) {
		if (*link == i) {
			*link = p->next_dirty;
			if (o->dirty_last == i)
				o->dirty_last = last;
			break;
		}
		last = *link;
		link = &o->processes[*link].next_dirty;
	}
	idmap_remove(&o->by_process, process);
	holdings_give(&o->places_known, p->owner, 1);
	*p = (struct objects_process){ .next_dirty = o->free_process };
	o->free_process = i;
}

void objects_forget_build(struct objects *o, const struct runtime_build *b, uint64_t now_ns)
{
	for (uint32_t i = 0; i < o->len && o->reading; i++) {
		struct object *e = &o->at[i];

		if (e->state == OBJECT_READING && e->reading->build == b)
			objects_stop_reading(o, e, OBJECT_GONE, now_ns);
	}
}

void objects_renew(struct objects *o, uint64_t now_ns)
{
	for (uint32_t i = 0; i < o->process_len; i++) {
		struct objects_process *p = &o->processes[i];

		if (p->used && !p->sampled)
			objects_drop(o, p->id);
		p->sampled = false;
		for (uint32_t next, k = p->used ? p->first : OBJECTS_NO_SLOT; k != OBJECTS_NO_SLOT;
		     k = next) {
			struct object *e = &o->at[k];

			next = e->of_process[1];
			if (e->state == OBJECT_READING && e->reading->copied.names)
				objects_stop_reading(o, e, OBJECT_GONE, now_ns);
			else if (e->state == OBJECT_READING)
				remove_object(o, k);
		}
	}
}

static void drop_all(struct objects *o)
{
	for (uint32_t i = 0; i < o->process_len; i++)
		if (o->processes[i].used)
			objects_drop(o, o->processes[i].id);
	free(o->at);
	free(o->processes);
	o->at = NULL;
	o->processes = NULL;
	o->len = o->cap = o->process_len = o->process_cap = 0;
	o->free_slot = o->newest = o->oldest = o->free_process = OBJECTS_NO_SLOT;
	o->dirty_first = o->dirty_last = OBJECTS_NO_SLOT;
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	drop_all(o);
	object_names_sources_done(&o->sources);
	runtime_object_done(&o->scratch);
	free(o->second);
	idmap_done(&o->by_key);
	idmap_done(&o->by_process);
	idmap_done(&o->by_request);
	copies_done(&o->copies);
	free(o);
}

/* --- reading --- */

/* Whether prof-bpf did not give a piece. This may be temporary: many new objects can make prof-bpf
 * forget an address between two requests (tools/prof-bpf/host/processes/reach.c). */
static bool lacks_a_piece(const struct object_memory *m)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->pieces[i].read && !m->pieces[i].have)
			return true;
	return false;
}

/* Restarts the reading of an object. */
static int read_again(struct objects *o, struct object *e)
{
	struct objects_reading *g = e->reading;

	o->reading_bytes -= g->memory.bytes.len;
	object_memory_done(&g->memory);
	g->rounds = 0;
	g->attempts++;
	g->serial = ++o->serial;
	objects_set_dirty(o, &o->processes[e->process]);
	return runtime_name(g->build, e->address, e->check, &g->memory, &o->scratch);
}

int objects_try_name(struct objects *o, uint32_t i, uint64_t now_ns)
{
	struct object *e = &o->at[i];
	struct objects_reading *g = e->reading;
	struct object_names *k = NULL;
	size_t bytes = 0;
	const uint64_t former = lastword_begin(LASTWORD_PROCESS, o->processes[e->process].id);
	int r = runtime_name(g->build, e->address, e->check, &g->memory, &o->scratch);

	if (r == RUNTIME_GONE && lacks_a_piece(&g->memory) && g->attempts + 1 < OBJECTS_ATTEMPTS)
		r = read_again(o, e);
	lastword_back(former);
	if (r < 0)
		return r;
	if (r == RUNTIME_WANTS && g->rounds++ < RUNTIME_ROUNDS)
		return 0;
	if (r == 0) {
		r = object_names_new(&o->scratch, &o->sources, &k, &bytes);
		if (r)
			return r;
		o->counts.named++;
		o->counts.rounds += g->rounds;
	}
	objects_stop_reading(o, e, k ? OBJECT_NAMED : OBJECT_GONE, now_ns);
	if (k)
		set_names(o, e, k, bytes);
	make_room(o, i);
	return 0;
}

/* --- naming from copies --- */

/* Whether only a copy could name the object, and its memory may not be copied. */
static bool take_refusal(struct objects *o, const struct object *e)
{
	const struct object_id of = id_of(o, e);

	return of.address >= RUNTIME_KEYS && copies_take_empty(&o->copies, &of);
}

static int name_from_copy(struct objects *o, const struct object *e, const struct runtime_build *b,
			  struct copy_names *ret)
{
	const struct object_id of = id_of(o, e);

	return copies_name(&o->copies, &of, b, &o->scratch, &o->sources, ret);
}

/* Names an object that only its copy can name, if the copy came after the frame. Returns 0 or
 * -ENOMEM. */
static int name_late(struct objects *o, uint32_t i)
{
	struct object *e = &o->at[i];
	struct copy_names copied;

	if (e->state != OBJECT_READING || e->address < RUNTIME_KEYS)
		return 0;
	if (take_refusal(o, e)) {
		objects_stop_reading(o, e, OBJECT_REFUSED, e->since_ns);
		return 0;
	}
	const int r = name_from_copy(o, e, e->reading->build, &copied);

	if (r || !copied.names)
		return r;
	objects_stop_reading(o, e, OBJECT_NAMED, e->since_ns);
	set_names(o, e, copied.names, copied.bytes);
	o->counts.named++;
	make_room(o, i);
	return 0;
}

int objects_take(struct objects *o, const struct msg_object *m)
{
	const struct object_id of = { .process = m->process,
				      .address = m->address,
				      .check = m->check };
	const uint32_t known = idmap_get(&o->by_key, object_id_key(&of, o->seed));

	if (m->addresses.len != m->lengths.len || copies_have(&o->copies, &of) ||
	    (known != IDMAP_NONE && o->at[known].state == OBJECT_NAMED))
		return 0;
	const int r = copies_take(&o->copies, m, owner_of(o, m->process));

	return r || known == IDMAP_NONE ? r : name_late(o, known);
}

/* --- looking up --- */

/* Begins to read a new object, unless its copy is enough. Returns 0 or -ENOMEM. */
static int start_reading(struct objects *o, struct object *e, const struct runtime_build *b,
			 uint64_t now_ns)
{
	struct objects_process *p = &o->processes[e->process];
	struct copy_names copied;
	int r;

	if (take_refusal(o, e)) {
		e->state = OBJECT_REFUSED;
		e->since_ns = now_ns;
		o->counts.refused++;
		return 0;
	}
	r = name_from_copy(o, e, b, &copied);
	if (r)
		return r;
	if (copied.names && (copied.whole || e->address >= RUNTIME_KEYS)) {
		set_names(o, e, copied.names, copied.bytes);
		e->since_ns = now_ns;
		o->counts.named++;
		make_room(o, (uint32_t)(e - o->at));
		return 0;
	}
	e->reading = malloc(sizeof(*e->reading));
	if (!e->reading) {
		if (copied.names)
			object_names_free(copied.names);
		return -ENOMEM;
	}
	*e->reading =
		(struct objects_reading){ .build = b, .serial = ++o->serial, .copied = copied };
	e->state = OBJECT_READING;
	e->since_ns = now_ns;
	p->reading++;
	holdings_take(&o->places_reading, p->owner, 1);
	if (!o->reading++)
		o->first_ns = now_ns;
	objects_set_dirty(o, p);
	return objects_try_name(o, (uint32_t)(e - o->at), now_ns);
}

/* Whether to try an object again that could not be read: soon at first, then each time after four
 * times as long. If only a copy can name it, when the copy has come, or to request it again. */
static bool is_due(const struct objects *o, const struct object *e, uint64_t now_ns)
{
	const struct object_id of = id_of(o, e);
	uint64_t ns = OBJECTS_SOON_NS;

	if (e->address >= RUNTIME_KEYS &&
	    (copies_have(&o->copies, &of) || !objects_lacks_copy(o, e)))
		return copies_have(&o->copies, &of);
	if (e->state == OBJECT_REFUSED)
		ns = OBJECTS_RETRY_NS;
	for (unsigned i = 1; i < e->failures && ns < OBJECTS_RETRY_NS; i++)
		ns *= 4;
	return now_ns - e->since_ns >= numbers_smaller(ns, OBJECTS_RETRY_NS);
}

/* Finds a place for one more object, without taking it; it may be o->len. Returns 0 or -ENOMEM. */
static int free_place(struct objects *o, uint32_t *ret)
{
	*ret = o->free_slot != OBJECTS_NO_SLOT ? o->free_slot : o->len;
	if (*ret < o->cap)
		return 0;
	const uint32_t cap = o->cap ? o->cap + o->cap / 2 : 64;
	struct object *at = reallocarray(o->at, cap, sizeof(*at));

	if (!at)
		return -ENOMEM;
	o->at = at;
	o->cap = cap;
	return 0;
}

/* Adds an object of a process that is being sampled. Returns 0, -ENOBUFS or -ENOMEM. */
static int add_object(struct objects *o, const struct object_id *of, uint32_t pid, uint32_t *ret)
{
	struct objects_process *p = find_process(o, of->process);
	uint32_t i;

	if (!p)
		p = add_process(o, of->process, pid);
	if (!p)
		return -ENOBUFS;
	p->sampled = true;
	int r = free_place(o, &i);

	if (!r)
		r = idmap_put(&o->by_key, object_id_key(of, o->seed), i);
	if (r)
		return r;
	if (i == o->len)
		o->len++;
	else
		o->free_slot = o->at[i].next;
	struct object *e = &o->at[i];

	*e = (struct object){ .process = (uint32_t)(p - o->processes),
			      .address = of->address,
			      .check = of->check,
			      .of_process = { OBJECTS_NO_SLOT, p->first } };
	if (p->first != OBJECTS_NO_SLOT)
		o->at[p->first].of_process[0] = i;
	p->first = i;
	link_newest(o, i);
	charge(o, e, sizeof(*e));
	*ret = i;
	return 0;
}

/* Finds or adds an object. Returns 0; -EBUSY: too many are already being read, `most` being the
 * number of places for all; -ENOBUFS: no space; -ENOMEM. */
static int get_object(struct objects *o, const struct runtime_build *b, const struct object_id *of,
		      uint32_t pid, uint32_t most, uint64_t now_ns, uint32_t *ret)
{
	uint32_t i = idmap_get(&o->by_key, object_id_key(of, o->seed));
	struct object *e;
	int r;

	if (i != IDMAP_NONE) {
		e = &o->at[i];
		struct objects_process *p = &o->processes[e->process];

		if (p->id != of->process || e->address != of->address || e->check != of->check)
			return -ENOBUFS; /* a hash collision */
		*ret = i;
		p->sampled = true;
		if ((e->state == OBJECT_GONE || e->state == OBJECT_REFUSED) &&
		    is_due(o, e, now_ns) && holdings_admits(&o->places_reading, p->owner, most))
			return start_reading(o, e, b, now_ns);
		return 0;
	}
	if (!holdings_admits(&o->places_reading, owner_of(o, of->process), most))
		return -EBUSY;
	make_room(o, OBJECTS_NO_SLOT);
	r = add_object(o, of, pid, &i);
	if (r)
		return r;
	*ret = i;
	e = &o->at[i];
	const uint64_t refused_ns = o->processes[e->process].refused_ns;

	if (refused_ns && now_ns - refused_ns < OBJECTS_RETRY_NS) {
		e->state = OBJECT_REFUSED;
		e->since_ns = refused_ns;
		o->counts.refused++;
		return 0;
	}
	r = start_reading(o, e, b, now_ns);
	if (r && e->state == 0)
		remove_object(o, i);
	return r;
}

static struct object_id id_of_frame(uint64_t process, uint64_t address, uint64_t mark)
{
	return (struct object_id){ .process = process,
				   .address = address,
				   .check = mark >> RUNTIME_CHECK_SHIFT };
}

void objects_want(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		  uint64_t address, uint64_t mark, uint64_t now_ns)
{
	const struct object_id of = id_of_frame(process, address, mark);
	uint32_t i;

	if (!o->forbidden)
		get_object(o, b, &of, pid, OBJECTS_READING - OBJECTS_RESERVED, now_ns, &i);
}

enum unnamed_reason objects_why(const struct objects *o)
{
	return o->why;
}

/* Says that an object has no name, and why. Returns OBJECTS_UNNAMED. */
static int say_unnamed(struct objects *o, const struct runtime_build *b, enum unnamed_reason why,
		       struct names *ret)
{
	telling_reason(ret, b, why ? MARKS_GONE : MARKS_NOT_READ);
	o->why = why;
	return OBJECTS_UNNAMED;
}

/* Returns why an object that is being read, or could not be read, has no name. */
static enum unnamed_reason why_gone(const struct objects *o, const struct object *e)
{
	if (was_forgotten(o, e))
		return UNNAMED_MEMORY_LIMIT;
	return e->state == OBJECT_READING || e->late ? UNNAMED_SLOW : UNNAMED_GONE;
}

int objects_lookup(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		   uint64_t address, uint64_t mark, bool give_up, uint64_t now_ns,
		   struct names *ret)
{
	const struct object_id of = id_of_frame(process, address, mark);
	struct object *e;
	uint32_t i;
	int r;

	names_reset(ret);
	if (o->forbidden) {
		o->counts.refused++;
		return say_unnamed(o, b, 0, ret);
	}
	r = get_object(o, b, &of, pid, OBJECTS_READING, now_ns, &i);
	if (r == -ENOMEM)
		return r;
	if (r == -EBUSY && !give_up)
		return OBJECTS_LATER; /* other readings end within a deadline */
	if (r)
		return say_unnamed(o, b, r == -EBUSY ? UNNAMED_SLOW : UNNAMED_MEMORY_LIMIT, ret);
	e = &o->at[i];
	unlink_object(o, i);
	link_newest(o, i);
	switch (e->state) {
	case OBJECT_NAMED:
		return telling_names(b, e->names, mark, ret) ? 0 : OBJECTS_HIDDEN;
	case OBJECT_READING:
		/* Another copy comes with a later sample, so this one need not wait. */
		if (!give_up && now_ns - e->since_ns < OBJECTS_WAIT_NS && !objects_lacks_copy(o, e))
			return OBJECTS_LATER;
		if (e->reading->copied.names)
			return telling_names(b, e->reading->copied.names, mark, ret)
				       ? 0
				       : OBJECTS_HIDDEN;
		break;
	case OBJECT_REFUSED:
		return say_unnamed(o, b, 0, ret);
	case OBJECT_GONE:
		break;
	}
	return say_unnamed(o, b, why_gone(o, e), ret);
}

int objects_lookup_second(struct objects *o, const struct runtime_build *b, uint64_t process,
			  uint32_t pid, uint64_t address, uint64_t mark, bool give_up,
			  uint64_t now_ns, struct names *names)
{
	if (!o->second)
		o->second = calloc(1, sizeof(*o->second));
	if (!o->second)
		return -ENOMEM;

	int r = objects_lookup(o, b, process, pid, address, mark, give_up, now_ns, o->second);

	if (r == 0 && names->count && o->second->count)
		names_join(names, &names->calls[names->count - 1], &o->second->calls[0]);
	return r == OBJECTS_LATER || r == -ENOMEM ? r : 0;
}
