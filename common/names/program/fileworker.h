/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker: a process that parses files for prof-symd: ELF and its symbol tables, DWARF (with
 * libdw), Go's tables, and the interpreters in them. It answers the requests of program.c
 * (programwire.h) about the files that it is handed, one after the other.
 *
 *  - A request that takes too much cpu time ends the worker.
 *  - If an allocation fails, the worker answers -ENOMEM and ends, no matter how a parser handled
 *    the failure.
 *  - A worker that was taken over can stop its timer, but not the kernel's limit of cpu time for
 *    the whole process (RLIMIT_CPU).
 */
#ifndef COMMON_NAMES_PROGRAM_FILEWORKER_H
#define COMMON_NAMES_PROGRAM_FILEWORKER_H

#include "common/names/program/filekeeper.h"

/* Seconds per request; one more for each 16 MiB by which a file's max exceeds 48 MiB. */
#define FILEWORKER_CPU_S 3
#define FILEWORKER_LIFE_S 600 /* seconds of work, after which workers.c starts the next worker */

/* Serves the socket until the other end closes. */
extern const struct filekeeper_class fileworker_class;

#endif
