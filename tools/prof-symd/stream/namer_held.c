/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that are held back until their generated code has names (held_samples.h). */
#include <errno.h>
#include "tools/prof-symd/stream/namer_internal.h"

/* Replaces a held sample of another owner, which is sent without its name. */
static int displace(struct namer *n, const struct held_sample *s, uint64_t now_ns)
{
	struct held_sample *last = held_samples_last(&n->held, s->owner);

	if (!last)
		return -ENOBUFS;
	n->owner = last->owner;
	n->give_up = true;
	const int r = namer_send_sample(n, &last->sample, now_ns);

	n->give_up = false;
	n->owner = s->owner;
	if (r)
		return r < 0 ? r : -ENOBUFS;
	held_samples_replace(&n->held, last, s);
	return 0;
}

int namer_send_or_hold(struct namer *n, const struct msg_sample *sample, uint64_t now_ns)
{
	int r = namer_send_sample(n, sample, now_ns);

	if (r != NAMER_HOLD)
		return r;
	const struct held_sample held = { .sample = *sample,
					  .process = n->lacking,
					  .version = jit_version(n->jit, n->lacking),
					  .since_ns = now_ns,
					  .owner = n->owner };
	r = held_samples_add(&n->held, &held);
	if (r == -ENOBUFS)
		r = displace(n, &held, now_ns);
	if (r != -ENOBUFS && r != -ENOMEM)
		return r;
	n->give_up = true;
	r = namer_send_sample(n, sample, now_ns);
	n->give_up = false;
	return r;
}

/* Whether a sample of the thread is held back. */
static bool holds_thread(const struct namer *n, uint64_t thread)
{
	bool held = false;

	for (size_t i = 0; i < n->held.len && !held; i++)
		held = n->held.at[i].sample.thread == thread;
	return held;
}

int namer_end_thread(struct namer *n, const struct msg_thread_end *m)
{
	struct definition_thread *t = idtable_get(&n->defs.threads, m->id);
	int r = 0;

	if (!t)
		return 0;
	if (holds_thread(n, m->id)) {
		n->ended_threads += !t->ended;
		t->ended = true;
		return 0;
	}
	if (t->sent == n->epoch)
		r = stream_put(n->out, &(struct msg){ .id = MSG_THREAD_END, .thread_end = *m });
	if (r)
		return r;
	n->ended_threads -= t->ended;
	definitions_end_thread(&n->defs, m->id);
	return 0;
}

/* Ends threads whose end had to wait for samples that were held back. */
static int end_threads(struct namer *n)
{
	const struct idtable *threads = &n->defs.threads;
	int r = 0;

	for (uint32_t i = 0; r == 0 && n->ended_threads && i < threads->len; i++) {
		const struct definition_thread *t = idtable_at(threads, i);

		if (t->ended && idmap_get(&threads->ids, t->def.id) == i)
			r = namer_end_thread(n, &(struct msg_thread_end){ .id = t->def.id });
	}
	return r;
}

int namer_run_held(struct namer *n, uint64_t process, uint64_t now_ns)
{
	int r = 0, ret = 0;

	for (size_t i = 0; i < n->held.len && r >= 0; i++) {
		struct held_sample *h = &n->held.at[i];
		bool must = process == NAMER_ALL || process == h->process ||
			    now_ns - h->since_ns >= HELD_SAMPLES_NS;

		if (!must && (process || jit_version(n->jit, h->process) == h->version))
			continue;
		n->give_up = must;
		n->owner = namer_owner_of(n, h->sample.thread);
		n->lean = namer_gives_up(n, n->owner, now_ns) ||
			  (!must && namer_must_yield(n, n->owner, now_ns));
		r = namer_send_sample(n, &h->sample, now_ns);
		n->give_up = n->lean = false;
		if (r == 0)
			h->process = 0;
		else if (r == NAMER_HOLD)
			h->version = jit_version(n->jit, n->lacking);
		else if (r == NAMER_WAIT && must && process)
			ret = NAMER_WAIT;
	}
	held_samples_sweep(&n->held);
	if (r >= 0 && n->ended_threads) {
		const int e = end_threads(n);

		r = e ? e : r;
	}
	return r < 0 ? r : ret;
}

int namer_settle_held(struct namer *n, uint64_t process, uint64_t now_ns)
{
	bool waits = false;

	for (size_t i = 0; i < n->held.len && !namer_is_late(n, now_ns); i++) {
		uint64_t of = n->held.at[i].process;
		int r;

		if (process != NAMER_ALL && of != process)
			continue;
		r = jit_settle(n->jit, of, now_ns);
		if (r < 0 && r != -ENOMEM)
			return r;
		waits |= r == JIT_LATER;
		if (process != NAMER_ALL)
			break;
	}
	return waits ? NAMER_WAIT : namer_run_held(n, process, now_ns);
}
