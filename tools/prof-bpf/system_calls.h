/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that prof-bpf may make once it is set up, which is before it reads anything that
 * a stranger wrote. docs/privilege-separation.md says why each is there.
 */
#ifndef PROFPIPE_SYSTEM_CALLS_H
#define PROFPIPE_SYSTEM_CALLS_H

#include <sys/types.h>

/* Bounds all threads. extractor: run by hand, the prof-deltas that it has to end, and whose folder
 * it removes; 0 in the deployment. cpus: the process of cpus.h, which it awaits; 0: none. The
 * errors of seccomp_enter. */
int system_calls_enter(pid_t extractor, pid_t cpus);

#endif
