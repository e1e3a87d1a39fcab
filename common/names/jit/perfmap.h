/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map: a text file to which a runtime appends a line for each piece of code that it
 * generates: start and size in hexadecimal, then the name up to the end of the line. If lines
 * overlap, the later one wins. The contents are hostile: bad lines are counted and skipped.
 *
 * Source: tools/perf/Documentation/jit-interface.txt of the kernel; output of V8, HotSpot, CPython,
 * .NET and others.
 */
#ifndef COMMON_NAMES_JIT_PERFMAP_H
#define COMMON_NAMES_JIT_PERFMAP_H

#include "common/names/jit/codemap.h"

#define PERFMAP_LINE 2048 /* bytes of a line that are parsed */

struct perfmap {
	struct codemap code;
	uint64_t bad_lines;
	bool full;
	size_t len; /* bytes of the partial line in `line` */
	char line[PERFMAP_LINE];
};

/* max: limit of memory in bytes. */
void perfmap_init(struct perfmap *p, size_t max);
void perfmap_done(struct perfmap *p);
/* Parses the next bytes of the file. Returns 0, CODEMAP_FULL (earlier lines stay valid) or
 * -ENOMEM. */
int perfmap_feed(struct perfmap *p, struct span bytes);
/* Takes the last line of the file even without a line feed, when the file ends there for now. If
 * the line continues later, the longer line replaces it. Returns as perfmap_feed does. */
int perfmap_flush(struct perfmap *p);

#endif
