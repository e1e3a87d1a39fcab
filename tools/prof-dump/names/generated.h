/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of generated code, which is in no file. They come from the perf map and the jitdump of the
 * dumped process, which wrote both.
 */
#ifndef PROF_DUMP_NAMES_GENERATED_H
#define PROF_DUMP_NAMES_GENERATED_H

#include <stdbool.h>
#include <stdint.h>
#include "common/names/jit/jit.h"

struct generated {
	int files[MSG_JIT_KINDS]; /* enum msg_jit_kind; -1: none */
	struct jit jit;
	bool ready, failed;
	uint64_t time_ns; /* CLOCK_MONOTONIC when the threads were stopped; later code is ignored */
};

void generated_init(struct generated *g);
void generated_done(struct generated *g);
/* Takes fd and closes an earlier file of that kind. kind: enum msg_jit_kind; fd is closed if it is
 * none. */
void generated_take(struct generated *g, uint64_t kind, int fd);
/* Finds the call at an address. The first lookup reads the files, up to the ceilings of jit.h.
 * Returns 0, JIT_UNKNOWN or -ENOMEM. */
int generated_lookup(struct generated *g, uint64_t address, struct names *ret);

#endif
