/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A DWARF package (.dwp) has the split DWARF of many units. Its .debug_cu_index says which part of
 * each section belongs to a unit (DWARF 5, 7.3.5; GNU's version 2 for DWARF 4).
 */
#ifndef COMMON_NAMES_DWARF_DWARFPACKAGE_H
#define COMMON_NAMES_DWARF_DWARFPACKAGE_H

#include "common/names/dwarf/dwarfimage.h"

/* Sets from and size of the slices of the unit with this id; sections without a part of it get
 * empty ones. All units share the strings. 0, SYMFILE_NONE, SYMFILE_MALFORMED, -errno. */
int dwarfpackage_find(const struct symfile *f, uint64_t id,
		      struct dwarfimage_slice ret[static DWARFIMAGE_SECTIONS]);

#endif
