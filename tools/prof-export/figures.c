/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/figures.h"

#include <inttypes.h>
#include "common/status/account.h"

int figures_print(struct buf *b, const struct status *st)
{
	struct account_line lines[ACCOUNT_LINES];
	char share[ACCOUNT_SHARE];
	int r = account_count(b, st->samples, "sample");

	if (!r)
		r = buf_append(b, " ", 1);
	if (!r)
		r = account_scope(b, st);
	if (!r)
		r = buf_printf(b, "; %" PRIu64 " bytes written\n%s\n", st->bytes, account_loss(st));
	const size_t n = account_lines(st, lines);

	for (size_t i = 0; !r && i < n; i++) {
		const struct account_line *l = &lines[i];

		r = buf_printf(b, "%s %s: %" PRIu64 "%s%s (%s)\n", account_word(l->kind), l->word,
			       l->count, l->what ? " " : "", l->what ? l->what : "", l->text);
	}
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	const size_t noted = account_notes(st, notes);

	for (size_t i = 0; !r && i < noted; i++)
		r = buf_printf(b, "%s\n", notes[i]);
	if (!r && st->cut)
		r = buf_append_str(b, "the stream was cut short\n");
	for (size_t i = 0; !r && i < STATUS_TOP && st->top[i].self; i++) {
		account_share(share, st->top[i].self, st->samples);
		r = buf_printf(b, "%8s  %s%s\n", share, st->top[i].name,
			       account_mark(st->top[i].kind));
	}
	return r;
}
