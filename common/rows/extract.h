/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extractor: from an open ELF file to its rows. One function behind `prof-deltas FILE` and
 * behind the service; it reads nothing but the descriptor.
 */
#ifndef PROFPIPE_EXTRACT_H
#define PROFPIPE_EXTRACT_H

#include "common/rows/rows.h"

struct extract {
	bool truncated;	 /* the file ends before what its headers say: the rows are what was left of
			    it */
	const char *why; /* static text, when the verdict is not 0, or no rows were found */
};

/* Extracts the rows of the ELF file behind fd (borrowed; its position is not moved) into *rows,
 * which was set up by rows_init and is the caller's to rows_done in
 * any case. debug_fd: the file's separate debug file (borrowed), of which .debug_frame is read; -1:
 * none. Where there is no room for rows derived from the code, those of the tables go without. 0
 * (also with no rows at all, then rows->count is 0), enum rows_status with *ret filled,
 * or -errno (-EIO and the like: reading; -ENOMEM). Time is linear in the
 * sizes of the sections that are read, memory under ROWS_MAX_BYTES and some. */
int extract_rows(int fd, int debug_fd, struct rows *rows, struct extract *ret);

/* The same of the code alone, as if the file had no call frame information of any kind. */
int extract_derived(int fd, struct rows *rows, struct extract *ret);

#endif
