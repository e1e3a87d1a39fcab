/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a symbol without a size reaches: at most to the next symbol. But a table that lacks
 * symbols (as in a stripped library) would let it take the functions behind its own, which have
 * none. Call frame information, and calls that lead there, tell where those start.
 *
 * struct symreach is the room between such a symbol and the next one. Each start that is found in
 * it shortens it.
 *
 * Source: LSB, "Exception Frames" (.eh_frame_hdr); Intel's manual, volume 2, CALL.
 */
#ifndef PROFPIPE_SYMREACH_H
#define PROFPIPE_SYMREACH_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/span.h"

#define SYMREACH_HEADER 12 /* bytes of .eh_frame_hdr before its table */
#define SYMREACH_ENTRY 8
#define SYMREACH_CALL 5

/* Addresses. Disjoint, rising. */
struct symreach {
	uint64_t start, end;
};

/* A function starts at an address. */
void symreach_start(struct symreach *gaps, size_t count, uint64_t address);
/* How many entries the table has that head, the first bytes of .eh_frame_hdr, announces; 0 where it
 * is of a form that no linker writes. */
uint32_t symreach_table(const uint8_t head[static SYMREACH_HEADER]);
/* Takes some of these entries. address: of .eh_frame_hdr. */
void symreach_entries(struct symreach *gaps, size_t count, struct span entries, uint64_t address);
/* Takes relative calls in x86-64 code. Bytes that only look like one cost a name at worst. */
void symreach_calls(struct symreach *gaps, size_t count, struct span code, uint64_t address);

#endif
