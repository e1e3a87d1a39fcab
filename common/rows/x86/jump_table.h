/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table behind the indirect jump of a switch, from the instructions that lead to it.
 *
 * Compilers make two kinds:
 *  - words of 4 bytes, each a case's distance from the table
 *    (lea B, [rip + table]; movsxd R, [B + 4 * I]; add R, B; jmp R);
 *  - addresses of 8 bytes (jmp [table + 8 * I], or through registers).
 * The comparison before tells how many there are.
 *
 * Pure: no I/O, no log; at most JUMP_TABLE_PATH instructions are decoded.
 */
#ifndef PROFPIPE_JUMP_TABLE_H
#define PROFPIPE_JUMP_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

#define JUMP_TABLE_PATH 64  /* instructions looked back at */
#define JUMP_TABLE_MAX 4096 /* of one jump */

struct jump_table {
	bool known;    /* address is; else it is what register `base` holds, set before the path */
	uint8_t base;  /* as Zydis numbers general registers */
	uint8_t width; /* of an entry: 4, relative to the table; 8, an address */
	/* Of a jump that is none of these kinds: where it leads was read from memory or is
	 * `address`, or is in a register that nothing on the path sets. */
	bool pointer, untouched;
	uint32_t bound;	  /* entries; 0: not said */
	uint64_t address; /* ELF address; with !known, what is added to the base */
};

/* path: offsets in code of the instructions that run one after the other before the jump, the jump
 * itself first, then backwards. `address` is code[0]'s. False: the jump is of neither kind, and of
 * *ret only `pointer`, `untouched` and `address` count. */
bool jump_table_find(const ZydisDecoder *decoder, const uint8_t *code, uint32_t size,
		     uint64_t address, const uint32_t *path, uint32_t n, struct jump_table *ret);

#endif
