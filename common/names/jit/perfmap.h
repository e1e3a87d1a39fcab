/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map: a text file to which a runtime appends a line for each piece of code that it
 * generates: start and size in hexadecimal, then the name up to the end of the line. Where lines
 * overlap, the later one wins. The contents are hostile: bad lines are counted and skipped.
 *
 * Source: tools/perf/Documentation/jit-interface.txt of the kernel; what V8, HotSpot, CPython, .NET
 * and others write.
 */
#ifndef COMMON_NAMES_JIT_PERFMAP_H
#define COMMON_NAMES_JIT_PERFMAP_H

#include "common/names/jit/codemap.h"

#define PERFMAP_LINE 2048 /* bytes of a line that are parsed */

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
/* Takes the next bytes of the file. 0, CODEMAP_FULL (earlier lines stay valid), -ENOMEM. */
int perfmap_feed(struct perfmap *p, struct span bytes);
/* The file ends here for now. Takes its last line even without a line feed; if the line goes on
 * later, that replaces it. The same errors. */
int perfmap_flush(struct perfmap *p);

#endif
