/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: each tries what the kernel allows this process, and undoes it again. */
#ifndef PROF_BPF_CHECKS_PROBES_H
#define PROF_BPF_CHECKS_PROBES_H

#include <stddef.h>
#include <stdint.h>

/* Tries a ring buffer, the kind of map that carries samples. Returns 0 or -errno. */
int probe_map(void);
/* Tries a program of the sampling type, which reads user and kernel memory. Returns 0 or -errno.
 * -EPERM or -EINVAL: the kernel refuses what the program does. */
int probe_program(void);
/* Tries an event for the whole host on one cpu. cycles: count the cpu's cycles. Returns 0 or
 * -errno. */
int probe_event(int cycles);
/* Copies n bytes of kernel memory, at most PROBE_CODE_MAX, by a program that runs once. Returns 0
 * or -errno. */
#define PROBE_CODE_MAX 512u
int probe_kernel_memory(uint64_t addr, size_t n, uint8_t *ret);

#endif
