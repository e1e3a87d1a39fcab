/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the kernel's type information (BTF) that our programs need. libbpf reads the kernel's
 * 120,000 types for each start and searches them once for each struct of ours: 30 ms. Of this part,
 * with some hundred types, it takes none.
 */
#ifndef PROF_BPF_KERNEL_KERNEL_TYPES_H
#define PROF_BPF_KERNEL_KERNEL_TYPES_H

#include "common/base/bytes/buf.h"
#include "common/base/bytes/span.h"

struct btf;

/* Reads all BTF of the running kernel. 0; -ENOENT: there is none; -errno. */
int kernel_types_read(struct buf *ret);
/* The offset of a member in the struct of this name, in bytes; 0 if there is none. */
uint32_t kernel_types_offset(struct span all, const char *type, const char *member);
/* Of BTF, those structs, unions and enums that have the name of one of `ours`, up to a "___", and
 * all that they hold by value. Pointers in it point to void. 0; -EINVAL: it is no BTF, or of a form
 * that is not known; -ENOMEM. */
int kernel_types_select(struct span all, const struct btf *ours, struct buf *ret);
/* Writes that part of BTF to a file; all of it if its form is not known. -errno. */
int kernel_types_write(int fd, struct span all, const struct btf *ours);

#endif
