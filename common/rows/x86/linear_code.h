/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is read from the first byte on without following a branch: padding, the code of an
 * entry point, the bytes up to where no instruction follows. Pure.
 */
#ifndef PROFPIPE_LINEAR_CODE_H
#define PROFPIPE_LINEAR_CODE_H

#include <stdint.h>

#define LINEAR_CODE_MAX_ENTRY 256 /* bytes of an entry point */

/* Bytes of the padding (nop, int3, zeros) that code begins with. */
uint32_t linear_code_padding(const uint8_t *code, uint32_t size);
/* Bytes of the entry point's code, which nothing called: up to where it ends or gives itself to
 * something that does not return. *ret_call, if it calls: the last target, relative to the start.
 */
uint32_t linear_code_entry(const uint8_t *code, uint32_t size, int64_t *ret_call);
/* The address that is the first argument (RDI) of the first call or jump, if the code up to there
 * says so; 0: it does not. address: of code. */
uint64_t linear_code_argument(const uint8_t *code, uint32_t size, uint64_t address);
/* Bytes up to behind the next instruction that no other follows. */
uint32_t linear_code_past(const uint8_t *code, uint32_t size);

#endif
