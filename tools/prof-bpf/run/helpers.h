/* SPDX-License-Identifier: Apache-2.0 */
/* Helper processes that prof-bpf cannot do without, nor start again: it no longer has the rights.
 * If one of them ends, so does the run. */
#ifndef PROF_BPF_RUN_HELPERS_H
#define PROF_BPF_RUN_HELPERS_H

#include <stdint.h>

struct prof;

/* Opens files and reads memory, in workers. */
void helpers_run(struct prof *p, uint64_t now_ns);
/* prof-bpf-loader has loaded a program, or has ended. */
void helpers_hear_loader(struct prof *p);

#endif
