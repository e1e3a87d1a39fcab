/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a symbol without a size reaches. At most to the next symbol; but a table that lacks
 * symbols (those of a stripped library) lets it take the functions behind its own, which have
 * none. Their starts are told by what call frame information says and by calls that lead there.
 *
 * A gap is the room between such a symbol and the next one; what is found in it shortens it.
 *
 * Source: LSB, "Exception Frames" (.eh_frame_hdr); Intel's manual, volume 2, CALL.
 */
#ifndef PROFPIPE_GAPS_H
#define PROFPIPE_GAPS_H

#include <stddef.h>
#include <stdint.h>
#include "common/span.h"

#define GAPS_HEADER 12 /* bytes of .eh_frame_hdr before its table */
#define GAPS_ENTRY 8
#define GAPS_CALL 5

/* Addresses. Disjoint, rising. */
struct gap {
	uint64_t start, end;
};

/* A function starts at an address. */
void gaps_start(struct gap *gaps, size_t count, uint64_t address);
/* The entries of the table that head (.eh_frame_hdr's first GAPS_HEADER bytes) announces; 0 where
 * it is of a form that no linker writes. */
uint32_t gaps_table(const uint8_t head[static GAPS_HEADER]);
/* So many entries of it; address: of .eh_frame_hdr. */
void gaps_entries(struct gap *gaps, size_t count, struct span entries, uint64_t address);
/* Calls by distance in x86-64 code. What only looks like one costs a name, at worst. */
void gaps_calls(struct gap *gaps, size_t count, struct span code, uint64_t address);

#endif
