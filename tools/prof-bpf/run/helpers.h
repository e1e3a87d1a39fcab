/* SPDX-License-Identifier: Apache-2.0 */
/* Helper processes that prof-bpf needs but cannot restart, since it no longer has the rights. If
 * one of them ends, so does the run. */
#ifndef PROF_BPF_RUN_HELPERS_H
#define PROF_BPF_RUN_HELPERS_H

#include <stdint.h>

struct prof;

/* Runs the pool of workers, which open files and read memory. */
void helpers_run(struct prof *p, uint64_t now_ns);
/* Handles a message of prof-bpf-loader, which has loaded a program, or has ended. */
void helpers_hear_loader(struct prof *p);

#endif
