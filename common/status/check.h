/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thing that sampling needs of the host, and how it stands. prof-bpf finds out, since it has
 * the rights; as words of fixed width, whole in a pipe like the status words, they reach the
 * launcher, which prints them.
 */
#ifndef PROFPIPE_CHECK_H
#define PROFPIPE_CHECK_H

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#define CHECK_MAGIC 0x7066636bu /* "pfck" */
#define CHECK_NAME 32
#define CHECK_TEXT 320

enum check_verdict {
	CHECK_FINE,	/* also: of no importance here */
	CHECK_DEGRADED, /* sampling works, and something is lost */
	CHECK_FATAL,	/* no sampling */
	CHECK_VERDICTS
};
/* Texts are zero-terminated, and may hold bytes of the host's files: to be escaped by whoever
 * prints them. */
struct check {
	uint32_t magic;
	uint32_t verdict; /* enum check_verdict */
	char name[CHECK_NAME];
	char found[CHECK_TEXT];	 /* what is there */
	char lost[CHECK_TEXT];	 /* what is lost by it; empty when fine */
	char remedy[CHECK_TEXT]; /* what to do, a command where there is one; empty: nothing */
};
static_assert(sizeof(struct check) <= PIPE_BUF, "a check is written whole");

/* Fills in all but the verdict: fine, nothing lost. */
void check_init(struct check *c, const char *name);
void check_found(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes the verdict worse, never better, and the text that of the worst. */
void check_degrade(struct check *c, const char *lost, const char *remedy);
void check_fail(struct check *c, const char *why, const char *remedy);
/* Whether a word is one: its magic, a verdict, texts that end. For words of another process. */
int check_valid(const struct check *c);
/* "fine", "degraded" or "fatal". */
const char *check_word(uint32_t verdict);
/* One line, escaped. */
void check_print(FILE *out, const struct check *c);

#endif
