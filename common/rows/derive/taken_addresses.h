/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taken addresses: places that a file uses as functions. It calls them, loads their addresses into
 * a register (lea), or stores the addresses in its data or relocations.
 *
 * The search decodes nothing, and any bytes may look like an address. So a place counts only if it
 * lies where functions do: at a multiple of 16, after padding or a return. candidate.h then checks
 * whether its code is a function.
 */
#ifndef COMMON_ROWS_DERIVE_TAKEN_ADDRESSES_H
#define COMMON_ROWS_DERIVE_TAKEN_ADDRESSES_H

#include "common/rows/elf/elf.h"
#include "common/rows/elf/starts.h"

#define TAKEN_ADDRESSES_MAX (1u << 18)	       /* places kept */
#define TAKEN_ADDRESSES_MAX_BYTES (256u << 20) /* of a file, searched */

/* Adds taken addresses to the starts found so far. Reads the file with pread; unreadable parts
 * count as empty. Returns 0, -ENOMEM or MSG_ROWS_LATER (rows_stopped). */
int taken_addresses_find(const struct starts_search *s, const struct elf_file *f);

#endif
