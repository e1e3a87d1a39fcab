/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where functions begin and end, as a file tells without symbols:
 *  - by its call frame information (.eh_frame by the sorted table of .eh_frame_hdr, else all of
 *    .eh_frame and .debug_frame), which is exact;
 *  - in code that no entry of it covers, by the calls and the addresses that lead there. This is an
 *    estimate: a function that nothing leads to counts as a part of the one before it.
 * The file is read by pread, as in symfile.h.
 *
 * Sources: DWARF 5, section 6.4.1; the LSB, "Exception Frames"; Intel's manual, volume 2, CALL, LEA
 * and MOV.
 */
#ifndef PROFPIPE_FUNCBOUNDS_H
#define PROFPIPE_FUNCBOUNDS_H

#include "common/names/elf/symfile.h"

struct funcbounds;

/* f: borrowed for *ret's life. Nothing is read yet. 0, -ENOMEM. */
int funcbounds_new(const struct symfile *f, struct funcbounds **ret);
void funcbounds_free(struct funcbounds *x);
/* The range of code that one entry of call frame information covers, and that has address in it. 0,
 * SYMFILE_NONE, SYMFILE_MALFORMED, SYMFILE_TOO_LARGE, -errno. */
int funcbounds_entry(struct funcbounds *x, uint64_t address, uint64_t *ret_start,
		     uint64_t *ret_end);
/* Where the function begins that address is in. floor: it cannot begin before (a symbol ends
 * there); 0: it can. The same errors; SYMFILE_NONE: no code lies there; SYMFILE_TOO_LARGE also
 * where no entry covers it and there is too much code to look at. */
int funcbounds_start(struct funcbounds *x, uint64_t address, uint64_t floor, uint64_t *ret_start);
/* Bytes of memory held. */
size_t funcbounds_bytes(const struct funcbounds *x);

#endif
