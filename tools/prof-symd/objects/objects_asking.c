/* SPDX-License-Identifier: Apache-2.0 */
/* Requests the memory of processes, in batches of pieces, and takes the answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-symd/objects/objects_internal.h"

/* Adds the keys of objects whose copies did not fit: they are copied again. Returns the number of
 * addresses. */
static uint32_t add_keys(struct objects *o, const struct objects_process *p, uint32_t count)
{
	for (uint32_t i = p->first; i != OBJECTS_NO_SLOT && count < OBJECTS_PIECES;
	     i = o->at[i].of_process[1]) {
		struct object *e = &o->at[i];

		if (e->state != OBJECT_READING || e->reading->asked || !objects_lacks_copy(o, e))
			continue;
		e->reading->asked = true;
		o->addresses[count] = e->address;
		o->lengths[count++] = 1;
	}
	return count;
}

/* After a request that was not taken. */
static void ask_for_keys_again(struct objects *o, const struct objects_process *p)
{
	for (uint32_t i = p->first; i != OBJECTS_NO_SLOT; i = o->at[i].of_process[1])
		if (o->at[i].state == OBJECT_READING)
			o->at[i].reading->asked = false;
}

/* Sends one request for objects of a process, if there are any. Returns 0 or errors of ask. */
static int send_one(struct objects *o, struct objects_process *p, uint64_t now_ns)
{
	struct objects_request rq = { .process = p->id, .pid = p->pid };
	uint32_t count = 0, all, slot = (uint32_t)(p - o->processes);
	uint64_t bytes = 0;
	bool keys = false;
	int r;

	if (p->request || !p->reading || o->reading_bytes > o->most_reading)
		return 0;
	p->sent = malloc(OBJECTS_PIECES * sizeof(*p->sent));
	if (!p->sent)
		return -ENOMEM;
	for (uint32_t i = p->first; i != OBJECTS_NO_SLOT && count < OBJECTS_PIECES;
	     i = o->at[i].of_process[1]) {
		struct object *e = &o->at[i];

		if (e->state != OBJECT_READING)
			continue;
		/* Do not request its memory: its copy may still come. */
		if (e->address >= RUNTIME_KEYS) {
			keys = true;
			continue;
		}
		for (unsigned piece = 0;
		     count < OBJECTS_PIECES && object_memory_next(&e->reading->memory, &piece);
		     piece++) {
			uint32_t wanted = e->reading->memory.pieces[piece].wanted;

			if (bytes + wanted > OBJECTS_BYTES)
				continue;
			o->addresses[count] = e->reading->memory.pieces[piece].address;
			o->lengths[count] = wanted;
			p->sent[count++] = (struct objects_sent){ .object = i,
								  .serial = e->reading->serial,
								  .piece = piece };
			bytes += wanted;
		}
	}
	all = keys ? add_keys(o, p, count) : count;
	if (!all) {
		objects_forget_request(o, p);
		return 0;
	}
	p->sent_count = count;
	p->asked_ns = now_ns;
	p->request = OBJECTS_REQUEST | o->next_request++;
	r = idmap_put(&o->by_request, p->request, slot);
	if (r) {
		p->request = 0;
		objects_forget_request(o, p);
		return r;
	}
	holdings_take(&o->places_asked, p->owner, 1);
	rq.id = p->request;
	rq.addresses = (struct msg_list){ .data = o->addresses, .len = all };
	rq.lengths = (struct msg_list){ .data = o->lengths, .len = all };
	o->counts.requests++;
	o->counts.pieces += all;
	o->counts.bytes += bytes;
	r = o->ask(o->ctx, &rq);
	/* The answer may have come during `ask`, and the table may have moved. */
	p = &o->processes[slot];
	if (r && p->used && p->request == rq.id) {
		objects_forget_request(o, p);
		ask_for_keys_again(o, p);
	}
	return r;
}

/* Gives up all objects of a process that are being read. */
static void give_up(struct objects *o, struct objects_process *p, enum object_state state,
		    uint64_t now_ns)
{
	for (uint32_t i = p->first; i != OBJECTS_NO_SLOT; i = o->at[i].of_process[1])
		if (o->at[i].state == OBJECT_READING)
			objects_stop_reading(o, &o->at[i], state, now_ns);
	objects_forget_request(o, p);
}

