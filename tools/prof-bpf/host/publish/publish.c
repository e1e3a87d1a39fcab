/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/publish/publish.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/processes/entries.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/publish/reading.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/host/shares/places.h"

#define PUBLISH_NS_PER_MAPPING 2000u /* delay per mapping before a process is published again */
#define FULL_RETRY_NS 1000000000ull
#define WAITING_FEW 256u  /* processes that wait for a turn; looking at this few costs little */
#define WAITING_NS 1000u  /* otherwise the next look is this much later for each of them */
#define LOWEST 256u	  /* mappings at the lowest addresses, usually of the program */
#define FEW 1024u	  /* this many mappings fit if anything does */
#define WANTED_AT_ONCE 32 /* files of one sample that get slots at once */
#define PLACE_TRIES 4	  /* times that places are made for a process at once */
#define SMALL 64u	  /* only up to this many mappings are published before the first sample */
/* A fork's record comes at most this much later than the start of the process, with few
 * exceptions. */
#define GUESS_SAFE_NS 3000000ull

/* Corrects a guessed start time. A fork's record comes a moment after the start, so near the
 * boundary of a clock tick only the kernel knows the right tick. */
static void check_start(struct host *h, struct process *p)
{
	struct procfs_stat st;
	uint64_t start_ns, vague_ns;

	if (!p->start_guessed ||
	    (!p->vague_ns &&
	     bootclock_at(&h->boot, p->fork_ns, &vague_ns) % SAMPLE_START_TICK_NS > GUESS_SAFE_NS))
		return;
	/* The kernel's hook has stored the start time, if the parent was known then. An entry of an
	 * earlier process with this pid is older. */
	if (tables_process_start(h->config.tables, p->pub.pid, &start_ns) &&
	    start_ns <= p->pub.start_ns &&
	    p->pub.start_ns - start_ns <= SAMPLE_START_TICK_NS + p->vague_ns) {
		p->pub.start_ns = start_ns;
		p->start_guessed = false;
		return;
	}
	if (procfs_read_thread_stat(h->proc, p->pub.pid, &st) == 0 &&
	    st.start_ns <= p->pub.start_ns) {
		p->pub.start_ns = st.start_ns;
		p->start_guessed = false;
	}
}

/* Whether mapping i is text that a program moved to huge pages: anonymous memory within the mapping
 * of its file. It still counts as the file, at the same offsets. */
static bool is_moved_text(const struct maps *maps, uint32_t i)
{
	if (i == 0 || i + 1 >= maps->len)
		return false;
	const struct map *before = &maps->at[i - 1], *m = &maps->at[i], *after = &maps->at[i + 1];

	return !m->backing && before->backing && before->backing == after->backing &&
	       before->end == m->start && m->end == after->start &&
	       before->start - before->offset == after->start - after->offset;
}

/* Fills h->publish with the mappings of p for the tables. sampled: a sample waits for these
 * mappings. Returns their number, or -ENOMEM. */
static ssize_t make_publish(struct host *h, struct process *p, bool sampled, uint32_t *ret_left_out)
{
	const uint64_t now_ns = clock_mono_ns();
	size_t n = 0;

	*ret_left_out = 0;
	if (!p->maps)
		return 0;
	if (h->publish_cap < p->maps->len) {
		struct tables_mapping *to = reallocarray(NULL, p->maps->len, sizeof(*to));

		if (!to)
			return -ENOMEM;
		free(h->publish);
		h->publish = to;
		h->publish_cap = p->maps->len;
	}
	for (uint32_t i = 0; i < p->maps->len; i++) {
		struct map moved, *m = &p->maps->at[i];
		uint16_t slot = 0;

		if (is_moved_text(p->maps, i)) {
			const struct map *before = m - 1;

			moved = (struct map){ .start = m->start,
					      .end = m->end,
					      .offset = before->offset + (m->start - before->start),
					      .backing = before->backing };
			m = &moved;
		}
		if (m->backing) {
			if ((m->backing->state != FILES_BACKING_READY &&
			     m->backing->state != FILES_BACKING_FAILED) ||
			    (sampled && files_retry(m->backing))) {
				(*ret_left_out)++;
				continue;
			}
			slot = m->backing->file ? files_slot(m->backing->file, now_ns) : 0;
		}
		struct tables_mapping *last = n ? &h->publish[n - 1] : NULL;
		if (last && last->end == m->start && last->slot == slot &&
		    (slot <= TABLES_UNASKED ||
		     last->offset + (last->end - last->start) == m->offset))
			last->end = m->end;
		else
			h->publish[n++] = (struct tables_mapping){
				.start = m->start, .end = m->end, .offset = m->offset, .slot = slot
			};
	}
	return (ssize_t)n;
}

