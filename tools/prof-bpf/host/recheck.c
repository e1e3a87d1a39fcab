/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/recheck.h"

#include <stdlib.h>
#include "common/base/tables/hashtable.h"
#include <utlist.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/eviction.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/owners/timebudget.h"

#define RESYNC_BATCH 64 /* processes at once */
/* Limit of the time to spend: any user may have many processes. */
#define RESYNC_PART 5
#define RESYNC_PART_IDLE 50    /* for processes without samples */
#define LEADERLESS_BATCH 64    /* processes without a leader that are read at once, */
#define LEADERLESS_PUT_OFF 512 /* and those whose check is put off at once */
#define LAST_CHECK_NS 2000000000ull
#define LAST_FEW 64 /* processes, including ended ones that are still known */

enum recheck_seen {
	SEEN_NOT,    /* /proc cannot be read now */
	SEEN_GONE,   /* its last thread has ended, or the pid belongs to another process */
	SEEN_ENDING, /* its leader has ended or is about to */
	SEEN_WHOLE,
};

/* Reads the state of a process from /proc. */
static enum recheck_seen see(const struct host *h, const struct process *p)
{
	struct procfs_stat st;
	const int r = procfs_read_thread_stat(h->proc, p->pub.pid, &st);

	if (r)
		return process_says_gone(r) ? SEEN_GONE : SEEN_NOT;
	if (st.start_ns > p->pub.start_ns || st.state == 'X' ||
	    (st.state == 'Z' && st.threads <= 1))
		return SEEN_GONE;
	return st.exiting || st.state == 'Z' ? SEEN_ENDING : SEEN_WHOLE;
}

/* Checks the processes whose leader has exited and whose time has come. If their threads were
 * counted wrongly, nothing else ends them. Any user can have thousands of them. So an idle one is
 * checked less and less often, and its owner is charged as for reading mappings. If the owner has
 * used up its part, the check is put off. */
static void check_leaderless(struct host *h, uint64_t now_ns)
{
	const unsigned first = h->leader_first++;
	unsigned reads = 0, put_off = 0;

	for (unsigned n = 0; n <= PROCESSES_LEADER_DOUBLED; n++) {
		/* Begin with another interval each time, so that none is left out for long. */
		const unsigned i = (first + n) % (PROCESSES_LEADER_DOUBLED + 1);

		while (reads < LEADERLESS_BATCH && put_off < LEADERLESS_PUT_OFF) {
			struct process *p = h->leaderless[i];

			if (!p || now_ns < p->leader_look_ns)
				break;
			/* Since the last check. */
			const uint64_t since_ns = p->leader_look_ns - (PROCESSES_LEADER_NS << i);
			const unsigned next = p->sampled_ns > since_ns	     ? 0
					      : i < PROCESSES_LEADER_DOUBLED ? i + 1
									     : i;

			process_check_leader(h, p, next, now_ns);
			if (!mapping_turns_may(h, p->pub.owner, true, now_ns)) {
				put_off++;
				continue;
			}
			const struct mapping_turns_timer since = mapping_turns_begin();
			const enum recheck_seen s = see(h, p);

			reads++;
			mapping_turns_end(h, p->pub.owner, true, since);
			if (s == SEEN_GONE)
				process_end(h, p, now_ns);
			else if (s == SEEN_WHOLE)
				process_keeps_leader(h, p);
		}
	}
}

/* The run ends with the last selected process, so a missing exit record must not make it endless. A
 * process must be seen gone twice, so that its last records, perhaps a fork, are known by then. */
static void check_last(struct host *h, uint64_t now_ns)
{
	struct process *p, *next;

	if (!h->config.only_selected || now_ns < h->last_check_ns)
		return;
	h->last_check_ns = now_ns + LAST_CHECK_NS;
	if (h->process_count > LAST_FEW)
		return;
	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns)
			continue;
		const bool gone = see(h, p) == SEEN_GONE;

		if (gone && p->seen_gone)
			process_end(h, p, now_ns);
		else
			p->seen_gone = gone;
	}
}

static void note_pid(struct host *h, uint32_t pid)
{
	if (h->resync_len == h->resync_cap) {
		size_t cap = h->resync_cap ? h->resync_cap * 2 : 512;
		uint32_t *p = reallocarray(h->resync_pids, cap, sizeof(*p));

		if (!p)
			return;
		h->resync_pids = p;
		h->resync_cap = cap;
	}
	h->resync_pids[h->resync_len++] = pid;
}

/* Ends a process that is gone. Otherwise its mappings are read again: at once if samples need them,
 * or at its next sample. */
static void resync_one(struct host *h, struct process *p, uint64_t now_ns)
{
	struct procfs_stat st;
	const uint64_t stat_ns = clock_mono_ns();
	const int r = procfs_read_thread_stat(h->proc, p->pub.pid, &st);

	if (r < 0 && !process_says_gone(r)) {
		h->resync = true; /* check again later */
		return;
	}
	if (r || st.state == 'X' || (st.state == 'Z' && st.threads <= 1) ||
	    (st.start_ns != p->pub.start_ns &&
	     (!p->start_guessed || st.start_ns > p->pub.start_ns))) {
		process_end(h, p, now_ns);
		return;
	}
	p->threads = st.threads;
	p->counted_ns = stat_ns;
	p->pub.start_ns = st.start_ns;
	p->start_guessed = false;
	if (p->pub.flags & MSG_PROCESS_KERNEL)
		return;
	if (p->sampled || h->config.only_selected) {
		p->wants_maps = true;
		process_mark_dirty(h, p);
	} else if (!p->dropped) {
		eviction_drop_maps(h, p);
	}
}

/* Lists known processes; those with samples come first. */
static void note_known(struct host *h, bool sampled)
{
	struct process *p, *next;

	HASH_ITER(hh, h->by_pid, p, next) {
		if (!p->pub.end_ns && p->sampled == sampled)
			note_pid(h, p->pub.pid);
	}
}

/* After lost records, checks all known processes again, a few per tick. If the record of a start
 * was lost, the process becomes known with its first sample. Any user can make the kernel lose
 * records all the time. So this may take only a part of the time, and a smaller part for processes
 * without samples. */
static void resync(struct host *h, uint64_t now_ns)
{
	uint64_t part = RESYNC_PART_IDLE;

	if (h->resync && h->resync_at == h->resync_len && now_ns >= h->resync_ns) {
		h->resync = false;
		h->resync_ns = now_ns + RECHECK_LOST_NS;
		h->resync_at = h->resync_len = 0;
		note_known(h, true);
		note_known(h, false);
	}
	if (h->resync_at == h->resync_len || !timebudget_covers(h->resync_paid_ns, now_ns))
		return;
	const uint64_t began = clock_mono_ns();

	for (unsigned i = 0; i < RESYNC_BATCH && h->resync_at < h->resync_len; i++) {
		struct process *p = process_find_alive(h, h->resync_pids[h->resync_at++]);

		if (!p || p->scanned_ns >= h->resync_ns - RECHECK_LOST_NS)
			continue;
		part = p->sampled ? RESYNC_PART : part;
		resync_one(h, p, now_ns);
	}
	timebudget_pay(&h->resync_paid_ns, (clock_mono_ns() - began) * part, 0, now_ns);
}

void recheck(struct host *h, uint64_t now_ns)
{
	resync(h, now_ns);
	check_leaderless(h, now_ns);
	check_last(h, now_ns);
}
