/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taken: places whose addresses a file uses as those of functions: it calls them, loads them into a
 * register by where they lie (lea), or keeps them in its data or relocations.
 *
 * Nothing is decoded for that: bytes that look like it may be anything. So only places count that
 * lie as functions do, at a multiple of 16 behind padding or a return; and what is there must then
 * turn out to be a function.
 */
#ifndef PROF_DELTAS_TAKEN_H
#define PROF_DELTAS_TAKEN_H

#include "tools/prof-deltas/elf.h"
#include "tools/prof-deltas/starts.h"

#define TAKEN_MAX (1u << 18)	     /* places kept */
#define TAKEN_MAX_BYTES (256u << 20) /* of a file that are searched */

/* Adds such places to those found, whose ranges are known. The file is read by pread; what cannot
 * be read counts as empty. 0, -ENOMEM. */
int taken_find(const struct starts_search *s, const struct elf_file *f);

#endif
