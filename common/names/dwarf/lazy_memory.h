/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lazy memory: memory of which each piece is filled when it is first touched. It is for a parser
 * that needs a large block of memory but reads little of it: the debug sections of an interpreter
 * are 10 to 20 MiB, and libdw reads a tenth.
 *
 * A piece is PROT_NONE at first. The first access raises SIGSEGV. The handler fills the piece, and
 * the access continues. A filled piece does not change, so if the owner of the file writes to it
 * meanwhile, the parser only sees a damaged file. System calls do not fill a piece; they fail with
 * EFAULT. Only one thread of a process can use lazy memory: the first one that makes some.
 *
 * Why this SIGSEGV handler is safe:
 *
 *  - It looks the address up in a list that changes only outside of the handler, calls mprotect and
 *    `fill` (pread), and preserves errno.
 *  - It cannot deadlock: only loads and stores of the parser fault, never malloc.
 *  - A piece is marked before it is filled, and filled once. Bytes that cannot be read stay zero,
 *    which the parser takes for damage in the file.
 *  - A fault in a filled piece, or anywhere else, is a crash as usual.
 *  - Unlike userfaultfd, it needs no further system call and no privilege.
 *
 * Lazy memory has a limit. A piece beyond it, or one that the kernel refuses, reads as zeros, takes
 * no memory, and sets `starved`. The caller checks that after each use, and then discards the
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
	size_t filled; /* bytes that are filled so far, and so take memory */
	bool starved;  /* some pieces read as zeros, because memory was short */
};

/* Makes lazy memory of `size` bytes, of which at most `most` may be filled. `fill` writes the bytes
 * of [at, at + n) to `into`, which is zeroed; bytes that do not exist stay zero. It runs in a
 * signal handler, and may only call functions that are safe there. Returns 0, -ENOMEM or -errno. */
int lazy_memory_new(size_t size, size_t most,
		    void (*fill)(void *ctx, uint64_t at, uint8_t *into, size_t n), void *ctx,
		    struct lazy_memory **ret);
/* Fills the first n bytes now, and makes them writable. Returns false if memory is short. */
bool lazy_memory_touch(struct lazy_memory *l, size_t n);
void lazy_memory_free(struct lazy_memory *l);

#endif
