/* SPDX-License-Identifier: Apache-2.0 */
/* Probes that try what the kernel allows this process, and undo it again. */
#ifndef PROF_BPF_CHECKS_PROBES_H
#define PROF_BPF_CHECKS_PROBES_H

#include <stddef.h>
#include <stdint.h>

/* A ring buffer, the kind of map that carries samples. 0, -errno. */
int probe_map(void);
/* A program of the sampling type, which reads user and kernel memory. 0, -errno. -EPERM or -EINVAL:
 * the kernel refuses what it does. */
int probe_program(void);
/* An event for the whole host on one cpu; cycles: of the cpu's cycles. 0, -errno. */
int probe_event(int cycles);
/* Copies n bytes of kernel memory, at most PROBE_CODE_MAX, by a program that runs once. 0,
 * -errno. */
#define PROBE_CODE_MAX 512u
int probe_kernel_memory(uint64_t addr, size_t n, uint8_t *ret);

#endif
