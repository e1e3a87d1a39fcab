/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lazy memory is filled a piece at a time, when the piece is first touched. It is for a parser that
 * needs something large in one place but reads little of it: the debug sections of an interpreter
 * are 10 to 20 MiB, and libdw reads a tenth.
 *
 * A piece is PROT_NONE at first. The first access raises SIGSEGV, whose handler fills the piece,
 * and the access goes on. A filled piece does not change, so a file whose owner writes to it
 * meanwhile is only a file with odd bytes. System calls do not fill a piece; they fail with EFAULT.
 * Only one thread of a process can use lazy memory: the first that makes some.
 *
 * Why this SIGSEGV handler is safe:
 *
 *  - It looks the address up in a list that changes only outside of it, calls mprotect and `fill`
 *    (pread), and keeps errno.
 *  - It interrupts no lock: only loads and stores of the parser fault, never malloc.
 *  - A piece is marked before it is filled, and filled once. Bytes that cannot be read stay zero,
 *    which the parser takes as damage in the file.
 *  - A fault in a filled piece, or anywhere else, is a crash as usual.
 *  - It needs no further system call and no privilege, unlike userfaultfd.
 *
 * Lazy memory has a ceiling. A piece beyond it, or one that the kernel refuses, reads as zeros,
 * takes no memory, and sets `starved`. The caller checks that after each use, and then discards the
 * result.
 */
#ifndef COMMON_NAMES_DWARF_LAZY_MEMORY_H
#define COMMON_NAMES_DWARF_LAZY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lazy_memory {
	uint8_t *bytes;
	size_t size;
	size_t filled; /* bytes that take memory so far */
	bool starved;  /* some pieces read as zeros, for lack of memory */
};

/* most: bytes that may be filled. fill: writes the bytes of [at, at + n) to `into`, which is zeroed
 * and stays so where there are none. It runs in a signal handler and may only call what is safe
 * there. 0, -ENOMEM, -errno. */
int lazy_memory_new(size_t size, size_t most,
		    void (*fill)(void *ctx, uint64_t at, uint8_t *into, size_t n), void *ctx,
		    struct lazy_memory **ret);
/* Fills the first n bytes now, and makes them writable. False: no memory. */
bool lazy_memory_touch(struct lazy_memory *l, size_t n);
void lazy_memory_free(struct lazy_memory *l);

#endif
