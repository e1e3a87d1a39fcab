/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over notes, as ELF files, core files and /sys/kernel/notes have them. Pure. Notes are
 * padded to four bytes. (Segments that are aligned to eight bytes pad to eight; the notes that are
 * read here have lengths for which both are the same.)
 *
 * Source: System V gABI chapter 5, "Note Section".
 */
#ifndef COMMON_BASE_BYTES_NOTES_H
#define COMMON_BASE_BYTES_NOTES_H

#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

struct note {
	uint32_t type;
	struct str name;     /* without the NULs at its end; borrowed */
	struct span content; /* borrowed */
};

/* Takes the next note from *rest. Returns false if no complete note is left. */
bool notes_next(struct span *rest, struct note *ret);
/* Finds the first note of this name and type that has 1 to `most` bytes. Returns false if there is
 * none. */
bool notes_find(struct span notes, const char *name, uint32_t type, size_t most, struct span *ret);

#endif
