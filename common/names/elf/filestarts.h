/* SPDX-License-Identifier: Apache-2.0 */
/* The starts of functions in the code of a file, as codestarts.h estimates them. They are for code
 * that no entry of call frame information covers. */
#ifndef COMMON_NAMES_ELF_FILESTARTS_H
#define COMMON_NAMES_ELF_FILESTARTS_H

#include "common/names/elf/codestarts.h"
#include "common/names/elf/symfile.h"

#define FILESTARTS_GAPS 256u /* whose code is followed */

struct symfile_section;

struct filestarts {
	const struct symfile *file; /* borrowed */
	struct codestarts starts;
	bool tried;
	/* The starts of gaps that were followed, and how many more bytes may be. */
	uint64_t gaps[FILESTARTS_GAPS], follow_left;
	unsigned gap_count;
};

/* Reads nothing yet. */
void filestarts_init(struct filestarts *x, const struct symfile *f);
void filestarts_done(struct filestarts *x);
/* Collects all starts in the file, once. starts.full: there are too many, or too much code. 0,
 * -errno. */
int filestarts_read(struct filestarts *x);
/* Adds those in a gap between entries of call frame information, once per gap. Call filestarts_read
 * before. 0, -errno. */
int filestarts_follow(struct filestarts *x, uint64_t from, uint64_t to);
/* The section whose code is at address, borrowed; NULL: none. */
const struct symfile_section *filestarts_code(const struct symfile *f, uint64_t address);

#endif
