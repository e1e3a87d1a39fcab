/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory of a process is within reach of its interpreted frames: the pages that prof-symd
 * needs in order to name them.
 *
 * A sample has the addresses of objects. The words of an object point to strings and tables, and
 * the words of these, in some versions, to characters. So a page has a distance:
 *
 *   0  an object of a sample lies there
 *   1  something read at distance 0 points there
 *   2  something read at distance 1 points there; what is read there leads no further
 *
 * It is a set of page numbers with a ceiling. New pages replace old ones, those of the largest
 * distance first.
 */
#ifndef PROF_BPF_HOST_REACH_H
#define PROF_BPF_HOST_REACH_H

#include <stdbool.h>
#include "common/base/span.h"

#define REACH_PAGE_SHIFT 12
#define REACH_FAR 2		/* the largest distance */
#define REACH_FIRST 512		/* pages that a new set holds; it doubles up to */
#define REACH_MOST 4096		/* this */
#define REACH_BEFORE 16		/* bytes before an object that belong to it */
#define REACH_BYTES (66u << 10) /* that may be read from a page on: tables have 64 KiB at most */
#define REACH_SCANNED 8192u	/* bytes of a piece of memory whose words are looked at */

struct reach;

/* Notes a page. *reach: NULL at first; owned by the caller. Without memory it is not noted. */
void reach_add(struct reach **reach, uint64_t address, unsigned distance);
/* Notes where the words of some memory point, if it is within reach itself. */
void reach_read(struct reach **reach, uint64_t address, struct span bytes);
/* The distance of this memory; -1: it is not within reach. */
int reach_of(const struct reach *reach, uint64_t address, uint64_t length);
void reach_free(struct reach *reach);

#endif
