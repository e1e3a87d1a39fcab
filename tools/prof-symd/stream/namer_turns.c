/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whose turn it is (naming_turns.h), and whether it is too late to wait for names. */
#include "bpf/mix.h"
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "tools/prof-symd/stream/namer_internal.h"

const struct definition_process *namer_process_of(const struct namer *n, uint64_t thread)
{
	const struct definition_thread *t = idtable_get(&n->defs.threads, thread);

	return t ? definitions_find_process(&n->defs, t->def.process) : NULL;
}

uint64_t namer_owner_of(const struct namer *n, uint64_t thread)
{
	const struct definition_process *p = namer_process_of(n, thread);

	return p ? p->def.owner : NAMING_TURNS_NOBODY;
}

void namer_charge(struct namer *n, uint64_t thread)
{
	const struct definition_process *p = namer_process_of(n, thread);

	n->payer = p ? p->def.owner : 0;
	n->payer_bit = 1u << (n->payer * MIX_GOLDEN >> 59);
}

uint64_t namer_owner_of_process(const struct namer *n, uint64_t process)
{
	const struct definition_process *p = definitions_find_process(&n->defs, process);

	return p ? p->def.owner : NAMING_TURNS_NOBODY;
}

bool namer_must_yield(const struct namer *n, uint64_t owner, uint64_t now_ns)
{
	return n->turn_ns && naming_turns_others(&n->turns, owner) &&
	       (naming_turns_over(&n->turns, owner, namer_owners(n), now_ns) ||
		now_ns < naming_turns_paused_until(&n->turns, owner));
}

unsigned namer_owners(const struct namer *n)
{
	const unsigned owners = n->turns.owners > n->round.count ? n->turns.owners : n->round.count;

	return owners ? owners : 1;
}

bool namer_gives_up(const struct namer *n, uint64_t owner, uint64_t now_ns)
{
	return namer_is_late(n, now_ns) &&
	       ((naming_turns_over(&n->turns, owner, namer_owners(n), now_ns) &&
		 naming_turns_spent(&n->turns, owner, now_ns) > NAMER_FRUGAL_NS) ||
		now_ns >= n->late_ns + (NAMER_LAST_NS - NAMER_LATE_NS));
}

/* A callback of jit.h. Perf maps and jitdumps of owners whose turn is over are read only when no
 * other owner waits. */
static bool may_read(void *ctx, uint64_t process, uint64_t now_ns)
{
	const struct namer *n = ctx;

	return !namer_must_yield(n, namer_owner_of_process(n, process), now_ns);
}

static uint64_t owner_of(void *ctx, uint64_t process)
{
	return namer_owner_of_process(ctx, process);
}

static void took(void *ctx, uint64_t process, uint64_t begun_ns)
{
	struct namer *n = ctx;
	const uint64_t now_ns = clock_mono_ns();

	naming_turns_spend(&n->turns, namer_owner_of_process(n, process), now_ns - begun_ns,
			   now_ns);
}

void namer_take_turns(struct namer *n, uint64_t ns, void (*say_slow)(uint64_t))
{
	n->turn_ns = ns;
	n->say_slow = say_slow;
	if (n->jit) {
		n->jit->may_read = may_read;
		n->jit->took = took;
		n->jit->owner_of = owner_of;
		n->jit->turns_ctx = n;
	}
}

void namer_worked(struct namer *n, uint64_t ns, uint64_t now_ns)
{
	if (n->head_ns)
		n->head_ns = numbers_smaller(n->head_ns + ns, now_ns);
}

void namer_ends(struct namer *n, uint64_t now_ns)
{
	if (n->ending || !n->turn_ns)
		return;
	n->ending = true;
	n->late_ns = now_ns + NAMER_LATE_NS;
	program_until(now_ns + NAMER_LAST_NS);
}

bool namer_is_late(const struct namer *n, uint64_t now_ns)
{
	return n->late_ns && now_ns >= n->late_ns;
}
