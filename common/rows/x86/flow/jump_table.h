/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jump table of a switch, found from the instructions that lead to its indirect jump.
 *
 * Compilers make two kinds:
 * - entries of 4 bytes, each the distance of a case from the table (lea B, [rip + table]; movsxd R,
 *   [B + 4 * I]; add R, B; jmp R);
 * - entries of 8 bytes, each an address (jmp [table + 8 * I], or through registers).
 *
 * The comparison before the jump gives the number of entries.
 *
 * Pure: no I/O, no log; decodes at most JUMP_TABLE_PATH instructions.
 */
#ifndef COMMON_ROWS_X86_FLOW_JUMP_TABLE_H
#define COMMON_ROWS_X86_FLOW_JUMP_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

#define JUMP_TABLE_PATH 64  /* instructions before the jump that are read */
#define JUMP_TABLE_MAX 4096 /* entries of one jump */

struct jump_table {
	bool known;    /* `address` is the table's; otherwise it is relative to register `base`,
		        * which was set earlier */
	uint8_t base;  /* a general register, by Zydis' number */
	uint8_t width; /* bytes of an entry: 4, relative to the table; 8, an address */
	/* For a jump of neither kind. pointer: its target was read from memory, or is `address`.
	 * untouched: its target is in a register that no instruction on the path sets. */
	bool pointer, untouched;
	uint32_t bound;	  /* number of entries; 0: unknown */
	uint64_t address; /* ELF address; if !known, the number added to the base */
};

/* Finds the jump table of an indirect jump. `path` holds the instructions that run before the jump,
 * as offsets in code, backwards from the jump itself. `address` is that of code[0]. Returns false
 * if the jump is of neither kind: then only `pointer`, `untouched` and `address` of *ret are
 * valid. */
bool jump_table_find(const ZydisDecoder *decoder, const uint8_t *code, uint32_t size,
		     uint64_t address, const uint32_t *path, uint32_t n, struct jump_table *ret);

#endif
