/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of a worker that parses hostile files: its memory, the cpu time of a request and of
 * its life, and its system calls.
 */
#ifndef COMMON_NAMES_PROGRAM_WORKERCELL_H
#define COMMON_NAMES_PROGRAM_WORKERCELL_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/confine/seccomp.h"

/* With a sanitizer: its shadow memory counts as heap, and it has its own signal handlers. */
#ifdef __SANITIZE_ADDRESS__
#define WORKERCELL_ASAN true
#else
#define WORKERCELL_ASAN false
#endif

/* Sets the limits. calls: allowed system calls besides those of baseline.h. heap: bytes of private
 * memory. life_s: cpu time of the process, after which the kernel kills it; a worker that was taken
 * over cannot change that. On failure, ends the process. */
void workercell_enter(const struct seccomp_rule *calls, uint64_t heap, unsigned life_s);
/* Call it when a request begins. The process ends if the request takes more than cpu_s seconds of
 * cpu time. */
void workercell_begin(unsigned cpu_s);
/* Call it when the request is done. */
void workercell_end(void);

#endif
