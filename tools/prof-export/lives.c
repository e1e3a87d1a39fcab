/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/lives.h"

void lives_next(struct lives *l)
{
	if (!l->since_ns)
		return;
	l->sampled_ns += l->until_ns - l->since_ns;
	l->away_ns = l->until_ns;
	l->since_ns = l->until_ns = 0;
}

/* Nobody sampled until then. */
static void come_back(struct lives *l, uint64_t ns)
{
	if (l->away_ns && ns > l->away_ns)
		l->unsampled_ns += ns - l->away_ns;
	l->away_ns = 0;
}

void lives_since(struct lives *l, uint64_t ns)
{
	if (l->since_ns || !ns)
		return;
	come_back(l, ns);
	l->since_ns = ns;
	if (!l->first_ns)
		l->first_ns = ns;
	lives_until(l, ns);
}

void lives_until(struct lives *l, uint64_t ns)
{
	if (!l->since_ns || ns <= l->until_ns)
		return;
	l->until_ns = ns > l->since_ns ? ns : l->since_ns;
	if (l->until_ns > l->last_ns)
		l->last_ns = l->until_ns;
}

void lives_conclude(struct lives *l, bool ended, uint64_t end_ns)
{
	const bool sampled = l->since_ns;

	lives_next(l);
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

uint64_t lives_end_ns(const struct lives *l)
{
	return l->last_ns;
}

uint64_t lives_sampled_ns(const struct lives *l)
{
	return l->sampled_ns + (l->until_ns - l->since_ns);
}
