/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line table of one unit (.debug_line, DWARF 2 to 5): source files by their numbers, and the
 * file and line of an address.
 *
 * A lookup runs a part of the line program. To keep that part short, the first lookup runs all of
 * it and records a mark at the start of each sequence and after every few hundred rows. Rows are
 * not kept: a table of 100,000 rows takes 10 KiB of memory, and a first lookup allocates almost
 * nothing. (libdw makes and sorts a list of all rows.)
 *
 * Only offsets are kept. So the sections may be freed between two calls, and may come back with
 * other contents; then lines are wrong, but all reads are within bounds. Pure.
 *
 * Source: DWARF 5, section 6.2.
 */
#ifndef COMMON_NAMES_DWARF_DWARFLINES_H
#define COMMON_NAMES_DWARF_DWARFLINES_H

#include <stdbool.h>
#include "common/base/bytes/span.h"

/* The sections that a call reads. All are of one file, and borrowed for the call. */
struct dwarflines_sections {
	struct span line, line_str, str;
};

/* A row, and the place in the program from which the rows after it are made. */
struct dwarflines_mark {
	uint64_t address; /* ELF address */
	uint32_t next;	  /* offset in the program */
	uint32_t file, line;
	uint32_t op_index;
};

struct dwarflines {
	uint64_t tables, program; /* offsets in .debug_line: of the tables of folders and files, and
				   * of the program */
	uint64_t end;
	uint64_t lengths; /* of the lengths of standard opcodes */
	uint16_t version;
	bool wide; /* 64-bit DWARF */
	uint8_t min_length, max_ops, line_range, opcode_base;
	int8_t line_base;
	bool indexed;
	struct dwarflines_mark *marks; /* owned; sorted by address */
	size_t count, cap;
};

/* Reads the header at an offset of .debug_line. Returns false if it is damaged, or its version is
 * unknown. */
bool dwarflines_open(const struct dwarflines_sections *s, uint64_t offset, struct dwarflines *ret);
/* Runs the program once and records marks for later lookups. Does nothing the second time. max:
 * limit for marks, in bytes. Returns 0, SYMFILE_TOO_LARGE or -ENOMEM. */
int dwarflines_index(const struct dwarflines_sections *s, struct dwarflines *l, size_t max);
/* Finds the last row at or before an ELF address. Needs dwarflines_index. *ret_line is 0 if the
 * compiler gave no line. Returns false if no sequence contains the address. */
bool dwarflines_find(const struct dwarflines_sections *s, const struct dwarflines *l,
		     uint64_t address, uint64_t *ret_file, uint64_t *ret_line);
/* Writes the path of a file as the table has it: a relative one begins at the unit's folder.
 * Returns false if there is none, or if it does not fit into cap bytes. */
bool dwarflines_path(const struct dwarflines_sections *s, const struct dwarflines *l, uint64_t file,
		     char *into, size_t cap);
size_t dwarflines_bytes(const struct dwarflines *l);
void dwarflines_done(struct dwarflines *l);

#endif
