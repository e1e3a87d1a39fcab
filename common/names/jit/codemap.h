/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that a runtime generated, by address: what perfmap.c and jitdump.c fill and jit.c asks.
 *
 * Pieces of code may overlap, since memory is used again: of those that cover an address, the
 * newest that was there at the time asked for is the answer. Adding n pieces costs O(n log² n), a
 * search O(log² n), whatever their order. Everything lies within a ceiling of bytes.
 */
#ifndef PROFPIPE_CODEMAP_H
#define PROFPIPE_CODEMAP_H

#include "common/base/buf.h"

#define CODEMAP_NAME 1024	  /* bytes of a name; the rest is cut off */
#define CODEMAP_SIZE (256u << 20) /* bytes of one piece; no JIT makes a larger one */
#define CODEMAP_LEVELS 32

struct codemap_entry {
	uint64_t start;
	uint64_t last_end; /* the highest end in the subtree of which this is the root */
	uint32_t size;
	uint32_t record; /* where in text; newer ones lie higher */
};

struct codemap_level {
	struct codemap_entry *at; /* by start */
	size_t len;
};

/* Owns all. Sorted levels, each at least twice as long as the next. */
struct codemap {
	size_t max; /* bytes */
	struct buf text;
	struct codemap_entry *fresh; /* not sorted yet */
	size_t fresh_len, fresh_cap, entries;
	struct codemap_level levels[CODEMAP_LEVELS];
	unsigned level_count;
};

/* One line of a table of lines; offset: from the code's start. */
struct codemap_line {
	uint32_t offset, line;
	uint32_t file; /* of codemap_file; 0: unknown */
};

enum codemap_verdict {
	CODEMAP_FULL = 1,	/* the ceiling: nothing more is kept */
	CODEMAP_IMPOSSIBLE = 2, /* an empty or giant piece, or one that wraps */
	CODEMAP_NONE = 3,	/* no code is known there */
};

struct codemap_hit {
	struct str name; /* borrowed until the next change */
	struct str file; /* of the line, empty when unknown; borrowed the same */
	uint32_t line;	 /* 0: unknown */
	uint64_t start;
	uint32_t size;
	uint32_t record; /* for codemap_move */
};

void codemap_init(struct codemap *m, size_t max);
void codemap_done(struct codemap *m);
/* Forgets all. */
void codemap_clear(struct codemap *m);
size_t codemap_bytes(const struct codemap *m);
/* A name of a file, copied. 0, CODEMAP_FULL, -ENOMEM. */
int codemap_file(struct codemap *m, struct str name, uint32_t *ret_file);
/* A table of lines, rising by offset, copied. The same errors. */
int codemap_lines(struct codemap *m, const struct codemap_line *lines, uint32_t count,
		  uint32_t *ret_lines);
/* A piece of code that is there from time_ns on (0: from ever). name: cut to CODEMAP_NAME, copied.
 * lines: of codemap_lines, 0: none. 0, CODEMAP_FULL, CODEMAP_IMPOSSIBLE, -ENOMEM. */
int codemap_add(struct codemap *m, uint64_t start, uint64_t size, uint64_t time_ns, struct str name,
		uint32_t lines);
/* The code of `record` is now there too. The same. */
int codemap_move(struct codemap *m, uint32_t record, uint64_t start, uint64_t size,
		 uint64_t time_ns);
/* What was at address at time_ns; where nothing was yet, what came there first. 0, CODEMAP_NONE,
 * -ENOMEM. */
int codemap_find(struct codemap *m, uint64_t address, uint64_t time_ns, struct codemap_hit *ret);

#endif
