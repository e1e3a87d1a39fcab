/* SPDX-License-Identifier: Apache-2.0 */
/* Events that were put aside (events_aside.h). */
#include <errno.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "tools/prof-symd/stream/namer_internal.h"

#define LOOK_NS 10000000ull /* interval between looks at these events */
#define SHORT_NS 500000ull  /* after a look that took no longer, another one may follow at once */
#define LOOKS_PART 10	    /* looks that find no name may take this part of the time */
/* How long the end of an epoch may wait for names: this part of the epoch's time, and at least this
 * long. */
#define SETTLE_PART 8
#define SETTLE_LEAST_NS 20000000ull

/* Returns the process that an event is about; 0: unknown, or none. */
static uint64_t process_of_event(const struct namer *n, const struct event *e)
{
	const struct definition_process *p;

	if (e->kind == EVENT_PROCESS_END)
		return e->process_end.id;
	p = namer_process_of(n, e->kind == EVENT_THREAD_END ? e->thread_end.id : e->sample.thread);
	return p ? p->def.id : 0;
}

bool namer_waits_aside(const struct namer *n, const struct event *e)
{
	const uint64_t process = e->kind == EVENT_PROCESS_END || e->kind == EVENT_THREAD_END
					 ? process_of_event(n, e)
					 : 0;

	return process && events_aside_has(&n->aside, process);
}

/* Replaces a sample of another owner, which is sent without its names. */
static int displace(struct namer *n, const struct event *e, uint64_t now_ns)
{
	struct events_aside_entry *last = events_aside_last(&n->aside, e->owner);

	if (!last)
		return -ENOBUFS;
	const bool lean = n->lean;

	n->give_up = n->lean = true;
	const int r = namer_run_event(n, &last->event, now_ns);

	n->give_up = false;
	n->lean = lean;
	if (r)
		return r < 0 ? r : -ENOBUFS;
	events_aside_replace(&n->aside, last, e, process_of_event(n, e));
	return 0;
}

int namer_put_aside(struct namer *n, const struct event *e, uint64_t now_ns)
{
	const int r = events_aside_add(&n->aside, e, process_of_event(n, e));

	return r == -ENOBUFS ? displace(n, e, now_ns) : r;
}

/* Whether the event is the end of a process, or of a thread in it, whose samples are still
 * waiting. */
static bool comes_too_early(const struct namer *n, size_t i)
{
	if (n->aside.at[i].event.kind == EVENT_SAMPLE)
		return false;
	for (size_t k = 0; k < i; k++)
		if (n->aside.at[k].process == n->aside.at[i].process)
			return true;
	return false;
}

/* Continues with the events of one owner until that time. */
static int run_aside_of(struct namer *n, uint64_t owner, uint64_t until_ns, uint64_t now_ns)
{
	bool waits = false;
	int r = 0;

	for (; n->round.at < n->aside.len; n->round.at++) {
		struct events_aside_entry *a = &n->aside.at[n->round.at];

		if (!a->process || naming_turns_key(&n->turns, a->event.owner) != owner ||
		    comes_too_early(n, n->round.at))
			continue;
		const uint64_t clock_ns = clock_mono_ns();

		n->paused |= until_ns && clock_ns > until_ns;
		if (n->paused)
			return 0;
		if (clock_ns < naming_turns_paused_until(&n->turns, owner) &&
		    !namer_is_late(n, now_ns)) {
			n->round.waited++;
			break;
		}
		n->give_up = n->lean = namer_gives_up(n, owner, now_ns);
		r = namer_run_paced(n, &a->event, now_ns);
		n->give_up = n->lean = false;
		if (r < 0)
			return r;
		if (r == 0)
			a->process = 0;
		n->round.went += r == 0;
		n->round.waited += r > 0;
		waits |= r > 0;
	}
	if (waits && namer_is_late(n, now_ns))
		naming_turns_spend(&n->turns, owner, now_ns - n->late_look_ns, now_ns);
	return 0;
}

/* Finishes a look at all events of this owner. If it took long and some events have to wait, the
 * next look comes later. So an owner with many waiting samples does not delay the others. */
static void leave_owner(struct namer *n, uint64_t owner, uint64_t now_ns)
{
	struct namer_round *round = &n->round;
	const uint64_t next_ns = round->took_ns > SHORT_NS && round->waited
					 ? now_ns + LOOKS_PART * round->count * round->took_ns *
							    round->waited /
							    (round->went + round->waited)
					 : 0;

	naming_turns_rest(&n->turns, owner, next_ns, now_ns);
	if (round->waited)
		round->soonest_ns = numbers_smaller(round->soonest_ns, next_ns);
	round->at = round->went = round->waited = 0;
	round->took_ns = 0;
	round->owner++;
}

