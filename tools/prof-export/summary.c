/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/summary.h"

#include <inttypes.h>
#include "common/msg.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

int summary_print(struct buf *b, const struct status *st)
{
	uint64_t cut = 0;
	int r = buf_printf(b,
			   "%" PRIu64 " samples of %" PRIu64 " threads; %" PRIu64
			   " processes; %" PRIu64 " bytes written\n",
			   st->samples, st->threads, st->processes, st->bytes);

	for (size_t i = 0; i < STATUS_REASONS; i++)
		cut += st->truncated[i];
	if (!r)
		r = buf_printf(b, "%.2f %% of %" PRIu64 " user stacks are complete\n",
			       st->user_stacks ? 100.0 - percent(cut, st->user_stacks) : 100.0,
			       st->user_stacks);
	for (size_t i = 0; !r && i < STATUS_REASONS; i++)
		if (st->truncated[i])
			r = buf_printf(b, "truncated %s: %" PRIu64 " (%s)\n", walk_reason_word(i),
				       st->truncated[i], walk_reason_text(i));
	for (size_t i = 0; !r && i < STATUS_REASONS; i++)
		if (st->lost[i])
			r = buf_printf(b, "%s %s: %" PRIu64 " (%s)\n",
				       lost_reason_is_samples(i) ? "lost" : "missed",
				       lost_reason_word(i), st->lost[i], lost_reason_text(i));
	if (!r && st->cut)
		r = buf_append_str(b, "the stream was cut short\n");
	for (size_t i = 0; !r && i < STATUS_TOP && st->top[i].self; i++)
		r = buf_printf(b, "%6.2f %%  %s\n", percent(st->top[i].self, st->samples),
			       st->top[i].name);
	return r;
}
