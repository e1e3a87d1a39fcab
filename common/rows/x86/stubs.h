/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs: code that linkers and libraries write by a pattern, told by its bytes: the slots of PLTs
 * that push, retpolines, what signal handlers return to; and the rules of its instructions.
 *
 * Sources: the x86-64 psABI (PLT); ld, lld and mold as they write; arch/x86/kernel/signal_64.c.
 * Pure.
 */
#ifndef PROFPIPE_STUBS_H
#define PROFPIPE_STUBS_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/unwind.h"

#define STUB_PIECES 4
#define STUB_MAX 40 /* bytes that tell one */

struct stub_piece {
	uint32_t len;
	struct unwind_rule rule;
};

struct stub {
	struct stub_piece piece[STUB_PIECES];
	unsigned pieces;
	uint32_t used; /* bytes; the last one's may lie behind the code */
	/* A slot, which is one only where slot 0 of its PLT lies this far from its start. */
	bool slot;
	int64_t zero;
};

/* What the n bytes of code at `address` begin with. False: none, other slots than those that push
 * included, since all that they do is jump. */
bool stub_find(const uint8_t *code, uint32_t n, uint64_t address, struct stub *ret);
/* Whether they are slot 0 of a PLT, where lazy binding goes on. */
bool stub_is_slot_zero(const uint8_t *code, uint32_t n);
/* What signal handlers return to: mov $15, eax (or rax); syscall. Its bytes, or 0. */
uint32_t stub_restorer(const uint8_t *code, uint32_t n);

/* What the first function of a fiber returns to (boost.context): xor rdi, rdi; call _exit; hlt.
 * Nothing called it. How many of the n bytes of code, the last ones, are that; or 0. */
uint32_t stub_fiber_end(const uint8_t *code, uint32_t n);

/* Whether these bytes are at `at`. */
bool stub_bytes(const uint8_t *code, uint32_t n, uint32_t at, const char *bytes, uint32_t len);
/* Bytes of the endbr64 that code begins with, or 0. */
uint32_t stub_endbr(const uint8_t *code, uint32_t n);

#endif
