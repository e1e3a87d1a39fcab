/* SPDX-License-Identifier: Apache-2.0 */
/* The starts of functions in the code of a file, as estimated by codestarts.h. Used for code that
 * no entry of call frame information covers. */
#ifndef COMMON_NAMES_ELF_FILESTARTS_H
#define COMMON_NAMES_ELF_FILESTARTS_H

#include "common/names/elf/codestarts.h"
#include "common/names/elf/symfile.h"

#define FILESTARTS_GAPS 256u /* gaps whose code is decoded */

struct symfile_section;

struct filestarts {
	const struct symfile *file; /* borrowed */
	struct codestarts starts;
	bool tried;
	/* The starts of gaps that were decoded, and how many more bytes may be decoded. */
	uint64_t gaps[FILESTARTS_GAPS], follow_left;
	unsigned gap_count;
};

/* Prepares *x. f is borrowed until filestarts_done. Reads nothing yet. */
void filestarts_init(struct filestarts *x, const struct symfile *f);
void filestarts_done(struct filestarts *x);
/* Collects all starts in the file; later calls do nothing. starts.full is set if there are too many
 * starts, or too much code. Returns 0 or -errno. */
int filestarts_read(struct filestarts *x);
/* Adds the starts in a gap between entries of call frame information; later calls for the same gap
 * do nothing. Call filestarts_read before. Returns 0 or -errno. */
int filestarts_follow(struct filestarts *x, uint64_t from, uint64_t to);
/* Returns the section whose code is at address, borrowed; NULL: none. */
const struct symfile_section *filestarts_code(const struct symfile *f, uint64_t address);

#endif
