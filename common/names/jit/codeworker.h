/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker that reads perf maps and jitdumps (codefile.h) for codereader.c, and answers which
 * code was at an address (codewire.h). It reads only the files that it is handed, and can do
 * nothing else.
 *
 * A request that takes too much cpu time ends the worker. A worker that was taken over can stop its
 * timer, but not the kernel's limit of cpu time for the whole process (RLIMIT_CPU).
 */
#ifndef COMMON_NAMES_JIT_CODEWORKER_H
#define COMMON_NAMES_JIT_CODEWORKER_H

#include "common/names/program/filekeeper.h"

#define CODEWORKER_CPU_S 1    /* per request */
#define CODEWORKER_LIFE_S 600 /* seconds of work, after which codereader.c starts the next worker */
/* A read ends after this much cpu time, so that other files need not wait. */
#define CODEWORKER_READ_NS 20000000ull

/* Serves the socket until the other end closes. */
extern const struct filekeeper_class codeworker_class;

#endif