/* Lists the owners of events that were put aside, those first whose programs took the least
 * time. */
static unsigned owners_of_aside(const struct namer *n, uint64_t now_ns,
				uint64_t ret[static NAMING_TURNS_OWNERS + 1])
{
	unsigned count = 0;

	for (size_t i = 0; i < n->aside.len; i++) {
		const uint64_t owner = naming_turns_key(&n->turns, n->aside.at[i].event.owner);
		unsigned k = 0;

		while (k < count && ret[k] != owner)
			k++;
		if (k < count || count > NAMING_TURNS_OWNERS)
			continue;
		const uint64_t spent_ns = naming_turns_spent(&n->turns, owner, now_ns);

		for (k = count++; k && naming_turns_spent(&n->turns, ret[k - 1], now_ns) > spent_ns;
		     k--)
			ret[k] = ret[k - 1];
		ret[k] = owner;
	}
	return count;
}

int namer_run_aside(struct namer *n, uint64_t until_ns, uint64_t now_ns)
{
	struct namer_round *round = &n->round;
	const bool late = namer_is_late(n, now_ns);
	uint64_t begun_ns = clock_mono_ns();
	int r = 0;

	if (round->owner == round->count) {
		if (begun_ns < round->next_ns && !late)
			return NAMER_WAIT;
		*round = (struct namer_round){ .soonest_ns = UINT64_MAX };
		round->count = owners_of_aside(n, now_ns, round->owners);
	}
	while (round->owner < round->count && r >= 0 && !n->paused) {
		const uint64_t owner = round->owners[round->owner];
		const uint64_t rests_until_ns =
			numbers_larger(naming_turns_rests_until(&n->turns, owner),
				       naming_turns_paused_until(&n->turns, owner));

		if (!late && !round->at && begun_ns < rests_until_ns) {
			round->soonest_ns = numbers_smaller(round->soonest_ns, rests_until_ns);
			round->owner++;
			continue;
		}
		r = run_aside_of(n, owner, until_ns, now_ns);
		const uint64_t ended_ns = clock_mono_ns();

		round->took_ns += ended_ns - begun_ns;
		if (r >= 0 && !n->paused)
			leave_owner(n, owner, ended_ns);
		begun_ns = ended_ns;
	}
	if (round->owner == round->count) {
		events_aside_sweep(&n->aside);
		n->late_look_ns = now_ns;
		round->next_ns = round->soonest_ns == UINT64_MAX ? 0 : round->soonest_ns;
		round->count = round->owner = n->aside.len ? round->count : 0;
	}
	return r < 0 ? r : n->aside.len ? NAMER_WAIT : 0;
}

uint64_t namer_next_look(const struct namer *n)
{
	const uint64_t soon_ns = clock_mono_ns() + LOOK_NS;
	uint64_t next_ns = 0;

	if (n->aside.len)
		next_ns = numbers_larger(n->round.next_ns, soon_ns);
	if (n->late_ns && !n->ended && (!next_ns || n->late_ns < next_ns))
		next_ns = numbers_larger(n->late_ns, soon_ns);
	return next_ns;
}

/* Returns how long an epoch's end may wait. The next epoch's samples also wait during that time. So
 * it is only a part of the epoch's time: a user who causes short epochs cannot make prof-symd fall
 * further and further behind. */
static uint64_t settle_ns(const struct namer *n, uint64_t now_ns)
{
	const uint64_t part_ns = (now_ns - n->epoch_ns) / SETTLE_PART;

	if (part_ns < SETTLE_LEAST_NS)
		return SETTLE_LEAST_NS;
	return numbers_smaller(part_ns, NAMER_LATE_NS);
}

void namer_settles(struct namer *n, uint64_t now_ns)
{
	if (n->turn_ns && !n->late_ns)
		n->late_ns = now_ns + settle_ns(n, now_ns);
}

/* Sends everything that was put aside: with names until the time is over, then without. */
int namer_settle_aside(struct namer *n, uint64_t now_ns)
{
	if (!n->aside.len)
		return 0;
	namer_settles(n, now_ns);
	return namer_run_aside(n, clock_mono_ns() + n->turn_ns, now_ns);
}
