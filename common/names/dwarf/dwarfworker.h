/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker: the process that runs libdw for prof-symd. It answers the requests of dwarf.c
 * (dwarfwire.h) about the files that it is handed, one after the other.
 *
 *  - A request that takes too much cpu time ends the worker.
 *  - If an allocation fails, the worker answers -ENOMEM and ends, whatever libdw made of the
 *    failure.
 *  - A libdw that was taken over can stop the worker's timer, but not the kernel's limit of cpu
 *    time for the whole process (RLIMIT_CPU).
 */
#ifndef COMMON_NAMES_DWARF_DWARFWORKER_H
#define COMMON_NAMES_DWARF_DWARFWORKER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/seccomp.h"

#define DWARFWORKER_CPU_S 3    /* per request; one more for each 16 MiB of a file's max over 48 */
#define DWARFWORKER_LIFE_S 600 /* of work, after which dwarf.c starts the next worker */

/* A sanitizer's shadow memory counts as heap, and it has signal handlers of its own. */
#ifdef __SANITIZE_ADDRESS__
#define DWARFWORKER_ASAN true
#else
#define DWARFWORKER_ASAN false
#endif

/* The system calls that it may make beside those of baseline.h. A process that starts a worker must
 * have them in its own list. */
extern const struct seccomp_rule dwarfworker_calls[];

/* Serves the socket until the other end closes. heap: bytes of private memory that it may use. */
_Noreturn void dwarfworker_run(int socket, uint64_t heap);

#endif
