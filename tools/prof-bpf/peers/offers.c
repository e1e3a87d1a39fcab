/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/offers.h"

#include <string.h>
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/kernel/runtimes.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/owners/timebudget.h"

#define OFFER_NS 1000000000ull
#define OWNERS_PART 4 /* part of the offers that one owner may make */

/* Whether a budget allows another offer. Up to OFFERS_MAX may be ahead of the time. */
static bool allows(uint64_t paid_ns, uint64_t now_ns)
{
	return timebudget_covers(paid_ns, now_ns + OFFERS_MAX * OFFER_NS);
}

/* Whether the owner may offer another file. Root may always: its files are the host's own
 * programs. */
static bool may_offer(struct owner *w, uint64_t now_ns)
{
	if (!w || (!w->key.uid && !w->key.container))
		return true;
	if (!allows(w->paid_ns[OWNER_BUDGET_OFFERS], now_ns))
		return false;
	timebudget_pay(&w->paid_ns[OWNER_BUDGET_OFFERS], OWNERS_PART * OFFER_NS, 0, now_ns);
	return true;
}

void offers_add(struct offers *o, struct host_file *f, bool chosen, uint64_t now_ns)
{
	const bool hosts = f->flags & MSG_FILE_ROOT_ONLY;

	if (!o->wanted || f->offered || f->described || !f->path ||
	    !(chosen || runtimes_is_named(f->path)))
		return;
	if (hosts ? o->hosts == OFFERS_MAX
		  : o->count - o->hosts == OFFERS_MAX || !allows(o->paid_ns, now_ns) ||
			    !may_offer(host_file_owner(f), now_ns))
		return;
	if (!hosts)
		timebudget_pay(&o->paid_ns, OFFER_NS, 0, now_ns);
	f->offered = true;
	f->flags |= MSG_FILE_OFFERED;

	const unsigned at = hosts ? o->hosts++ : o->count;

	memmove(&o->files[at + 1], &o->files[at], (o->count - at) * sizeof(o->files[0]));
	o->files[at] = f->id;
	o->count++;
}

uint32_t offers_take(struct offers *o)
{
	const uint32_t first = o->count ? o->files[0] : 0;

	for (unsigned i = 1; i < o->count; i++)
		o->files[i - 1] = o->files[i];
	o->count -= o->count > 0;
	o->hosts -= o->hosts > 0;
	return first;
}

void offers_sent(struct offers *o)
{
	o->open++;
}

void offers_close(struct offers *o, struct host_file *f)
{
	if (f->offered && !f->looked_at && o->open)
		o->open--;
	f->looked_at = true;
}

bool offers_idle(const struct offers *o)
{
	return !o->count && !o->open;
}
