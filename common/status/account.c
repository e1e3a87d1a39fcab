/* SPDX-License-Identifier: Apache-2.0 */
#include "common/status/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/wire/msg.h"
#include "common/wire/reason.h"

/* A remedy is shown if it concerns one in this many samples of a runtime. Remedies for truncated
 * stacks make the program slower. A few stacks are truncated even if the remedy is in use, and a
 * few functions have no names while profpipe gets to know a program. */
#define REMEDY_LEAST 10
#define ENOUGH_STEP 8ul /* MiB: suggest round sizes */

static const struct remedy {
	const char *name, *program, *library, *whole, *named;
} remedies[STATUS_RUNTIMES] = {
#define REMEDY(n, name, program, library, whole, named) \
	[n] = { name, program, library, whole, named },
#include "common/status/remedies.def"
};

static size_t add_remedies(const struct status *f, struct account_line *ret)
{
	size_t n = 0;

	for (unsigned i = 0; i < STATUS_RUNTIMES; i++) {
		const struct remedy *r = &remedies[i];
		const uint64_t truncated = f->runtime_truncated[i], unnamed = f->runtime_unnamed[i],
			       all = f->runtime_samples[i];

		if (r->name && r->whole && truncated && truncated >= all / REMEDY_LEAST)
			ret[n++] = (struct account_line){ .kind = ACCOUNT_REMEDY,
							  .word = r->name,
							  .text = r->whole,
							  .what = "truncated",
							  .count = truncated };
		if (r->name && r->named && unnamed && unnamed >= all / REMEDY_LEAST)
			ret[n++] =
				(struct account_line){ .kind = ACCOUNT_REMEDY,
						       .word = r->name,
						       .text = r->named,
						       .what = "with functions that have no name",
						       .count = unnamed };
	}
	return n;
}

size_t account_lines(const struct status *f, struct account_line ret[static ACCOUNT_LINES])
{
	size_t n = 0;

	for (unsigned i = 1; i < STATUS_REASONS; i++)
		if (f->truncated[i])
			ret[n++] = (struct account_line){ .kind = ACCOUNT_TRUNCATED,
							  .word = reason_walk_word(i),
							  .text = reason_walk_text(i),
							  .count = f->truncated[i] };
	for (unsigned i = 1; i < STATUS_UNNAMED_REASONS; i++)
		if (f->unnamed[i])
			ret[n++] = (struct account_line){ .kind = ACCOUNT_UNNAMED,
							  .word = reason_unnamed_word(i),
							  .text = reason_unnamed_text(i),
							  .count = f->unnamed[i] };
	for (int samples = 1; samples >= 0; samples--)
		for (unsigned i = 0; i < STATUS_REASONS; i++)
			if (f->lost[i] && reason_lost_is_samples(i) == samples)
				ret[n++] = (struct account_line){ .kind = samples ? ACCOUNT_LOST
										  : ACCOUNT_MISSED,
								  .word = reason_lost_word(i),
								  .text = reason_lost_text(i),
								  .count = f->lost[i] };
	return n + add_remedies(f, ret + n);
}

const char *account_blame_word(const struct status_blame *b)
{
	return b->harm == STATUS_LOST	   ? reason_lost_word(b->reason)
	       : b->harm == STATUS_UNNAMED ? reason_unnamed_word(b->reason)
					   : reason_walk_word(b->reason);
}

const char *account_harm_word(const struct status_blame *b)
{
	static const enum account_kind kinds[STATUS_HARMS] = { ACCOUNT_TRUNCATED, ACCOUNT_LOST,
							       ACCOUNT_UNNAMED };

	return account_word(kinds[b->harm < STATUS_HARMS ? b->harm : STATUS_TRUNCATED]);
}

bool account_is_share(const struct status_blame *b)
{
	if (b->harm == STATUS_UNNAMED)
		return b->samples && b->reason != UNNAMED_NO_FILE && b->reason != UNNAMED_GONE;
	return b->samples && (b->harm != STATUS_TRUNCATED || b->reason == WALK_DEFINITIONS ||
			      b->reason == WALK_TABLES_FULL || b->reason == WALK_MEMORY_LIMIT ||
			      b->reason == WALK_ROWS_PENDING);
}

uint32_t account_uid(const struct status_blame *b)
{
	return (uint32_t)b->owner;
}

uint32_t account_container(const struct status_blame *b)
{
	return (uint32_t)(b->owner >> 32);
}

const char *account_word(enum account_kind kind)
{
	static const char *const words[ACCOUNT_KINDS] = { "truncated", "unnamed", "lost", "missed",
							  "remedy" };

	return words[kind];
}

const char *account_top_kind(uint64_t kind)
{
	static const char *const words[STATUS_KINDS] = { "native", "kernel", "interpreted",
							 "other" };

	return words[kind < STATUS_KINDS ? kind : STATUS_OTHER];
}

const char *account_mark(uint64_t kind)
{
	return kind == STATUS_KERNEL ? "_[k]" : "";
}

