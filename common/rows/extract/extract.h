/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extractor: makes rows of an open ELF file. `prof-deltas FILE` and the service both call it.
 * It reads nothing but the descriptors it is given.
 */
#ifndef COMMON_ROWS_EXTRACT_EXTRACT_H
#define COMMON_ROWS_EXTRACT_EXTRACT_H

#include "common/rows/rows.h"

struct extract {
	/* The file ends earlier than its headers say; the rows cover the part that exists. */
	bool truncated;
	const char *why; /* static text; set if the verdict is not 0 or there are no rows */
};

/* Extracts the rows of the ELF file behind fd (borrowed; its position does not move). The caller
 * has called rows_init on *rows, and calls rows_done whatever the result. If rows->stopped returns
 * true, extraction gives up with MSG_ROWS_LATER within some milliseconds of cpu time.
 *
 * debug_fd (borrowed) is the separate debug file, whose .debug_frame is read; -1: none. If the rows
 * derived from code do not fit, only those from the tables are kept.
 *
 * Returns 0 (also without any row: rows->count is 0), enum msg_rows_status with *ret filled, or
 * -errno: -ENOMEM, or of reading, such as -EIO. Time is linear in the sizes of the sections read.
 * Memory stays little above ROWS_MAX_BYTES. */
int extract_rows(int fd, int debug_fd, struct rows *rows, struct extract *ret);

/* Like extract_rows, but from the code alone, as if the file had no call frame information. */
int extract_derived(int fd, struct rows *rows, struct extract *ret);

#endif
