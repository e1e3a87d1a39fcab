/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include "common/lastword.h"
#include "tools/prof-symd/idmap.h"
#include "tools/prof-symd/kept.h"
#include "tools/prof-symd/objects.h"

#define NONE UINT32_MAX
#define MAX_ROUNDS 6
#define RESERVED 256 /* of OBJECTS_READING: for those that are waited for, not wanted ahead */

enum state { READING = 1, NAMED, GONE, REFUSED };

/* What is held of one while it is read. */
struct reading {
	struct memory memory;
	const struct runtime_build *build; /* borrowed */
	uint32_t serial;		   /* of this reading */
	unsigned rounds;
	struct kept *taken; /* what it is called if no more can be read; NULL: nothing */
	size_t taken_bytes;
};

/* What came ahead of an object's frame. */
struct taken {
	uint64_t key, process, address, check;
	struct memory *memory; /* NULL: nothing did */
};

struct object {
	uint64_t address, since_ns;
	uint64_t check : 40; /* as in a mark */
	enum state state : 8;
	uint32_t process;	/* its slot */
	uint32_t bytes;		/* charged */
	uint32_t prev, next;	/* by use: the newest first */
	uint32_t of_process[2]; /* the one before and behind of the same process */
	union {
		struct reading *reading; /* READING */
		struct kept *kept;	 /* NAMED */
	};
};

struct sent {
	uint32_t object, serial, piece;
};

struct process {
	uint64_t id, request, asked_ns, refused_ns;
	uint64_t not_before_ns;	      /* after an answer that it was too much */
	uint32_t pid, first, reading; /* objects: the first, how many are read */
	uint32_t next_dirty;
	bool dirty, used;
	bool sampled; /* since objects_renew */
	uint32_t sent_count;
	struct sent *sent; /* while a request is under way */
};

struct objects {
	int (*ask)(void *, const struct objects_request *);
	void *ctx;
	struct idmap by_key, by_process, by_request, by_taken;
	struct taken *taken; /* OBJECTS_TAKEN: a ring, made with the first */
	uint32_t taken_next;
	uint64_t seed;
	struct object *at;
	uint32_t len, cap, free_slot; /* free ones by `next` */
	uint32_t newest, oldest;
	struct process *processes;
	uint32_t process_len, process_cap, free_process; /* free ones by next_dirty */
	uint32_t dirty_first, dirty_last;
	uint32_t reading, serial;
	size_t bytes, reading_bytes, budget;
	uint64_t next_request, first_ns; /* first_ns: no object was begun before; 0: none is read */
	uint64_t retry_ns;		 /* when the first not_before_ns is over; 0: none */
	struct runtime_object scratch;
	struct kept_sources sources;
	struct objects_counts counts;
	uint64_t addresses[OBJECTS_PIECES], lengths[OBJECTS_PIECES];
};

int objects_new(int (*ask)(void *, const struct objects_request *), void *ctx, struct objects **ret)
{
	struct objects *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->ask = ask;
	o->ctx = ctx;
	o->budget = OBJECTS_BUDGET;
	o->next_request = 1;
	o->free_slot = o->newest = o->oldest = o->free_process = NONE;
	o->dirty_first = o->dirty_last = NONE;
	r = getrandom(&o->seed, sizeof(o->seed), 0) == sizeof(o->seed) ? 0 : -errno;
	o->sources.seed = o->seed;
	if (r == 0)
		r = idmap_init(&o->by_key, OBJECTS_MAX);
	if (r == 0)
		r = idmap_init(&o->by_process, OBJECTS_PROCESSES);
	if (r == 0)
		r = idmap_init(&o->by_request, OBJECTS_PROCESSES);
	if (r == 0)
		r = idmap_init(&o->by_taken, OBJECTS_TAKEN);
	if (r) {
		objects_free(o);
		return r;
	}
	*ret = o;
	return 0;
}

void objects_budget(struct objects *o, size_t bytes)
{
	o->budget = bytes;
}