/* Reduces the n mappings in h->publish to `most`. Drops code that belongs to no file first, then
 * mappings that are neither among the lowest nor the highest addresses, where the program and its
 * libraries are. */
static size_t fit_publish(struct host *h, size_t n, size_t most)
{
	struct tables_mapping *at = h->publish;
	size_t over = n > most ? n - most : 0, left = 0;

	if (!over)
		return n;
	for (size_t i = 0; i < n; i++) {
		if (over && !at[i].slot)
			over--;
		else
			at[left++] = at[i];
	}
	if (over) {
		memmove(&at[LOWEST], &at[LOWEST + over], (left - LOWEST - over) * sizeof(*at));
		left -= over;
	}
	return left;
}

/* Drops mappings in places where another file was mapped at that time. Returns how many are
 * left. */
static size_t as_of(struct host *h, const struct process *p, size_t n, uint64_t time_ns)
{
	struct tables_mapping *at = h->publish;
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		if (!displaced_since(p->displaced, at[i].start, at[i].end, time_ns))
			at[left++] = at[i];
	}
	return left;
}

ssize_t publish_mappings(struct host *h, struct host_process *of, uint64_t time_ns,
			 const struct tables_mapping **ret, bool *ret_whole)
{
	struct process *p = (struct process *)of;
	uint32_t left_out;

	static_assert(offsetof(struct process, pub) == 0, "one is the head of the other");
	const bool large = mapping_turns_large(p);
	const uint64_t now_ns = clock_mono_ns();
	const struct mapping_turns_timer began = large ? mapping_turns_begin()
						       : (struct mapping_turns_timer){ 0 };

	if (!mapping_turns_may(h, p->pub.owner, large, now_ns)) {
		owner_refuse(p->pub.owner, OWNER_MAPS_CPU, 1);
		return -EAGAIN;
	}
	process_settle(h, p);
	ssize_t n = make_publish(h, p, true, &left_out);
	if (n > 0)
		n = (ssize_t)fit_publish(h, (size_t)n, TABLES_MAX_MAPPINGS);
	if (n > 0 && p->displaced)
		n = (ssize_t)as_of(h, p, (size_t)n, time_ns);
	if (large)
		mapping_turns_end(h, p->pub.owner, true, began);
	else if (n > 0)
		mapping_turns_spend(h, p->pub.owner, false, (uint64_t)n * MAPPING_TURNS_GATHER_NS,
				    now_ns);
	*ret = h->publish;
	*ret_whole = p->maps && !left_out && !p->wants_maps && !p->reading;
	return n;
}

void publish_wants(struct host *h, struct host_process *of, const uint64_t *addresses, size_t n)
{
	struct process *p = (struct process *)of;
	const uint64_t now_ns = clock_mono_ns();
	unsigned wanted = 0;

	for (size_t i = 0; p->maps && i < n && wanted < WANTED_AT_ONCE; i++) {
		const struct map *m = maps_find(p->maps, addresses[i]);

		if (m && is_moved_text(p->maps, (uint32_t)(m - p->maps->at)))
			m--;
		struct file *file = m && m->backing ? m->backing->file : NULL;

		if (!file || m->backing->state != FILES_BACKING_READY || file->pub.slot ||
		    now_ns < file->slot_ns)
			continue;
		wanted++;
		(void)files_sampled(h->files, file,
				    (struct files_mapper){ .process_id = of->id,
							   .pid = of->end_ns ? 0 : of->pid,
							   .owner = of->owner,
							   .parent_pid = of->parent_pid,
							   .start = m->start,
							   .end = m->end },
				    now_ns);
	}
	if (wanted)
		process_mark_dirty(h, p);
}

