/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the run. The stream carries them each second and at its end. */
#ifndef PROF_BPF_RUN_FIGURES_H
#define PROF_BPF_RUN_FIGURES_H

#include <stdint.h>

struct prof;

/* Returns how many samples the kernel took of selected processes, lost ones included. */
uint64_t figures_taken(struct prof *p);
void figures_send(struct prof *p);

#endif
