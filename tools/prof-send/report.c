/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/report.h"

#include <inttypes.h>

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

int report_print(struct buf *b, const char *name, const struct queue_counts *c)
{
	int r = buf_printf(b, "%s: %" PRIu64 " request%s, %" PRIu64 " delivered", name, c->taken,
			   plural(c->taken), c->delivered);

	if (!r && c->samples)
		r = buf_printf(b, " with %" PRIu64 " sample%s", c->samples, plural(c->samples));
	if (!r && c->partial)
		r = buf_printf(b, ", %" PRIu64 " of them in part (%" PRIu64 " profile%s rejected)",
			       c->partial, c->rejected, plural(c->rejected));
	for (int i = 0; !r && i < QUEUE_LOSSES; i++)
		if (c->lost[i])
			r = buf_printf(b, ", %" PRIu64 " %s", c->lost[i], queue_losses[i]);
	if (!r && c->lost_samples)
		r = buf_printf(b, " (%" PRIu64 " sample%s lost)", c->lost_samples,
			       plural(c->lost_samples));
	if (!r && c->kept)
		r = buf_printf(b, ", %" PRIu64 " kept in the spool", c->kept);
	return r;
}

bool report_is_good(const struct queue_counts *c)
{
	return c->delivered == c->taken && !c->rejected;
}
