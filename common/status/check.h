/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check: one thing that sampling needs of the host, and its state. prof-bpf checks, since it has
 * the rights. It sends fixed-width words through a pipe, whole like status words, and the launcher
 * prints them.
 */
#ifndef COMMON_STATUS_CHECK_H
#define COMMON_STATUS_CHECK_H

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#define CHECK_MAGIC 0x7066636bu /* "pfck" */
#define CHECK_NAME 32
#define CHECK_TEXT 320

enum check_verdict {
	CHECK_FINE,	/* or irrelevant on this host */
	CHECK_DEGRADED, /* sampling works, but something is lost */
	CHECK_FATAL,	/* sampling does not work */
	CHECK_VERDICTS
};
/* Texts are zero-terminated. They may contain bytes of the host's files, so a printer must escape
 * them. */
struct check {
	uint32_t magic;
	uint32_t verdict; /* enum check_verdict */
	char name[CHECK_NAME];
	char found[CHECK_TEXT];	 /* the state of the host */
	char lost[CHECK_TEXT];	 /* its consequence; empty when fine */
	char remedy[CHECK_TEXT]; /* a command, or what to do; empty: nothing */
};
static_assert(sizeof(struct check) <= PIPE_BUF, "a check is written whole");

/* Begins a check that is fine. */
void check_init(struct check *c, const char *name);
void check_found(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes the verdict worse, never better. The worst verdict keeps its texts. */
void check_degrade(struct check *c, const char *lost, const char *remedy);
void check_fail(struct check *c, const char *why, const char *remedy);
/* Whether a word from another process has the magic, a known verdict, and texts that end. */
int check_valid(const struct check *c);
/* "fine", "degraded" or "fatal". */
const char *check_word(uint32_t verdict);
/* One line, escaped. */
void check_print(FILE *out, const struct check *c);

#endif