/* Whether publishing the n mappings in h->publish is useful for samples of the process. A process
 * that was never sampled takes little space in the tables, and none if the vDSO is its only file
 * with a slot. If places are scarce, it takes none from others. A run for a command samples only
 * processes with an entry. */
static bool is_worth(const struct host *h, const struct process *p, size_t n)
{
	unsigned slots = 0;

	if (p->sampled || h->config.only_selected)
		return true;
	if (n > SMALL || (!p->pub.generation && places_are_scarce(h, p->pub.owner)))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct file *f = files_by_slot(h->files, h->publish[i].slot);

		slots += f && !(f->pub.flags & MSG_FILE_VDSO);
	}
	return slots;
}

/* Publishes the first n mappings in h->publish. Returns as entry_set does. */
static int enter(struct host *h, struct process *p, size_t n)
{
	int r = entry_set(h, p, h->publish, n);

	for (unsigned i = 0; i < PLACE_TRIES && r == TABLES_NO_PLACE; i++) {
		if (!places_make(h, p->pub.owner))
			break;
		r = entry_set(h, p, h->publish, n);
	}
	return r;
}

/* Publishes a process. Returns true if done; false: try again later. */
static bool publish_now(struct host *h, struct process *p, uint64_t now_ns)
{
	uint32_t left_out;

	if (p->pub.flags & MSG_PROCESS_KERNEL)
		return true;
	if (now_ns < p->publish_ns)
		return false;
	if (p->wants_maps && now_ns >= p->rescan_ns)
		reading_begin(h, p);
	if (!p->changed)
		return !p->wants_maps;
	process_settle(h, p);
	ssize_t n = make_publish(h, p, false, &left_out);
	if (n < 0)
		return false;
	if (left_out && !p->unresolved) {
		p->unresolved = true;
		DL_PREPEND2(h->unresolved, p, unresolved_prev, unresolved_next);
	}
	/* No useful mapping is known yet: after an exec the vDSO is known first. */
	if (!p->maps || (left_out && left_out >= p->maps->len - 1 && !p->pub.generation))
		return !p->wants_maps;
	if (!is_worth(h, p, (size_t)n)) {
		entry_drop(h, p);
		return !p->wants_maps;
	}
	check_start(h, p);
	size_t fit = fit_publish(h, (size_t)n, TABLES_MAX_MAPPINGS);
	int r;

	/* A process without an entry costs more than one with some mappings missing, since each of
	 * its samples must be walked in user space. */
	for (;; fit = fit_publish(h, fit, fit / 2)) {
		r = enter(h, p, fit);
		if (r != TABLES_FULL || fit <= FEW)
			break;
	}
	if (!r && (size_t)n - fit > p->unpublished) {
		h->figures.limit += (size_t)n - fit - p->unpublished;
		p->unpublished = (uint32_t)((size_t)n - fit);
	}
	if (r) {
		h->figures.limit += r == TABLES_FULL || r == TABLES_NO_PLACE;
		if (r == TABLES_NO_PLACE && places_are_due(h, p->pub.owner))
			p->publish_ns = now_ns;
		else
			p->publish_ns = now_ns +
					mapping_turns_delay(&p->publish_failures, FULL_RETRY_NS);
		return false;
	}
	p->publish_failures = 0;
	h->figures.publishes++;
	p->changed = false;
	p->publish_ns = now_ns + (uint64_t)p->maps->len * PUBLISH_NS_PER_MAPPING;
	/* Many mappings were added since the last full reading, and unmappings are never reported:
	 * read again. */
	if (p->maps->len > 2 * p->scanned_len + PROCESSES_NOTED_MAX)
		p->wants_maps = true;
	return !p->wants_maps;
}

/* Tries again at a later tick, in the order of arrival. */
static void wait_for_turn(struct host *h, struct process *p)
{
	if (p->dirty || p->pub.end_ns)
		return;
	p->dirty = p->waits = true;
	DL_APPEND2(h->waiting, p, dirty_prev, dirty_next);
}

/* Whether the small processes of an owner may take more time in this tick. When prof-bpf starts, it
 * publishes those of all owners. */
static bool may_in_tick(const struct host *h, const struct owner *w)
{
	return h->scanning ||
	       (h->small_spent_ns < MAPPING_TURNS_SMALL_TICK_NS &&
		(w->tick != h->tick || w->tick_spent_ns < MAPPING_TURNS_OWNER_TICK_NS));
}

