/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that prof-bpf may make after its setup, when it begins to read untrusted bytes.
 * docs/privilege-separation.md gives the reason for each.
 */
#ifndef PROF_BPF_SYSTEM_CALLS_H
#define PROF_BPF_SYSTEM_CALLS_H

#include <sys/types.h>

/* Restricts all threads. extractor: by hand, the prof-deltas that prof-bpf ends, and whose folder
 * it removes; 0 in a deployment. cpus: the process of cpus.h, to wait for; 0: none. Returns 0 or
 * the errors of seccomp_enter. */
int system_calls_enter(pid_t extractor, pid_t cpus);

#endif