/* Gives up objects whose reading takes too long. */
static void give_up_overdue(struct objects *o, uint64_t now_ns)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < o->len && o->reading; i++) {
		struct object *e = &o->at[i];

		if (e->state != OBJECT_READING)
			continue;
		if (now_ns - e->since_ns >= OBJECTS_WAIT_NS) {
			objects_stop_reading(o, e, OBJECT_GONE, now_ns);
			e->late = e->state == OBJECT_GONE;
		} else if (!first || e->since_ns < first) {
			first = e->since_ns;
		}
	}
	for (uint32_t i = 0; i < o->process_len; i++) {
		struct objects_process *p = &o->processes[i];

		if (p->used && p->request && now_ns - p->asked_ns >= OBJECTS_WAIT_NS) {
			objects_forget_request(o, p);
			objects_set_dirty(o, p);
		}
	}
	o->first_ns = first;
}

int objects_send(struct objects *o, uint64_t now_ns)
{
	uint32_t last = o->dirty_last;

	o->retry_ns = 0;
	while (o->dirty_first != OBJECTS_NO_SLOT) {
		uint32_t i = o->dirty_first;
		struct objects_process *p = &o->processes[i];
		int r;

		if (o->by_request.len >= OBJECTS_IN_FLIGHT)
			break; /* all requests are open, and each has a deadline */
		o->dirty_first = p->next_dirty;
		if (o->dirty_first == OBJECTS_NO_SLOT)
			o->dirty_last = OBJECTS_NO_SLOT;
		p->dirty = false;
		const bool waits = p->not_before_ns > now_ns && p->reading;

		/* This owner has too many open requests, and each has a deadline. */
		if (waits || !holdings_admits(&o->places_asked, p->owner, OBJECTS_IN_FLIGHT)) {
			objects_set_dirty(o, p);
			if (waits && (!o->retry_ns || p->not_before_ns < o->retry_ns))
				o->retry_ns = p->not_before_ns;
			if (i == last)
				break;
			continue;
		}
		r = send_one(o, p, now_ns);
		p = &o->processes[i];
		if (r == -EAGAIN || r == -ENOBUFS) {
			objects_set_dirty(o, p);
			break;
		}
		if (r == -ENOMEM)
			return r;
		if (r && p->used)
			give_up(o, p, OBJECT_GONE, now_ns);
		if (i == last)
			break; /* processes that became dirty in this call wait for the next one */
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
	struct objects_process *p;
	struct objects_sent *sent;
	int r = 0;

	if (slot == IDMAP_NONE)
		return 0; /* the request was given up */
	p = &o->processes[slot];
	waited_ns = now_ns - p->asked_ns;
	o->counts.answers++;
	o->counts.waited_ns += waited_ns;
	if (o->counts.answers == 1 || waited_ns < o->counts.least_ns)
		o->counts.least_ns = waited_ns;
	if (m->status == EAGAIN) {
		objects_forget_request(o, p);
		ask_for_keys_again(o, p);
		p->not_before_ns = now_ns + OBJECTS_AGAIN_NS;
		if (p->reading)
			objects_set_dirty(o, p);
		return 0;
	}
	/* No piece was given because the rate was exceeded: read the objects again a moment
	 * later. */
	if (m->status == EFAULT)
		p->not_before_ns = now_ns + OBJECTS_AGAIN_NS;
	if (m->status && m->status != EFAULT) {
		bool refused = m->status == EACCES || m->status == EPERM;

		if (refused)
			p->refused_ns = now_ns;
		give_up(o, p, refused ? OBJECT_REFUSED : OBJECT_GONE, now_ns);
		return 0;
	}
	sent = p->sent;
	count = p->sent_count;
	p->sent = NULL;
	objects_forget_request(o, p);
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct object *e = &o->at[sent[i].object];
		uint64_t n = i < m->lengths.len ? m->lengths.data[i] : 0;
		struct span bytes = { 0 };

		if (n && (n > rest.len || !span_take(&rest, (size_t)n, &bytes)))
			rest.len = 0; /* the lengths add up to more than its bytes */
		if (e->state != OBJECT_READING || e->reading->serial != sent[i].serial)
			continue;
		o->reading_bytes -= e->reading->memory.bytes.len;
		r = object_memory_put(&e->reading->memory, sent[i].piece, bytes);
		o->reading_bytes += e->reading->memory.bytes.len;
	}
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct object *e = &o->at[sent[i].object];
		unsigned piece = 0;

		/* Try each object only once, at its last piece. */
		if (e->state != OBJECT_READING || e->reading->serial != sent[i].serial ||
		    (i + 1 < count && sent[i + 1].object == sent[i].object) ||
		    object_memory_next(&e->reading->memory, &piece))
			continue;
		r = objects_try_name(o, sent[i].object, now_ns);
	}
	free(sent);
	if (p->reading)
		objects_set_dirty(o, p);
	return r;
}
