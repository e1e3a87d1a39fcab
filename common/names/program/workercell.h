/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cell of a worker that parses hostile files: its memory, the cpu time of a request and of its
 * life, and its list of system calls.
 */
#ifndef COMMON_NAMES_PROGRAM_WORKERCELL_H
#define COMMON_NAMES_PROGRAM_WORKERCELL_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/confine/seccomp.h"

/* A sanitizer's shadow memory counts as heap, and it has signal handlers of its own. */
#ifdef __SANITIZE_ADDRESS__
#define WORKERCELL_ASAN true
#else
#define WORKERCELL_ASAN false
#endif

/* Enters the cell. calls: system calls beside those of baseline.h. heap: bytes of private memory.
 * life_s: cpu time of the process, after which the kernel kills it; one that was taken over cannot
 * change that. On failure, ends the process. */
void workercell_enter(const struct seccomp_rule *calls, uint64_t heap, unsigned life_s);
/* A request begins, which ends the process after this cpu time, in seconds. */
void workercell_begin(unsigned cpu_s);
/* The request is done. */
void workercell_end(void);

#endif
