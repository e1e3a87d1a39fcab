/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How whole a profile is, in words and figures: what the terminal, the page, pprof's comments and
 * the JSON summary say comes from here, so that they say the same. All texts are static and our
 * own.
 */
#ifndef PROFPIPE_ACCOUNT_H
#define PROFPIPE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/buf.h"
#include "common/base/span.h"
#include "common/status/status.h"

enum account_kind {
	ACCOUNT_TRUNCATED, /* samples whose stack is cut, by reason */
	ACCOUNT_LOST,	   /* samples that did not come */
	ACCOUNT_MISSED,	   /* what is no sample, and did not come */
	ACCOUNT_REMEDY,	   /* samples that whoever runs the program can make better, and how */
	ACCOUNT_KINDS,
};
struct account_line {
	enum account_kind kind;
	const char *word, *text; /* of a remedy: who is meant, and what to do */
	const char *what;	 /* of a remedy: what is wrong with these samples; else NULL */
	uint64_t count;
};
#define ACCOUNT_LINES (2 * STATUS_REASONS + 2 * STATUS_RUNTIMES)

/* All that is to be said beside the totals, in this order of kinds. How many. A remedy comes for
 * each runtime of which a tenth of the samples is cut, or a hundredth has no names. */
size_t account_lines(const struct status *f, struct account_line ret[static ACCOUNT_LINES]);
/* "truncated", "lost", "missed", "remedy". */
const char *account_word(enum account_kind kind);

/* "82.42 %", cut down to that many digits: only what is whole is 100.00 %. */
#define ACCOUNT_SHARE 32
void account_share(char ret[static ACCOUNT_SHARE], uint64_t part, uint64_t whole);
/* "1 process", "2 processes". Errors of buf_append. */
int account_count(struct buf *b, uint64_t n, const char *noun);
/* "of 1 process and 2 threads; 99 stacks complete (99.00 %)". Errors of buf_append. */
int account_scope(struct buf *b, const struct status *f);
/* What is to be said of losses as a whole. */
const char *account_loss(const struct status *f);
/* What else is to be said of the run, each a line: how much memory would have been enough, what was
 * started again, and when nothing was sampled. How many. */
#define ACCOUNT_NOTES 3
#define ACCOUNT_NOTE 256
size_t account_notes(const struct status *f, char ret[static ACCOUNT_NOTES][ACCOUNT_NOTE]);
/* A size for --memory-limit by which no stack would have been cut, in MiB; 0: none was. */
uint64_t account_enough_mib(const struct status *f);
/* The name of a tool, by its number in status.restarts. */
const char *account_tool(unsigned tool);

/* Which runtime of remedies.def a file is, by its path: a program, or a library. STATUS_RUNTIMES:
 * none. */
unsigned account_program(struct str path);
unsigned account_library(struct str path);

#endif