static void spend_in_tick(struct host *h, struct owner *w, uint64_t ns)
{
	if (w->tick != h->tick)
		w->tick_spent_ns = 0;
	w->tick = h->tick;
	w->tick_spent_ns += ns;
	h->small_spent_ns += ns;
}

/* Like publish_now, and charges the time that it takes. */
static bool publish(struct host *h, struct process *p, uint64_t now_ns)
{
	struct owner *w = p->pub.owner;
	const bool large = mapping_turns_large(p);

	/* The kernel's hook may have added its parent's mappings, which must not stay. */
	if (!mapping_turns_may(h, w, large, now_ns)) {
		if (p->entered)
			entry_drop(h, p);
		owner_refuse(w, OWNER_MAPS_CPU, p->sampled);
		return false;
	}
	if (!large) {
		/* Usually some microseconds, but up to a millisecond if the tables are full. */
		const uint64_t began_ns = clock_mono_ns();
		const bool done = publish_now(h, p, now_ns);
		const uint64_t ns = clock_mono_ns() - began_ns;

		mapping_turns_spend(h, w, false, ns, now_ns);
		spend_in_tick(h, w, ns);
		return done;
	}
	const struct mapping_turns_timer began = mapping_turns_begin();
	const bool done = publish_now(h, p, now_ns);

	mapping_turns_end(h, w, true, began);
	return done;
}

void publish_again(struct host *h, const struct host_file *of)
{
	struct process *p, *next;

	HASH_ITER(hh, h->by_pid, p, next) {
		for (uint32_t i = 0; p->maps && i < p->maps->len; i++) {
			const struct files_backing *b = p->maps->at[i].backing;

			if (b && b->file && &b->file->pub == of) {
				p->changed = true;
				process_mark_dirty(h, p);
				break;
			}
		}
	}
}

void publish_lost_slots(struct host *h)
{
	struct process *p, *next;

	HASH_ITER(hh, h->by_pid, p, next) {
		for (uint32_t i = 0; p->pub.generation && p->maps && i < p->maps->len; i++) {
			const struct files_backing *b = p->maps->at[i].backing;

			if (b && b->file && b->file->lost_slot) {
				entry_drop(h, p);
				process_mark_dirty(h, p);
				break;
			}
		}
	}
}

/* Publishes the processes of a list. Returns how many wait. */
static unsigned publish_list(struct host *h, struct process *list, uint64_t now_ns)
{
	struct process *p, *large = NULL;
	unsigned wait = 0;

	while (list) {
		p = list;
		list = p->dirty_next;
		p->dirty = p->waits = false;
		if (mapping_turns_large(p)) {
			p->dirty_next = large;
			p->dirty = true;
			large = p;
		} else if (!may_in_tick(h, p->pub.owner) || !publish(h, p, now_ns)) {
			wait_for_turn(h, p);
			wait++;
		}
	}
	const uint64_t began_ns = large ? clock_mono_ns() : 0;
	while (large) {
		p = large;
		large = p->dirty_next;
		p->dirty = false;
		if (clock_mono_ns() - began_ns > MAPPING_TURNS_TICK_NS || !publish(h, p, now_ns))
			wait_for_turn(h, p);
	}
	return wait;
}

void publish_all(struct host *h, uint64_t now_ns)
{
	struct process *p, *list;

	h->tick++;
	h->small_spent_ns = 0;
	if (h->resolved) {
		h->resolved = false;
		while (h->unresolved) {
			p = h->unresolved;
			DL_DELETE2(h->unresolved, p, unresolved_prev, unresolved_next);
			p->unresolved = false;
			process_mark_dirty(h, p);
		}
	}
	/* A user may have many processes that wait. New processes of others do not wait for
	 * them. */
	if (now_ns >= h->waiting_look_ns) {
		list = h->waiting;
		h->waiting = NULL;
		const unsigned wait = publish_list(h, list, now_ns);

		h->waiting_look_ns = wait < WAITING_FEW ? 0 : now_ns + wait * WAITING_NS;
	}
	list = h->dirty;
	h->dirty = NULL;
	(void)publish_list(h, list, now_ns);
}
