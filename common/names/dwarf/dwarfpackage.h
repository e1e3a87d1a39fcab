/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DWARF package (.dwp) has the split DWARF of many units. Its .debug_cu_index tells which part of
 * each section belongs to a unit (DWARF 5, 7.3.5; GNU's version 2 for DWARF 4).
 */
#ifndef COMMON_NAMES_DWARF_DWARFPACKAGE_H
#define COMMON_NAMES_DWARF_DWARFPACKAGE_H

#include "common/names/dwarf/dwarfimage.h"

/* Sets `from` and `size` of the slices of the unit with this id. A section without a part for the
 * unit gets an empty slice. All units share the strings. Returns 0, SYMFILE_NONE, SYMFILE_MALFORMED
 * or -errno. */
int dwarfpackage_find(const struct symfile *f, uint64_t id,
		      struct dwarfimage_slice ret[static DWARFIMAGE_SECTIONS]);

#endif
