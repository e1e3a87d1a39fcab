/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taken addresses: places that a file uses as functions. It calls them, loads their addresses into
 * a register (lea), or keeps them in its data or relocations.
 *
 * Nothing is decoded for that, and any bytes may look like it. So a place counts only if it lies as
 * functions do, at a multiple of 16 behind padding or a return. Its code must then turn out to be a
 * function (candidate.h).
 */
#ifndef PROFPIPE_TAKEN_ADDRESSES_H
#define PROFPIPE_TAKEN_ADDRESSES_H

#include "common/rows/elf/elf.h"
#include "common/rows/elf/starts.h"

#define TAKEN_ADDRESSES_MAX (1u << 18)	       /* places kept */
#define TAKEN_ADDRESSES_MAX_BYTES (256u << 20) /* of a file that are searched */

/* Adds such places to the starts found so far. The file is read by pread; parts that cannot be read
 * count as empty. 0, -ENOMEM. */
int taken_addresses_find(const struct starts_search *s, const struct elf_file *f);

#endif
