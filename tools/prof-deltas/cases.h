/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases: the table behind an indirect jump of a switch, from the instructions that lead to it.
 *
 * Compilers make two kinds: words of 4 bytes, of which each is a case's distance from the table
 * (lea B, [rip + table]; movsxd R, [B + 4 * I]; add R, B; jmp R), and addresses of 8 bytes
 * (jmp [table + 8 * I], or through registers). How many there are says the comparison before.
 *
 * Pure: no I/O, no log; not more than CASES_PATH instructions are decoded.
 */
#ifndef PROF_DELTAS_CASES_H
#define PROF_DELTAS_CASES_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

#define CASES_PATH 64  /* instructions looked back at */
#define CASES_MAX 4096 /* of one jump */

struct cases_table {
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
 * itself first, then backwards. `address` is code[0]'s. False: not a jump of these kinds; of *ret
 * then only these count. */
bool cases_find(const ZydisDecoder *decoder, const uint8_t *code, uint32_t size, uint64_t address,
		const uint32_t *path, uint32_t n, struct cases_table *ret);

#endif
