/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the kernel's type information (BTF) that our programs need. libbpf reads the kernel's
 * 120,000 types at each start and searches them once for each struct of ours, which takes 30 ms.
 * With this part, a few hundred types, it takes almost no time.
 */
#ifndef PROF_BPF_KERNEL_KERNEL_TYPES_H
#define PROF_BPF_KERNEL_KERNEL_TYPES_H

#include "common/base/bytes/buf.h"
#include "common/base/bytes/span.h"

struct btf;

/* Reads all BTF of the running kernel. Returns 0; -ENOENT: there is none; -errno. */
int kernel_types_read(struct buf *ret);
/* Returns the offset of a member in the struct of this name, in bytes; 0 if there is none. */
uint32_t kernel_types_offset(struct span all, const char *type, const char *member);
/* Selects from BTF those structs, unions and enums that have the name of one of `ours` (up to a
 * "___"), and all types that they contain by value. Pointers in the result point to void. Returns
 * 0; -EINVAL: it is not BTF, or of an unknown form; -ENOMEM. */
int kernel_types_select(struct span all, const struct btf *ours, struct buf *ret);
/* Writes that part of BTF to a file, or all of it if its form is not known. Returns 0 or -errno. */
int kernel_types_write(int fd, struct span all, const struct btf *ours);

#endif
