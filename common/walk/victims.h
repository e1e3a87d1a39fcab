/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Victims: which files' rows go when others need their room. Pure.
 *
 * Where more is sampled than there is room for, rows that go and come again with each sample help
 * nobody. So rows go only for those of a file with twice the samples of all files that go for it,
 * and only if they make enough room. Idle rows of few samples go for any others.
 */
#ifndef PROFPIPE_VICTIMS_H
#define PROFPIPE_VICTIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file whose rows could go. */
struct victim {
	uint16_t slot;
	bool idle;	  /* nobody maps it, or it was not sampled for long */
	uint32_t samples; /* of late */
	uint64_t touched_ns, words;
};

/* Whether it goes for anybody. */
bool victim_is_free(const struct victim *v);
/* Brings v[n] in the order in which they go: those sampled least first, of these the idle ones, and
 * of these those sampled longest ago. */
void victims_sort(struct victim *v, size_t n);
/* Which of v[n], sorted, go for a file of so many samples that needs so many words: moves them to
 * the front. words 0: one goes. 0: all that may go would not be enough, and none goes. */
size_t victims_choose(struct victim *v, size_t n, uint64_t worth, uint64_t words);

#endif
