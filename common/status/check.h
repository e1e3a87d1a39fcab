/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check: one property that the host needs for sampling, and its state. prof-bpf makes the checks,
 * since it has the rights. It sends fixed-size words through a pipe, each in one write like status
 * words, and the launcher prints them.
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
	CHECK_FINE,	/* also if it does not apply to this host */
	CHECK_DEGRADED, /* sampling works, but something is lost */
	CHECK_FATAL,	/* sampling does not work */
	CHECK_VERDICTS
};
/* Texts are zero-terminated. They may contain bytes from files of the host, so a printer must
 * escape them. */
struct check {
	uint32_t magic;
	uint32_t verdict; /* enum check_verdict */
	char name[CHECK_NAME];
	char found[CHECK_TEXT];	 /* the state of the host */
	char lost[CHECK_TEXT];	 /* its consequence; empty when fine */
	char remedy[CHECK_TEXT]; /* a command, or other advice; empty: none */
};
static_assert(sizeof(struct check) <= PIPE_BUF, "a check is written whole");

/* Starts a check with the verdict "fine". */
void check_init(struct check *c, const char *name);
void check_found(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes the verdict worse, never better. The texts of the worst verdict are kept. */
void check_degrade(struct check *c, const char *lost, const char *remedy);
void check_fail(struct check *c, const char *why, const char *remedy);
/* Whether a word from another process has the magic, a known verdict, and terminated texts. */
int check_valid(const struct check *c);
/* "fine", "degraded" or "fatal". */
const char *check_word(uint32_t verdict);
/* Prints one line, escaped. */
void check_print(FILE *out, const struct check *c);

#endif
