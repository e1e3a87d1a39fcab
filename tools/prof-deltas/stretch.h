/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches of code, read from the first byte on without following a branch: padding, the code of
 * an entry point, what goes on up to where nothing follows. Pure.
 */
#ifndef PROF_DELTAS_STRETCH_H
#define PROF_DELTAS_STRETCH_H

#include <stdint.h>

#define STRETCH_MAX_ENTRY 256 /* bytes of an entry point */

/* Bytes of the padding (nop, int3, zeros) that code begins with. */
uint32_t stretch_padding(const uint8_t *code, uint32_t size);
/* Bytes of the entry point's code, which nothing called: up to where it ends or gives itself to
 * something that does not return. *ret_call, if it calls: the last target, relative to the start.
 */
uint32_t stretch_entry(const uint8_t *code, uint32_t size, int64_t *ret_call);
/* The address that is the first argument (RDI) of the first call or jump, if the code up to there
 * says so; 0: it does not. address: of code. */
uint64_t stretch_argument(const uint8_t *code, uint32_t size, uint64_t address);
/* Bytes up to behind the next instruction that no other follows. */
uint32_t stretch_past(const uint8_t *code, uint32_t size);

#endif
