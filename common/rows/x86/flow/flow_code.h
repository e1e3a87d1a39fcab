/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of flow.h and graph.h: the bytes of one function, how to read them, and callbacks that
 * read the rest of the file.
 */
#ifndef COMMON_ROWS_X86_FLOW_FLOW_CODE_H
#define COMMON_ROWS_X86_FLOW_FLOW_CODE_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_MAX_CODE (256u << 10) /* bytes of one function */

/* A function, and the code around it that it may jump to. */
struct flow_code {
	const uint8_t *bytes; /* borrowed */
	uint32_t size;	      /* at most the code size that flow_new got */
	uint32_t entry;	      /* offset of the function's first instruction */
	uint32_t end;	      /* offset of the next function: no path falls through to it */
	uint64_t address;     /* of bytes[0] */
};

enum flow_verdict {
	FLOW_TANGLED = 1, /* too large, or too many branches */
	FLOW_CONTRADICTS = 2,
	FLOW_MISALIGNED = 3, /* a guessed function calls when RSP is not at a multiple of 16 */
};

/* How to read the function. */
enum flow_flags {
	FLOW_TRUSTED = 1,   /* a function certainly begins here; not a guess */
	FLOW_NO_RETURN = 2, /* a call does not return if padding or another function follows it */
	/* All bytes up to the end belong to the function. Bytes that no direct branch reaches are
	 * targets of its indirect jumps. */
	FLOW_SIZED = 4,
	FLOW_UNALIGNED = 8, /* never return FLOW_MISALIGNED */
	/* Hand-written code. A register keeps RSP across calls of the code's own helpers, and jumps
	 * go to addresses that were put into registers. All of it must fit: each ret finds the
	 * return address, and each jump by register finds a label. */
	FLOW_ASSEMBLY = 16,
};

/* Callbacks that read the rest of the file. Each may be NULL.
 * - read, for jump tables: reads n bytes at an ELF address; false if the file lacks them.
 * - begins: whether another function is known to begin at an offset outside this one.
 * - bare: whether no table describes the code at an offset.
 * - endless: whether the function at an offset is known never to return. */
struct flow_reader {
	bool (*read)(void *ctx, uint64_t address, void *into, uint32_t n);
	bool (*begins)(const void *ctx, int64_t at);
	bool (*bare)(const void *ctx, int64_t at);
	bool (*endless)(const void *ctx, int64_t at);
	void *ctx;
};

#endif
