/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear code: reads code from its first byte on without following branches. Serves for padding,
 * entry points, and the search for an instruction that none follows. Pure.
 */
#ifndef COMMON_ROWS_X86_LINEAR_CODE_H
#define COMMON_ROWS_X86_LINEAR_CODE_H

#include <stdint.h>

#define LINEAR_CODE_MAX_ENTRY 256 /* bytes of an entry point */

/* Bytes of padding (nop, int3, zeros) at the start. */
uint32_t linear_code_padding(const uint8_t *code, uint32_t size);
/* Bytes of the code at the entry point, which nothing called: up to its end, or to a call or jump
 * to something that does not return. *ret_call, if it calls: the last target, relative to the
 * start. */
uint32_t linear_code_entry(const uint8_t *code, uint32_t size, int64_t *ret_call);
/* The first argument (RDI) of the first call or jump, if the code before it sets RDI to an address;
 * else 0. address: of code. */
uint64_t linear_code_argument(const uint8_t *code, uint32_t size, uint64_t address);
/* Bytes up to the end of the next instruction that does not fall through. */
uint32_t linear_code_past(const uint8_t *code, uint32_t size);

#endif
