/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code map: pieces of generated code by address. perfmap.c and jitdump.c fill it; codefile.c
 * looks addresses up in it.
 *
 * Pieces may overlap, since runtimes reuse memory. A lookup is for a time, and finds the newest
 * piece that covered the address then. Adding n pieces costs O(n log² n) in any order, a lookup
 * O(log² n). A code map has a limit in bytes.
 */
#ifndef COMMON_NAMES_JIT_CODEMAP_H
#define COMMON_NAMES_JIT_CODEMAP_H

#include "common/base/bytes/buf.h"
#include "common/base/bytes/str.h"

#define CODEMAP_NAME 1024	  /* bytes of a name; longer ones are truncated */
#define CODEMAP_SIZE (256u << 20) /* bytes of one piece; no JIT makes larger ones */
#define CODEMAP_LEVELS 32

struct codemap_entry {
	uint64_t start;
	uint64_t last_end; /* the highest end in the subtree below this entry */
	uint32_t size;
	uint32_t record; /* offset in `text`; newer records lie higher */
};

struct codemap_level {
	struct codemap_entry *at; /* by start */
	size_t len;
};

/* Owns all pointers. Each level is sorted and at least twice as long as the next one. */
struct codemap {
	size_t max; /* bytes */
	struct buf text;
	struct codemap_entry *fresh; /* not sorted yet */
	size_t fresh_len, fresh_cap, entries;
	struct codemap_level levels[CODEMAP_LEVELS];
	unsigned level_count;
};

/* An entry of a line table; offset: from the start of the code. */
struct codemap_line {
	uint32_t offset, line;
	uint32_t file; /* of codemap_file; 0: unknown */
};

enum codemap_verdict {
	CODEMAP_FULL = 1,	/* the limit was reached: nothing more is added */
	CODEMAP_IMPOSSIBLE = 2, /* an empty or huge piece, or one that wraps around */
	CODEMAP_NONE = 3,	/* no code known at this address */
};

struct codemap_hit {
	struct str name; /* borrowed until the next change */
	struct str file; /* source file of the line, empty if unknown; borrowed likewise */
	uint32_t line;	 /* 0: unknown */
	uint64_t start;
	uint32_t size;
	uint32_t record; /* argument for codemap_move */
	/* A lookup of the address for any time from since_ns to before until_ns has the same
	 * answer, until something is added. */
	uint64_t since_ns, until_ns;
};

void codemap_init(struct codemap *m, size_t max);
void codemap_done(struct codemap *m);
size_t codemap_bytes(const struct codemap *m);
/* Adds the name of a source file, which is copied. Returns 0, CODEMAP_FULL or -ENOMEM. */
int codemap_file(struct codemap *m, struct str name, uint32_t *ret_file);
/* Adds a line table, sorted by offset, which is copied. *ret_lines is for codemap_add. Returns as
 * codemap_file does. */
int codemap_lines(struct codemap *m, const struct codemap_line *lines, uint32_t count,
		  uint32_t *ret_lines);
/* Adds a piece of code that exists from time_ns on (0: since always). name is copied, and truncated
 * to CODEMAP_NAME. lines comes from codemap_lines; 0: none. Returns 0, CODEMAP_FULL,
 * CODEMAP_IMPOSSIBLE or -ENOMEM. */
int codemap_add(struct codemap *m, uint64_t start, uint64_t size, uint64_t time_ns, struct str name,
		uint32_t lines);
/* Records that the code of `record` also exists at this place from time_ns on. Returns as
 * codemap_add does. */
int codemap_move(struct codemap *m, uint32_t record, uint64_t start, uint64_t size,
		 uint64_t time_ns);
/* Finds the code that was at an address at time_ns. If there was none yet, finds the first code
 * that came there later. Returns 0, CODEMAP_NONE or -ENOMEM. */
int codemap_find(struct codemap *m, uint64_t address, uint64_t time_ns, struct codemap_hit *ret);

#endif
