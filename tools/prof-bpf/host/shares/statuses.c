/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/shares/statuses.h"

#include <errno.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/owners/timebudget.h"

struct timer {
	uint64_t now_ns, cpu_ns;
};

static int begin(const struct host *h, const struct owner *w, struct timer *ret)
{
	*ret = (struct timer){ .now_ns = clock_mono_ns() };
	if (h->slow_status_ns && ret->now_ns < h->slow_status_ns + STATUSES_WATCH_NS &&
	    !(w ? mapping_turns_may(h, w, false, ret->now_ns)
		: timebudget_covers(h->statuses_paid_ns, ret->now_ns)))
		return -EBUSY;
	ret->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return 0;
}

static void end(struct host *h, struct owner *w, struct timer since)
{
	const uint64_t ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - since.cpu_ns;

	if (ns < STATUSES_SLOW_NS)
		return;
	h->slow_status_ns = since.now_ns;
	if (w)
		mapping_turns_spend(h, w, false, ns, since.now_ns);
	else
		timebudget_pay(&h->statuses_paid_ns, ns * STATUSES_UNKNOWN_PART,
			       STATUSES_UNKNOWN_SAVED_NS, since.now_ns);
}

int statuses_read_uid(struct host *h, struct owner *w, uint32_t pid, uint32_t *ret_uid)
{
	struct timer t;
	int r = begin(h, w, &t);

	if (r)
		return r;
	r = procfs_read_uid(h->proc, pid, ret_uid);
	end(h, w, t);
	return r;
}

int statuses_read_ids(struct host *h, struct owner *w, uint32_t pid, struct procfs_ids *ret)
{
	struct timer t;
	int r = begin(h, w, &t);

	if (r)
		return r;
	r = procfs_read_ids(h->proc, pid, ret);
	end(h, w, t);
	return r;
}
