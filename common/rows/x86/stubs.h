/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stubs: code that linkers and libraries generate from a pattern, and the rules of its
 * instructions. They are recognized by their bytes: PLT slots that push, retpolines, signal
 * restorers.
 *
 * Sources: the x86-64 psABI (PLT); output of ld, lld and mold; arch/x86/kernel/signal_64.c. Pure.
 */
#ifndef COMMON_ROWS_X86_STUBS_H
#define COMMON_ROWS_X86_STUBS_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/unwind.h"

#define STUB_PIECES 4
#define STUB_MAX 40 /* bytes needed to recognize one */

struct stub_piece {
	uint32_t len;
	struct unwind_rule rule;
};

struct stub {
	struct stub_piece piece[STUB_PIECES];
	unsigned pieces;
	uint32_t used; /* bytes of the stub; the last piece may end after the end of the code */
	/* The stub is a PLT slot. It counts only if slot 0 of its PLT lies at `zero`, relative to
	 * the stub's start. */
	bool slot;
	int64_t zero;
};

/* Recognizes the stub at the start of the n bytes of code at `address`. Returns false if there is
 * none. PLT slots that do not push are not included, since they only jump. */
bool stub_find(const uint8_t *code, uint32_t n, uint64_t address, struct stub *ret);
/* Whether the bytes are slot 0 of a PLT, which all lazy binding goes through. */
bool stub_is_slot_zero(const uint8_t *code, uint32_t n);
/* The length of a signal restorer (mov $15, eax or rax; syscall), or 0. */
uint32_t stub_restorer(const uint8_t *code, uint32_t n);

/* Recognizes the code that the first function of a fiber returns to (boost.context): xor rdi, rdi;
 * call _exit; hlt. Nothing calls this code. It must end at the last of the n bytes. Returns its
 * length, or 0. */
uint32_t stub_fiber_end(const uint8_t *code, uint32_t n);

/* Whether the code has these bytes at `at`. */
bool stub_bytes(const uint8_t *code, uint32_t n, uint32_t at, const char *bytes, uint32_t len);
/* The length of the endbr64 at the start, or 0. */
uint32_t stub_endbr(const uint8_t *code, uint32_t n);

#endif
