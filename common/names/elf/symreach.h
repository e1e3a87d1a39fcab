/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reach of a symbol without a size: at most up to the next symbol. If a table lacks symbols (as
 * in a stripped library), the symbol would also cover the nameless functions after its own. Call
 * frame information and calls tell where those start; each start in the gap shortens the reach.
 *
 * Source: LSB, "Exception Frames" (.eh_frame_hdr); Intel's manual, volume 2, CALL.
 */
#ifndef COMMON_NAMES_ELF_SYMREACH_H
#define COMMON_NAMES_ELF_SYMREACH_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/span.h"

#define SYMREACH_HEADER 12 /* bytes of .eh_frame_hdr before its table */
#define SYMREACH_ENTRY 8
#define SYMREACH_CALL 5

/* A gap: the addresses from such a symbol up to the next one. Arrays of these are sorted and
 * disjoint. */
struct symreach {
	uint64_t start, end;
};

/* Returns how many entries the table of .eh_frame_hdr has, by the header's first bytes. 0: it has a
 * form that no linker writes. */
uint32_t symreach_table(const uint8_t head[static SYMREACH_HEADER]);
/* Shortens the gaps by the starts in some of these entries. `address` is that of .eh_frame_hdr. */
void symreach_entries(struct symreach *gaps, size_t count, struct span entries, uint64_t address);
/* Shortens the gaps by the targets of relative calls in x86-64 code. Bytes that only look like a
 * call may cost a name, but do no other harm. */
void symreach_calls(struct symreach *gaps, size_t count, struct span code, uint64_t address);

#endif
