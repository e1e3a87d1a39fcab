/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of one function as flow.h and graph.h see it: its bytes, how they are to be read, and
 * what both may ask about the rest of the file.
 */
#ifndef PROFPIPE_FLOW_CODE_H
#define PROFPIPE_FLOW_CODE_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_MAX_CODE (256u << 10) /* bytes of one function */

/* A function, and the code around it that it may jump to. */
struct flow_code {
	const uint8_t *bytes; /* borrowed */
	uint32_t size;	      /* up to what flow_new was given */
	uint32_t entry;	      /* the function's first instruction: offset, as below */
	uint32_t end;	      /* where the next one begins: nothing goes on there from before */
	uint64_t address;     /* of bytes[0] */
};

enum flow_verdict {
	FLOW_TANGLED = 1, /* too large, or too many branches */
	FLOW_CONTRADICTS = 2,
	FLOW_MISALIGNED = 3, /* a guess calls with RSP not at a multiple of 16 */
};

/* How the function is to be seen. */
enum flow_flags {
	FLOW_TRUSTED = 1,   /* a function begins here, and is not guessed to */
	FLOW_NO_RETURN = 2, /* a call with padding behind it does not come back */
	FLOW_SIZED = 4, /* all bytes up to the end are its own: those that no direct branch reaches
			   are targets of its indirect jumps */
	FLOW_UNALIGNED = 8, /* never say FLOW_MISALIGNED */
	/* By hand: RSP is kept in a register over calls of the code's own helpers, and code goes on
	 * where an address was put into a register. All of it has to hold: each ret finds the
	 * return address, and each jump by a register a label. */
	FLOW_ASSEMBLY = 16,
};

/* What else of the file is looked at. read, for the tables of jumps: n bytes at an ELF address;
 * false where they are not there. begins: whether another function is known to begin at an offset
 * outside the own one. bare: whether tables say nothing of the code there. Each may be NULL. */
struct flow_reader {
	bool (*read)(void *ctx, uint64_t address, void *into, uint32_t n);
	bool (*begins)(const void *ctx, int64_t at);
	bool (*bare)(const void *ctx, int64_t at);
	void *ctx;
};

#endif
