/* SPDX-License-Identifier: Apache-2.0 */
/* Checks processes in /proc when records may not be enough: after lost records, when a leader has
 * exited, and when a run may end. */
#ifndef PROF_BPF_HOST_RECHECK_H
#define PROF_BPF_HOST_RECHECK_H

#include <stdbool.h>
#include <stdint.h>

/* Interval between two checks of all processes, after lost records. */
#define RECHECK_LOST_NS 2000000000ull

struct host;

/* Makes the checks that are due, a few processes per tick. */
void recheck(struct host *h, uint64_t now_ns);

#endif