void account_share(char ret[static ACCOUNT_SHARE], uint64_t part, uint64_t whole)
{
	uint64_t n = 0;

	if (part > UINT64_MAX / 10000)
		n = whole >= 10000 ? part / (whole / 10000) : 0;
	else if (whole)
		n = part * 10000 / whole;
	snprintf(ret, ACCOUNT_SHARE, "%" PRIu64 ".%02" PRIu64 " %%", n / 100, n % 100);
}

int account_count(struct buf *b, uint64_t n, const char *noun)
{
	const char *plural = noun[0] && noun[strlen(noun) - 1] == 's' ? "es" : "s";

	return buf_printf(b, "%" PRIu64 " %s%s", n, noun, n == 1 ? "" : plural);
}

int account_scope(struct buf *b, const struct status *f)
{
	char share[ACCOUNT_SHARE];

	account_share(share, f->complete, f->samples);
	int r = buf_append_str(b, "of ");

	if (!r)
		r = account_count(b, f->processes, "process");
	if (!r)
		r = buf_append_str(b, " and ");
	if (!r)
		r = account_count(b, f->threads, "thread");
	if (!r)
		r = buf_append_str(b, "; ");
	if (!r)
		r = account_count(b, f->complete, "stack");
	return r ? r : buf_printf(b, " complete (%s)", share);
}

const char *account_loss(const struct status *f)
{
	bool any = false;

	if (account_falsified(f))
		return "the samples differ from those that prof-bpf sent";
	for (unsigned i = 0; i < STATUS_REASONS; i++)
		any |= f->lost[i] != 0;
	if (reason_lost_samples(f->lost))
		return "samples were lost";
	if (!f->samples)
		return "no sample came, and none is known to be lost";
	if (f->unsampled_ns)
		return "no sample that was taken was lost";
	return any ? "no sample was lost" : "nothing was lost";
}

const char *account_tool(unsigned tool)
{
	static const char *const names[STATUS_TOOLS + 1] = { "prof-bpf", "prof-deltas", "prof-symd",
							     "prof-export", "prof-send" };

	return names[tool];
}

bool account_falsified(const struct status *f)
{
	return f->witness_more || f->witness_fewer || f->witness_losses;
}

uint64_t account_enough_mib(const struct status *f)
{
	const uint64_t step = ENOUGH_STEP << 20;

	return f->truncated[WALK_MEMORY_LIMIT]
		       ? (f->enough / step + (f->enough % step != 0)) * ENOUGH_STEP
		       : 0;
}

size_t account_notes(const struct status *f, char ret[static ACCOUNT_NOTES][ACCOUNT_NOTE])
{
	const uint64_t enough = account_enough_mib(f);
	size_t n = 0, at = 0;

	if (enough)
		snprintf(ret[n++], ACCOUNT_NOTE,
			 "no stack would have been truncated for lack of memory with "
			 "--memory-limit %" PRIu64 "M",
			 enough);
	for (unsigned i = 0; i < STATUS_TOOLS; i++)
		if (f->restarts[i])
			at += (size_t)snprintf(ret[n] + at, ACCOUNT_NOTE - at, "%s %s %" PRIu64,
					       at ? "," : "started again:", account_tool(i),
					       f->restarts[i]);
	n += at != 0;
	if (f->unsampled_ns)
		snprintf(ret[n++], ACCOUNT_NOTE,
			 "not sampled: %.3f s in all while prof-bpf was away, some %" PRIu64
			 " samples",
			 (double)f->unsampled_ns / 1e9, f->unsampled);
	if (f->left_out)
		snprintf(ret[n++], ACCOUNT_NOTE,
			 "left out: %" PRIu64 " samples of other sources than this event, which "
			 "the formats text and otlp show",
			 f->left_out);
	if (f->skipped_messages || f->skipped_fields)
		snprintf(ret[n++], ACCOUNT_NOTE,
			 "made by a newer version: %" PRIu64 " messages and %" PRIu64
			 " fields are unknown to this one, and were skipped",
			 f->skipped_messages, f->skipped_fields);
	if (account_falsified(f))
		snprintf(ret[n++], ACCOUNT_NOTE,
			 "do not trust this profile: by prof-bpf's own count, prof-symd added or "
			 "changed %" PRIu64 " samples, dropped %" PRIu64 ", and misstated %" PRIu64
			 " losses",
			 f->witness_more, f->witness_fewer, f->witness_losses);
	return n;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether the last part of the path begins with this word, and no letter follows. */
static bool is_called(struct str path, const char *begins)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
	const char *name = slash ? slash + 1 : path.data;
	const size_t len = path.len - (size_t)(name - path.data), n = begins ? strlen(begins) : 0;

	return n && len >= n && memcmp(name, begins, n) == 0 && (len == n || !is_letter(name[n]));
}

unsigned account_program(struct str path)
{
	unsigned i = 0;

	while (i < STATUS_RUNTIMES && !is_called(path, remedies[i].program))
		i++;
	return i;
}

unsigned account_library(struct str path)
{
	unsigned i = 0;

	while (i < STATUS_RUNTIMES && !is_called(path, remedies[i].library))
		i++;
	return i;
}
