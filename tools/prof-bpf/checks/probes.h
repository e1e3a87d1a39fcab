/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel allows this process, tried out and undone again. */
#ifndef PROFPIPE_PROBES_H
#define PROFPIPE_PROBES_H

#include <stddef.h>
#include <stdint.h>

/* A ring buffer, the kind of map that samples come through. 0, -errno. */
int probe_map(void);
/* A program of the type that samples, which reads user memory and kernel memory. 0, -errno; with
 * -EPERM or -EINVAL the kernel refuses what it does. */
int probe_program(void);
/* One event of the whole host on one cpu, and of the cpu's cycles where `cycles`. 0, -errno. */
int probe_event(int cycles);
/* Copies n (PROBE_CODE_MAX at most) bytes of kernel memory, by a program that runs once. 0, -errno.
 */
#define PROBE_CODE_MAX 512u
int probe_kernel_memory(uint64_t addr, size_t n, uint8_t *ret);

#endif
