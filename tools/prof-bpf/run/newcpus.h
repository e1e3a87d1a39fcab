/* SPDX-License-Identifier: Apache-2.0 */
/* Cpus that come online during a run (kernel/cpus.h): adds their events. */
#ifndef PROF_BPF_RUN_NEWCPUS_H
#define PROF_BPF_RUN_NEWCPUS_H

struct prof;

/* Samples and follows the cpus that have come online, or logs why not. */
void newcpus_take(struct prof *p);

#endif
