/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is filled when it is first touched, a piece at a time: for a parser that wants all of
 * something large in one place and looks at little of it.
 *
 * A piece has no rights until a SIGSEGV asks for it; the handler fills it and the access goes on.
 * Once filled it stays as it is, so that a file whose owner writes to it meanwhile is no more than
 * a file with odd bytes. System calls do not fill: the kernel says EFAULT. For one thread of the
 * process, the first that makes such memory.
 *
 * What a handler of SIGSEGV in a parser of strangers' files may do and does: it looks the address
 * up in a list that changes outside of it alone, calls mprotect and `fill` (pread), and keeps
 * errno. It interrupts no lock, since faults come from loads and stores of the parser, never from
 * within malloc. A piece is marked before it is filled, and filled once: what cannot be read stays
 * zeros, which are damage like any other in the file, and a fault in a piece that is there, or
 * anywhere else, is a crash as ever. It needs no system call that the parser does not make besides,
 * and no right; userfaultfd would need one.
 *
 * It takes so much memory and no more: a piece beyond that, or that the kernel refuses, is zeros
 * that take none, and said to be. Whoever reads asks for that after each thing that was read, and
 * believes nothing of it.
 *
 * Why: the debug sections of one interpreter are 10 to 20 MiB, of which a tenth is looked at.
 */
#ifndef PROFPIPE_LAZY_MEMORY_H
#define PROFPIPE_LAZY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lazy_memory {
	uint8_t *bytes;
	size_t size;
	size_t filled; /* bytes of it that take memory by now */
	bool starved;  /* what was touched since is zeros, for want of memory */
};

/* most: bytes that may be filled. fill: puts what belongs at [at, at + n) into `into`, which is
 * zero before, and stays so where there is nothing; in a signal handler, with what may be called
 * there. 0, -ENOMEM, -errno. */
int lazy_memory_new(size_t size, size_t most,
		    void (*fill)(void *ctx, uint64_t at, uint8_t *into, size_t n), void *ctx,
		    struct lazy_memory **ret);
/* Fills the first n bytes now, which may be written to as well. False: there is no memory. */
bool lazy_memory_touch(struct lazy_memory *l, size_t n);
void lazy_memory_free(struct lazy_memory *l);

#endif
