/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code in no file: the perf map and the jitdump of the one process that is dumped. The
 * process wrote both.
 */
#ifndef PROF_DUMP_GENERATED_H
#define PROF_DUMP_GENERATED_H

#include <stdbool.h>
#include <stdint.h>
#include "common/names/jit/jit.h"

struct generated {
	int files[JIT_KINDS]; /* enum jit_kind; -1: none */
	struct jit jit;
	bool ready, failed;
	uint64_t time_ns; /* CLOCK_MONOTONIC when threads stood: later code is not meant */
};

void generated_init(struct generated *g);
void generated_done(struct generated *g);
/* Takes fd; what was there of that kind goes. kind: of enum jit_kind, or fd is closed. */
void generated_take(struct generated *g, uint64_t kind, int fd);
/* The call at an address. The files are read when the first is asked for, up to the ceilings of
 * jit.h. 0; JIT_UNKNOWN; -ENOMEM. */
int generated_lookup(struct generated *g, uint64_t address, struct names *ret);

#endif
