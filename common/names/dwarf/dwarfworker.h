/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that runs libdw for prof-symd: it answers what dwarf.h asks (dwarfwire.h), of files
 * that it is handed, one request after the other. A request that takes more than its cpu time, or
 * the worker more than its memory, ends it; of the latter it says so at its end, -ENOMEM, whatever
 * libdw made of it. Its own clock is libdw's to stop, if that was taken over: the kernel's limit of
 * a life's cpu time is not.
 */
#ifndef PROFPIPE_DWARFWORKER_H
#define PROFPIPE_DWARFWORKER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/seccomp.h"

#define DWARFWORKER_CPU_S 3    /* and one more for each 16 MiB of a file's max above 48 */
#define DWARFWORKER_LIFE_S 600 /* of work; whoever has it takes the next then */

/* A sanitizer's shadow counts as heap, and its handlers of signals are its own. */
#ifdef __SANITIZE_ADDRESS__
#define DWARFWORKER_ASAN true
#else
#define DWARFWORKER_ASAN false
#endif

/* All that it may call beside what all have (baseline.h); the list of whoever starts it has to have
 * these, too. */
extern const struct seccomp_rule dwarfworker_calls[];

/* Serves the socket until that ends. heap: bytes of private memory that it may take. */
_Noreturn void dwarfworker_run(int socket, uint64_t heap);

#endif
