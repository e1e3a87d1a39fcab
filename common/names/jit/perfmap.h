/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map: text that a runtime appends to while it generates code, one piece a line, its start
 * and size in hexadecimal and its name up to the end of the line. Later lines hold where they
 * overlap earlier ones. Anybody may have written it: a line that is none is counted and passed
 * over.
 *
 * Source: tools/perf/Documentation/jit-interface.txt of the kernel; what V8, HotSpot, CPython, .NET
 * and others write.
 */
#ifndef PROFPIPE_PERFMAP_H
#define PROFPIPE_PERFMAP_H

#include "common/names/jit/codemap.h"

#define PERFMAP_LINE 2048 /* bytes of a line that are looked at */

struct perfmap {
	struct codemap code;
	uint64_t bad_lines;
	bool full;
	size_t len; /* of the line being put together */
	char line[PERFMAP_LINE];
};

/* max: bytes of memory. */
void perfmap_init(struct perfmap *p, size_t max);
void perfmap_done(struct perfmap *p);
/* Takes the bytes that follow those taken before. 0, CODEMAP_FULL (what came before holds),
 * -ENOMEM. */
int perfmap_feed(struct perfmap *p, struct span bytes);
/* Nothing follows for now: a last line without its line feed counts, unless it goes on later. */
int perfmap_flush(struct perfmap *p);

#endif