struct objects_counts objects_counts(const struct objects *o)
{
	struct objects_counts c = o->counts;

	c.kept = o->by_key.len;
	c.held_bytes = o->bytes + o->reading_bytes;
	return c;
}

/* --- objects --- */

static uint64_t key_of(const struct objects *o, uint64_t process, uint64_t address, uint64_t check)
{
	uint64_t h = o->seed;

	h = (h ^ process) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 32 ^ address) * 0xc4ceb9fe1a85ec53ull;
	h = (h ^ h >> 32 ^ check) * 0xff51afd7ed558ccdull;
	h ^= h >> 32;
	return h ? h : 1;
}

static void unlink_object(struct objects *o, uint32_t i)
{
	struct object *e = &o->at[i];

	*(e->prev != NONE ? &o->at[e->prev].next : &o->newest) = e->next;
	*(e->next != NONE ? &o->at[e->next].prev : &o->oldest) = e->prev;
}

static void link_newest(struct objects *o, uint32_t i)
{
	struct object *e = &o->at[i];

	e->prev = NONE;
	e->next = o->newest;
	*(o->newest != NONE ? &o->at[o->newest].prev : &o->oldest) = i;
	o->newest = i;
}

static void charge(struct objects *o, struct object *e, size_t bytes)
{
	o->bytes += bytes - e->bytes;
	e->bytes = (uint32_t)bytes;
}

static uint64_t key_of_object(const struct objects *o, const struct object *e)
{
	return key_of(o, o->processes[e->process].id, e->address, e->check);
}

/* It is no longer read. */
static void stop_reading(struct objects *o, struct object *e, enum state state, uint64_t now_ns)
{
	struct process *p = &o->processes[e->process];
	struct reading *g = e->reading;

	o->reading_bytes -= g->memory.bytes.len;
	memory_done(&g->memory);
	e->reading = NULL;
	if (g->taken && state == GONE) {
		state = NAMED;
		e->kept = g->taken;
		charge(o, e, sizeof(*e) + g->taken_bytes);
	} else if (g->taken) {
		kept_free(g->taken);
	}
	free(g);
	e->state = state;
	e->since_ns = now_ns;
	p->reading--;
	o->reading--;
	o->counts.gone += state == GONE;
	o->counts.refused += state == REFUSED;
	if (!o->reading)
		o->first_ns = 0;
}

static void remove_object(struct objects *o, uint32_t i)
{
	struct object *e = &o->at[i];
	uint32_t before = e->of_process[0], behind = e->of_process[1];

	if (e->state == READING)
		stop_reading(o, e, GONE, 0);
	charge(o, e, 0);
	if (e->state == NAMED)
		kept_free(e->kept);
	if (before != NONE)
		o->at[before].of_process[1] = behind;
	else
		o->processes[e->process].first = behind;
	if (behind != NONE)
		o->at[behind].of_process[0] = before;
	idmap_remove(&o->by_key, key_of_object(o, e));
	unlink_object(o, i);
	*e = (struct object){ .next = o->free_slot };
	o->free_slot = i;
}

/* The least recently used give way. */
static void make_room(struct objects *o, uint32_t keep)
{
	for (uint32_t i = o->oldest;
	     i != NONE && (o->by_key.len >= OBJECTS_MAX || o->bytes > o->budget);) {
		uint32_t newer = o->at[i].prev;

		if (i != keep && o->at[i].state != READING) {
			remove_object(o, i);
			o->counts.evicted++;
		}
		i = newer;
	}
}

/* --- processes --- */

static struct process *find_process(const struct objects *o, uint64_t id)
{
	uint32_t i = idmap_get(&o->by_process, id);

	return i == IDMAP_NONE ? NULL : &o->processes[i];
}

/* NULL: no memory, or too many. */
static struct process *add_process(struct objects *o, uint64_t id, uint32_t pid)
{
	uint32_t i = o->free_process;

