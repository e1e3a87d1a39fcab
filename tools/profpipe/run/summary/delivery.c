/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/summary/delivery.h"

#include <inttypes.h>

void delivery_add(struct delivery_sum *s, const struct status *last)
{
	s->requests += last->requests;
	s->taken += last->requests_taken;
	s->lost += last->requests_lost;
	s->away += last->requests_away;
	s->lost_samples += last->requests_lost_samples;
	/* prof-send counts the samples that were delivered; prof-export counts those in
	 * requests. */
	s->samples += last->requests_samples ? last->requests_samples : last->samples;
}

void delivery_settle(uint64_t samples, const struct delivery_sum *export,
		     const struct delivery_sum *send, uint64_t endpoints, uint64_t handed,
		     uint64_t waits, struct delivery *ret)
{
	/* Without requests, prof-export reports the samples of its output here. */
	const uint64_t made = export->requests ? export->samples : 0;
	const uint64_t known = send->taken + send->lost + waits;

	*ret = (struct delivery){
		.endpoints = endpoints,
		.wanted = handed + export->lost * endpoints,
		.changed = handed != export->taken * endpoints,
		.requests = export->requests,
		.samples = made,
		.away = export->away,
		.slow = export->lost - export->away,
		.dropped_samples = export->lost_samples,
		.delivered = send->taken,
		.delivered_samples = send->samples,
		.lost = send->lost,
		.kept = waits,
		.unknown = handed > known ? handed - known : 0,
		.outside = samples > made ? samples - made : 0,
	};
}

uint64_t delivery_missing(const struct delivery *d)
{
	return (d->away + d->slow) * d->endpoints + d->lost + d->kept + d->unknown;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

int delivery_print(struct buf *b, const struct delivery *d)
{
	const struct {
		uint64_t n;
		const char *what;
	} rest[] = { { d->lost, "lost by prof-send, which says why" },
		     { d->kept, "kept in the spool" },
		     { d->away, "dropped while there was no prof-send" },
		     { d->slow, "dropped because prof-send was too slow" },
		     { d->unknown, "with unknown outcome, because prof-send ended early" } };
	int r = buf_printf(b, "OTLP: %" PRIu64 " request%s with %" PRIu64 " sample%s", d->requests,
			   plural(d->requests), d->samples, plural(d->samples));

	if (!r && d->changed)
		r = buf_printf(b, ", to endpoints that changed");
	else if (!r && d->endpoints > 1)
		r = buf_printf(b, ", to each of %" PRIu64 " endpoints", d->endpoints);
	if (!r)
		r = buf_printf(b, "; %" PRIu64 " delivered with %" PRIu64 " sample%s", d->delivered,
			       d->delivered_samples, plural(d->delivered_samples));
	for (size_t i = 0; !r && i < sizeof(rest) / sizeof(rest[0]); i++)
		if (rest[i].n)
			r = buf_printf(b, ", %" PRIu64 " %s", rest[i].n, rest[i].what);
	if (!r && d->dropped_samples)
		r = buf_printf(b, " (%" PRIu64 " sample%s dropped)", d->dropped_samples,
			       plural(d->dropped_samples));
	if (!r && d->outside)
		r = buf_printf(b, "; %" PRIu64 " sample%s in no request", d->outside,
			       plural(d->outside));
	if (!r && d->restarts)
		r = buf_printf(b, "; prof-send was started again %u time%s", d->restarts,
			       plural(d->restarts));
	return r;
}
