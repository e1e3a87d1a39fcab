/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/figures/uptime.h"

void uptime_next(struct uptime *l)
{
	if (!l->since_ns)
		return;
	l->sampled_ns += l->until_ns - l->since_ns;
	l->away_ns = l->until_ns;
	l->since_ns = l->until_ns = 0;
}

/* Ends a gap without sampling. */
static void come_back(struct uptime *l, uint64_t ns)
{
	if (l->away_ns && ns > l->away_ns)
		l->unsampled_ns += ns - l->away_ns;
	l->away_ns = 0;
}

void uptime_since(struct uptime *l, uint64_t ns)
{
	if (l->since_ns || !ns)
		return;
	come_back(l, ns);
	l->since_ns = ns;
	if (!l->first_ns)
		l->first_ns = ns;
	uptime_until(l, ns);
}

void uptime_until(struct uptime *l, uint64_t ns)
{
	if (!l->since_ns || ns <= l->until_ns)
		return;
	l->until_ns = ns > l->since_ns ? ns : l->since_ns;
	if (l->until_ns > l->last_ns)
		l->last_ns = l->until_ns;
}

void uptime_conclude(struct uptime *l, bool ended, uint64_t end_ns)
{
	const bool sampled = l->since_ns;

	uptime_next(l);
	if (ended && sampled)
		return;
	if (l->run_until_ns)
		end_ns = l->run_until_ns;
	else if (!ended)
		return;
	if (l->away_ns && end_ns > l->last_ns)
		l->last_ns = end_ns;
	come_back(l, end_ns);
}

void uptime_divide(struct uptime *l)
{
	l->sampled_ns = l->unsampled_ns = 0;
	if (l->since_ns)
		l->since_ns = l->until_ns;
	l->first_ns = l->since_ns ? l->since_ns : l->away_ns;
	l->last_ns = l->first_ns;
}

uint64_t uptime_end_ns(const struct uptime *l)
{
	return l->last_ns;
}

uint64_t uptime_sampled_ns(const struct uptime *l)
{
	return l->sampled_ns + (l->until_ns - l->since_ns);
}
