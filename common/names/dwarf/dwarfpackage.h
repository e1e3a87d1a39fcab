/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of a DWARF package (.dwp) belong to a unit, by its .debug_cu_index (DWARF 5, 7.3.5;
 * GNU's version 2 for DWARF 4).
 */
#ifndef PROFPIPE_DWARFPACKAGE_H
#define PROFPIPE_DWARFPACKAGE_H

#include "common/names/dwarf/dwarfimage.h"

/* Sets from and size of the slices of the unit with this id; those that it has no part of are
 * empty. Strings are all units'. 0, SYMFILE_NONE, SYMFILE_MALFORMED, -errno. */
int dwarfpackage_find(const struct symfile *f, uint64_t id,
		      struct dwarfimage_slice ret[static DWARFIMAGE_SECTIONS]);

#endif
