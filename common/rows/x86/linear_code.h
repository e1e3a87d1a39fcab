/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads code linearly, from its first byte on, without following branches. Used for padding, entry
 * points, and the end of code that flow.h cannot follow. Pure.
 */
#ifndef COMMON_ROWS_X86_LINEAR_CODE_H
#define COMMON_ROWS_X86_LINEAR_CODE_H

#include <stdint.h>

#define LINEAR_CODE_MAX_ENTRY 256 /* bytes of an entry point that are read */

/* Returns the number of bytes of padding (nop, int3, zeros) at the start. */
uint32_t linear_code_padding(const uint8_t *code, uint32_t size);
/* Returns the number of bytes of the code at the entry point, which has no caller. It ends at its
 * last instruction, or at a call or jump that does not return. *ret_call, set if there is a call,
 * is the last target, relative to the start. */
uint32_t linear_code_entry(const uint8_t *code, uint32_t size, int64_t *ret_call);
/* Returns the first argument (RDI) of the first call or jump, if the code before it sets RDI to an
 * address; else 0. `address` is that of the code. */
uint64_t linear_code_argument(const uint8_t *code, uint32_t size, uint64_t address);
/* Returns the number of bytes up to the end of the next instruction that does not fall through. */
uint32_t linear_code_past(const uint8_t *code, uint32_t size);

#endif
