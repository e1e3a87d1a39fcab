/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When there was sampling: prof-bpf may go, and another one come, whose stream says since when it
 * samples. Between the last that is known of one and that moment nobody did. Times are of
 * CLOCK_MONOTONIC; any number may come. Pure.
 */
#ifndef PROFPIPE_LIVES_H
#define PROFPIPE_LIVES_H

#include <stdbool.h>
#include <stdint.h>

struct lives {
	uint64_t first_ns;	     /* when sampling began; 0: it is not known */
	uint64_t since_ns, until_ns; /* this life's; 0: it does not sample yet */
	uint64_t last_ns;	     /* the last moment of any life */
	uint64_t away_ns;	     /* since when nobody samples; 0: somebody does */
	uint64_t sampled_ns;	     /* by former lives */
	uint64_t unsampled_ns;	     /* between them */
	uint64_t run_until_ns;	     /* of the launcher: when sampling was over, during which the
					last prof-bpf went; 0: it did not */
};

/* Another prof-bpf, from here on. */
void lives_next(struct lives *l);
/* It samples since then; and did so then. */
void lives_since(struct lives *l, uint64_t ns);
void lives_until(struct lives *l, uint64_t ns);
/* No life follows. ended: the last one came to its end, at end_ns. Once. */
void lives_conclude(struct lives *l, bool ended, uint64_t end_ns);
/* 0: it is not known. */
uint64_t lives_end_ns(const struct lives *l);
uint64_t lives_sampled_ns(const struct lives *l);

#endif
