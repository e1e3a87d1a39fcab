/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a profile: words and figures that say how complete it is. The terminal, the page,
 * pprof's comments and the JSON summary take their texts from here, so that they agree. All texts
 * are static and contain no untrusted bytes.
 */
#ifndef COMMON_STATUS_ACCOUNT_H
#define COMMON_STATUS_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/buf.h"
#include "common/base/bytes/str.h"
#include "common/status/status.h"

enum account_kind {
	ACCOUNT_TRUNCATED, /* samples with a truncated stack, by reason */
	ACCOUNT_UNNAMED,   /* samples with a frame that lacks its name for want of time or memory */
	ACCOUNT_LOST,	   /* lost samples */
	ACCOUNT_MISSED,	   /* lost events and messages that are not samples */
	/* Samples that the user of the profiled program can improve, with the remedy. */
	ACCOUNT_REMEDY,
	ACCOUNT_KINDS,
};
struct account_line {
	enum account_kind kind;
	const char *word, *text; /* for a remedy: the runtime, and what to do */
	const char *what;	 /* for a remedy: the part that these samples lack; else NULL */
	uint64_t count;
};
#define ACCOUNT_LINES (2 * STATUS_REASONS + STATUS_UNNAMED_REASONS + 2 * STATUS_RUNTIMES)

/* Writes all lines except the totals, in the order of the kinds, and returns their number. A
 * runtime gets a remedy if a tenth of its samples is truncated, or a hundredth lacks names. */
size_t account_lines(const struct status *f, struct account_line ret[static ACCOUNT_LINES]);
/* "truncated", "unnamed", "lost", "missed", "remedy". */
const char *account_word(enum account_kind kind);
/* "native", "kernel", "interpreted"; "other" for every other number. */
const char *account_top_kind(uint64_t kind);
/* The suffix of a function's name in text that shows its kind (enum status_kind): "_[k]" or "". */
const char *account_mark(uint64_t kind);

/* "82.42 %", rounded down, so that only all samples give 100.00 %. */
#define ACCOUNT_SHARE 32
void account_share(char ret[static ACCOUNT_SHARE], uint64_t part, uint64_t whole);
/* "1 process", "2 processes". Errors of buf_append. */
int account_count(struct buf *b, uint64_t n, const char *noun);
/* "of 1 process and 2 threads; 99 stacks complete (99.00 %)". Errors of buf_append. */
int account_scope(struct buf *b, const struct status *f);
/* "truncated", "lost" or "unnamed", and the word for a blame's reason. */
const char *account_harm_word(const struct status_blame *b);
const char *account_blame_word(const struct status_blame *b);
/* Whether the reason is a shortage of something that owners share: memory, room or time. */
bool account_is_share(const struct status_blame *b);
/* The owner of a blame: the user, and the container; 0: the host. */
uint32_t account_uid(const struct status_blame *b);
uint32_t account_container(const struct status_blame *b);
/* One sentence about all losses. */
const char *account_loss(const struct status *f);
/* Writes notes on the run, one line each, and returns their number: how much memory would have
 * sufficed, which tools were restarted, when nothing was sampled, how many samples of other
 * sources are left out, what was skipped because it is unknown, and whether the stream was
 * falsified. */
#define ACCOUNT_NOTES 6
#define ACCOUNT_NOTE 256
size_t account_notes(const struct status *f, char ret[static ACCOUNT_NOTES][ACCOUNT_NOTE]);
/* Whether the samples differ from those that prof-bpf sent, so that prof-symd falsified them. */
bool account_falsified(const struct status *f);
/* The --memory-limit in MiB that would have sufficed for all stacks; 0: none was truncated for lack
 * of memory. */
uint64_t account_enough_mib(const struct status *f);
/* The name of a tool, by its number in status.restarts. prof-send has the next number. */
const char *account_tool(unsigned tool);

/* The runtime of remedies.def to which this program or library belongs, judged by its path.
 * STATUS_RUNTIMES: none. */
unsigned account_program(struct str path);
unsigned account_library(struct str path);

#endif
