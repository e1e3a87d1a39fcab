/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of functions in a file without symbols:
 *
 *  - Call frame information is exact. .eh_frame is read through the sorted table of .eh_frame_hdr;
 *    without that table, all of .eh_frame and .debug_frame is read.
 *  - In code without it, bounds are estimated from calls and addresses that lead there. A function
 *    that nothing refers to counts as a part of the one before it.
 *
 * Sources: DWARF 5, section 6.4.1; the LSB, "Exception Frames"; Intel's manual, volume 2, CALL, LEA
 * and MOV.
 */
#ifndef COMMON_NAMES_ELF_FUNCBOUNDS_H
#define COMMON_NAMES_ELF_FUNCBOUNDS_H

#include "common/names/elf/symfile.h"

struct funcbounds;

/* f is borrowed until funcbounds_free. Reads nothing yet. Returns 0 or -ENOMEM. */
int funcbounds_new(const struct symfile *f, struct funcbounds **ret);
void funcbounds_free(struct funcbounds *x);
/* Finds the entry of call frame information (FDE) that covers address: its range of code. Returns
 * 0, SYMFILE_NONE, SYMFILE_MALFORMED, SYMFILE_TOO_LARGE or -errno. */
int funcbounds_entry(struct funcbounds *x, uint64_t address, uint64_t *ret_start,
		     uint64_t *ret_end);
/* Finds the start of the function that contains address. The function does not begin before
 * `floor`, where a symbol ends; 0: no such limit. Returns as funcbounds_entry does. SYMFILE_NONE:
 * there is no code. SYMFILE_TOO_LARGE also if no FDE covers address and there is too much code to
 * decode. */
int funcbounds_start(struct funcbounds *x, uint64_t address, uint64_t floor, uint64_t *ret_start);
/* Bytes of memory held. */
size_t funcbounds_bytes(const struct funcbounds *x);

#endif