	if (i == NONE) {
		if (o->process_len == o->process_cap) {
			uint32_t cap = o->process_cap ? o->process_cap * 2 : 16;
			struct process *all = reallocarray(o->processes, cap, sizeof(*all));

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
	o->processes[i] = (struct process){
		.id = id, .pid = pid, .first = NONE, .next_dirty = NONE, .used = true
	};
	return &o->processes[i];
}

static void set_dirty(struct objects *o, struct process *p)
{
	uint32_t i = (uint32_t)(p - o->processes);

	if (p->dirty)
		return;
	p->dirty = true;
	p->next_dirty = NONE;
	*(o->dirty_last != NONE ? &o->processes[o->dirty_last].next_dirty : &o->dirty_first) = i;
	o->dirty_last = i;
}

static void forget_request(struct objects *o, struct process *p)
{
	if (p->request)
		idmap_remove(&o->by_request, p->request);
	p->request = 0;
	p->sent_count = 0;
	free(p->sent);
	p->sent = NULL;
}

void objects_drop(struct objects *o, uint64_t process)
{
	struct process *p = find_process(o, process);
	uint32_t i, *link = &o->dirty_first, last = NONE;

	if (!p)
		return;
	while (p->first != NONE)
		remove_object(o, p->first);
	forget_request(o, p);
	i = (uint32_t)(p - o->processes);
	while (p->dirty && *link != NONE) {
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
	*p = (struct process){ .next_dirty = o->free_process };
	o->free_process = i;
}

static void drop_taken(struct objects *o, struct taken *t)
{
	if (!t->memory)
		return;
	idmap_remove(&o->by_taken, t->key);
	memory_done(t->memory);
	free(t->memory);
	t->memory = NULL;
}

void objects_renew(struct objects *o, uint64_t now_ns)
{
	for (uint32_t i = 0; i < o->process_len; i++) {
		struct process *p = &o->processes[i];

		if (p->used && !p->sampled)
			objects_drop(o, p->id);
		p->sampled = false;
		for (uint32_t next, k = p->used ? p->first : NONE; k != NONE; k = next) {
			struct object *e = &o->at[k];

			next = e->of_process[1];
			if (e->state == READING && e->reading->taken)
				stop_reading(o, e, GONE, now_ns);
			else if (e->state == READING)
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
	o->free_slot = o->newest = o->oldest = o->free_process = NONE;
	o->dirty_first = o->dirty_last = NONE;
	for (uint32_t i = 0; o->taken && i < OBJECTS_TAKEN; i++)
		drop_taken(o, &o->taken[i]);
	free(o->taken);
	o->taken = NULL;
	o->taken_next = 0;
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	drop_all(o);
	kept_sources_done(&o->sources);
	runtime_object_done(&o->scratch);
	idmap_done(&o->by_key);
	idmap_done(&o->by_process);
	idmap_done(&o->by_request);
	idmap_done(&o->by_taken);
	free(o);
}

/* --- reading --- */

/* As far as what was read allows. -ENOMEM. */
static int try_name(struct objects *o, uint32_t i, uint64_t now_ns)
{
	struct object *e = &o->at[i];
	struct reading *g = e->reading;
	struct kept *k = NULL;
	size_t bytes = 0;
	const uint64_t former = lastword_begin(LASTWORD_PROCESS, o->processes[e->process].id);
	int r = runtime_name(g->build, e->address, e->check, &g->memory, &o->scratch);

	lastword_back(former);
	if (r < 0)
		return r;
	if (r == RUNTIME_WANTS && g->rounds++ < MAX_ROUNDS)
		return 0;
	if (r == 0) {
		r = kept_new(&o->scratch, &o->sources, &k, &bytes);
		if (r)
			return r;
		o->counts.named++;
		o->counts.rounds += g->rounds;
	}
	stop_reading(o, e, k ? NAMED : GONE, now_ns);
	if (k) {
		e->kept = k;
		charge(o, e, sizeof(*e) + bytes);
	}
	make_room(o, i);
	return 0;
}

int objects_take(struct objects *o, const struct msg_object *m)
{
	uint64_t key = key_of(o, m->process, m->address, m->check);
	uint32_t known = idmap_get(&o->by_key, key);
	struct span rest = m->bytes;
	struct memory *memory;
	struct taken *t;
	int r;

	if (m->addresses.len != m->lengths.len || idmap_get(&o->by_taken, key) != IDMAP_NONE ||
	    (known != IDMAP_NONE && o->at[known].state == NAMED))
		return 0;
	if (!o->taken)
		o->taken = calloc(OBJECTS_TAKEN, sizeof(*o->taken));
	if (!o->taken)
		return -ENOMEM;
	t = &o->taken[o->taken_next];
	drop_taken(o, t);
	memory = calloc(1, sizeof(*memory));
	r = memory ? idmap_put(&o->by_taken, key, o->taken_next) : -ENOMEM;
	if (r) {
		free(memory);
		return r;
	}
	*t = (struct taken){ .key = key,
			     .process = m->process,
			     .address = m->address,
			     .check = m->check,
			     .memory = memory };
	memory->whole = true;
	o->taken_next = (o->taken_next + 1) % OBJECTS_TAKEN;
	for (uint32_t i = 0; r == 0 && i < m->addresses.len; i++) {
		struct span bytes;

		if (m->lengths.data[i] > rest.len ||
		    !span_take(&rest, (size_t)m->lengths.data[i], &bytes))
			break; /* it says more than it has */
		r = memory_add(memory, m->addresses.data[i], bytes);
	}
	return r;
}

/* What an object is called by what was taken of it; *ret_whole: there is no more to it. 0, also
 * with NULL for nothing; -ENOMEM. */
static int name_taken(struct objects *o, const struct object *e, const struct runtime_build *b,
		      struct kept **ret, size_t *ret_bytes, bool *ret_whole)
{
	uint64_t process = o->processes[e->process].id;
	uint32_t i = idmap_get(&o->by_taken, key_of(o, process, e->address, e->check));
	struct taken *t = i == IDMAP_NONE ? NULL : &o->taken[i];
	int r;

	*ret = NULL;
	if (!t || t->process != process || t->address != e->address || t->check != e->check)
		return 0;

	const uint64_t former = lastword_begin(LASTWORD_PROCESS, process);

	r = runtime_name(b, e->address, e->check, t->memory, &o->scratch);
	lastword_back(former);
	if (r == 0)
		r = kept_new(&o->scratch, &o->sources, ret, ret_bytes);
	*ret_whole = !t->memory->lacked;
	drop_taken(o, t);
	return r < 0 ? r : 0;
}

/* Begins to read an object that is in no state, unless what was taken of it is enough. 0, -ENOMEM.
 */
static int start_reading(struct objects *o, struct object *e, const struct runtime_build *b,
			 uint64_t now_ns)
{
	struct process *p = &o->processes[e->process];
	struct kept *taken;
	bool whole = false;
	size_t bytes = 0;
	int r = name_taken(o, e, b, &taken, &bytes, &whole);

	if (r)
		return r;
	if (taken && whole) {
		e->state = NAMED;
		e->kept = taken;
		e->since_ns = now_ns;
		charge(o, e, sizeof(*e) + bytes);
		o->counts.named++;
		make_room(o, (uint32_t)(e - o->at));
		return 0;
	}
	e->reading = malloc(sizeof(*e->reading));
	if (!e->reading) {
		if (taken)
			kept_free(taken);
		return -ENOMEM;
	}
	*e->reading = (struct reading){
		.build = b, .serial = ++o->serial, .taken = taken, .taken_bytes = bytes
	};
	e->state = READING;
	e->since_ns = now_ns;
	p->reading++;
	if (!o->reading++)
		o->first_ns = now_ns;
	set_dirty(o, p);
	return try_name(o, (uint32_t)(e - o->at), now_ns);
}

/* The object, new or not. 0; -EBUSY: `most` are being read; -ENOBUFS: no room; -ENOMEM. */
static int get_object(struct objects *o, const struct runtime_build *b, uint64_t process,
		      uint32_t pid, uint64_t address, uint64_t check, uint32_t most,
		      uint64_t now_ns, uint32_t *ret)
{
	uint64_t key = key_of(o, process, address, check);
	uint32_t i = idmap_get(&o->by_key, key);
	struct process *p;
	struct object *e;
	int r;

	if (i != IDMAP_NONE) {
		e = &o->at[i];
		if (o->processes[e->process].id != process || e->address != address ||
		    e->check != check)
			return -ENOBUFS; /* another with the same key */
		*ret = i;
		o->processes[e->process].sampled = true;
		if ((e->state == GONE || e->state == REFUSED) &&
		    now_ns - e->since_ns >= OBJECTS_RETRY_NS && o->reading < most)
			return start_reading(o, e, b, now_ns);
		return 0;
	}
	if (o->reading >= most)
		return -EBUSY;
	make_room(o, NONE);
	p = find_process(o, process);
	if (!p)
		p = add_process(o, process, pid);
	if (!p)
		return -ENOBUFS;
	p->sampled = true;
	i = o->free_slot;
	if (i == NONE && o->len == o->cap) {
		uint32_t cap = o->cap ? o->cap + o->cap / 2 : 64;
		struct object *at = reallocarray(o->at, cap, sizeof(*at));

		if (!at)
			return -ENOMEM;
		o->at = at;
		o->cap = cap;
	}
	r = idmap_put(&o->by_key, key, i == NONE ? o->len : i);
	if (r)
		return r;
	if (i == NONE)
		i = o->len++;
	else
		o->free_slot = o->at[i].next;
	e = &o->at[i];
	*e = (struct object){ .process = (uint32_t)(p - o->processes),
			      .address = address,
			      .check = check,
			      .of_process = { NONE, p->first } };
	if (p->first != NONE)
		o->at[p->first].of_process[0] = i;
	p->first = i;
	link_newest(o, i);
	charge(o, e, sizeof(*e));
	*ret = i;
	if (p->refused_ns && now_ns - p->refused_ns < OBJECTS_RETRY_NS) {
		e->state = REFUSED;
		e->since_ns = p->refused_ns;
		o->counts.refused++;
		return 0;
	}
	r = start_reading(o, e, b, now_ns);
	if (r && e->state == 0)
		remove_object(o, i);
	return r;
}

void objects_want(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		  uint64_t address, uint64_t mark, uint64_t now_ns)
{
	uint32_t i;

	get_object(o, b, process, pid, address, mark >> RUNTIME_CHECK_SHIFT,
		   OBJECTS_READING - RESERVED, now_ns, &i);
}

static void say(struct names *ret, const struct runtime_build *b, const char *what)
{
	char text[64];
	struct call *c = &ret->calls[0];

	snprintf(text, sizeof(text), "[%s: %s]", runtime_label(b), what);
	*c = (struct call){ .name = names_keep(ret, text, strlen(text)) };
	c->system_name = c->name;
	ret->count = 1;
}

int objects_lookup(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		   uint64_t address, uint64_t mark, bool give_up, uint64_t now_ns,
		   struct names *ret)
{
	struct object *e;
	uint32_t i;
	int r = get_object(o, b, process, pid, address, mark >> RUNTIME_CHECK_SHIFT,
			   OBJECTS_READING, now_ns, &i);

	names_reset(ret);
	if (r == -ENOMEM)
		return r;
	if (r == -EBUSY && !give_up)
		return OBJECTS_LATER; /* each is over within its deadline */
	if (r) {
		say(ret, b, "gone");
		return 0;
	}
	e = &o->at[i];
	unlink_object(o, i);
	link_newest(o, i);
	switch (e->state) {
	case NAMED:
		if (kept_hidden(e->kept))
			return OBJECTS_HIDDEN;
		kept_tell(e->kept, mark & RUNTIME_POSITION_MASK, ret);
		return 0;
	case READING:
		if (!give_up && now_ns - e->since_ns < OBJECTS_WAIT_NS)
			return OBJECTS_LATER;
		if (e->reading->taken) {
			if (kept_hidden(e->reading->taken))
				return OBJECTS_HIDDEN;
			kept_tell(e->reading->taken, mark & RUNTIME_POSITION_MASK, ret);
			return 0;
		}
		say(ret, b, "gone");
		return 0;
	case REFUSED:
		say(ret, b, "memory not read");
		return 0;
	case GONE:
		break;
	}
	say(ret, b, "gone");
	return 0;
}

/* --- asking --- */

/* One request of a process's objects. 0: sent, or nothing to send; errors of ask. */
static int send_one(struct objects *o, struct process *p, uint64_t now_ns)
{
	struct objects_request rq = { .process = p->id, .pid = p->pid };
	uint32_t count = 0, slot = (uint32_t)(p - o->processes);
	uint64_t bytes = 0;
	int r;

	if (p->request || !p->reading || o->reading_bytes > 2 * o->budget)
		return 0;
	p->sent = malloc(OBJECTS_PIECES * sizeof(*p->sent));
	if (!p->sent)
		return -ENOMEM;
	for (uint32_t i = p->first; i != NONE && count < OBJECTS_PIECES;
	     i = o->at[i].of_process[1]) {
		struct object *e = &o->at[i];

		if (e->state != READING)
			continue;
		for (unsigned piece = 0;
		     count < OBJECTS_PIECES && memory_next(&e->reading->memory, &piece); piece++) {
			uint32_t wanted = e->reading->memory.pieces[piece].wanted;

			if (bytes + wanted > OBJECTS_BYTES)
				continue;
			o->addresses[count] = e->reading->memory.pieces[piece].address;
			o->lengths[count] = wanted;
			p->sent[count++] = (struct sent){ .object = i,
							  .serial = e->reading->serial,
							  .piece = piece };
			bytes += wanted;
		}
	}
	if (!count) {
		forget_request(o, p);
		return 0;
	}
	p->sent_count = count;
	p->asked_ns = now_ns;
	p->request = OBJECTS_REQUEST | o->next_request++;
	r = idmap_put(&o->by_request, p->request, slot);
	if (r) {
		p->request = 0;
		forget_request(o, p);
		return r;
	}
	rq.id = p->request;
	rq.addresses = (struct u64s){ .data = o->addresses, .len = count };
	rq.lengths = (struct u64s){ .data = o->lengths, .len = count };
	o->counts.requests++;
	o->counts.pieces += count;
	o->counts.bytes += bytes;
	r = o->ask(o->ctx, &rq);
	/* It may have been answered already, and the table have moved. */
	p = &o->processes[slot];
	if (r && p->used && p->request == rq.id)
		forget_request(o, p);
	return r;
}

/* All that is read of a process will not come. */
static void give_up(struct objects *o, struct process *p, enum state state, uint64_t now_ns)
{
	for (uint32_t i = p->first; i != NONE; i = o->at[i].of_process[1])
		if (o->at[i].state == READING)
			stop_reading(o, &o->at[i], state, now_ns);
	forget_request(o, p);
}

/* Those begun too long ago. */
static void give_up_overdue(struct objects *o, uint64_t now_ns)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < o->len && o->reading; i++) {
		struct object *e = &o->at[i];

		if (e->state != READING)
			continue;
		if (now_ns - e->since_ns >= OBJECTS_WAIT_NS)
			stop_reading(o, e, GONE, now_ns);
		else if (!first || e->since_ns < first)
			first = e->since_ns;
	}
	for (uint32_t i = 0; i < o->process_len; i++) {
		struct process *p = &o->processes[i];

		if (p->used && p->request && now_ns - p->asked_ns >= OBJECTS_WAIT_NS) {
			forget_request(o, p);
			set_dirty(o, p);
		}
	}
	o->first_ns = first;
}

int objects_send(struct objects *o, uint64_t now_ns)
{
	uint32_t last = o->dirty_last;

	o->retry_ns = 0;
	while (o->dirty_first != NONE) {
		uint32_t i = o->dirty_first;
		struct process *p = &o->processes[i];
		int r;

		o->dirty_first = p->next_dirty;
		if (o->dirty_first == NONE)
			o->dirty_last = NONE;
		p->dirty = false;
		if (p->not_before_ns > now_ns && p->reading) {
			set_dirty(o, p);
			if (!o->retry_ns || p->not_before_ns < o->retry_ns)
				o->retry_ns = p->not_before_ns;
			if (i == last)
				break;
			continue;
		}
		r = send_one(o, p, now_ns);
		p = &o->processes[i];
		if (r == -EAGAIN || r == -ENOBUFS) {
			set_dirty(o, p);
			break;
		}
		if (r == -ENOMEM)
			return r;
		if (r && p->used)
			give_up(o, p, GONE, now_ns);
		if (i == last)
			break; /* what became dirty meanwhile waits for the next time */
	}
	if (o->first_ns && now_ns - o->first_ns >= OBJECTS_WAIT_NS)
		give_up_overdue(o, now_ns);
	return 0;
}

uint64_t objects_deadline(const struct objects *o)
{
	uint64_t overdue = o->first_ns ? o->first_ns + OBJECTS_WAIT_NS : 0;

	return o->retry_ns && o->retry_ns < overdue ? o->retry_ns : overdue;
}

int objects_answer(struct objects *o, const struct msg_memory_answer *m, uint64_t now_ns)
{
	uint32_t slot = idmap_get(&o->by_request, m->id), count;
	struct span rest = m->bytes;
	uint64_t waited_ns;
	struct process *p;
	struct sent *sent;
	int r = 0;

	if (slot == IDMAP_NONE)
		return 0; /* it was given up */
	p = &o->processes[slot];
	waited_ns = now_ns - p->asked_ns;
	o->counts.answers++;
	o->counts.waited_ns += waited_ns;
	if (o->counts.answers == 1 || waited_ns < o->counts.least_ns)
		o->counts.least_ns = waited_ns;
	if (m->status == EAGAIN) {
		forget_request(o, p);
		p->not_before_ns = now_ns + OBJECTS_AGAIN_NS;
		if (p->reading)
			set_dirty(o, p);
		return 0;
	}
	if (m->status) {
		bool refused = m->status == EACCES || m->status == EPERM;

		if (refused)
			p->refused_ns = now_ns;
		give_up(o, p, refused ? REFUSED : GONE, now_ns);
		return 0;
	}
	sent = p->sent;
	count = p->sent_count;
	p->sent = NULL;
	forget_request(o, p);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct object *e = &o->at[sent[i].object];
		uint64_t n = i < m->lengths.len ? m->lengths.data[i] : 0;
		struct span bytes = { 0 };

		if (n && (n > rest.len || !span_take(&rest, (size_t)n, &bytes)))
			rest.len = 0; /* it says more than it has */
		if (e->state != READING || e->reading->serial != sent[i].serial)
			continue;
		o->reading_bytes -= e->reading->memory.bytes.len;
		r = memory_put(&e->reading->memory, sent[i].piece, bytes);
		o->reading_bytes += e->reading->memory.bytes.len;
	}
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct object *e = &o->at[sent[i].object];
		unsigned piece = 0;

		/* Once for each object: with its last piece. */
		if (e->state != READING || e->reading->serial != sent[i].serial ||
		    (i + 1 < count && sent[i + 1].object == sent[i].object) ||
		    memory_next(&e->reading->memory, &piece))
			continue;
		r = try_name(o, sent[i].object, now_ns);
	}
	free(sent);
	if (p->reading)
		set_dirty(o, p);
	return r;
}
