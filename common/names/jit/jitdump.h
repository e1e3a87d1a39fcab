/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump: records that a runtime appends while it generates, moves and drops code, with names,
 * times and lines of source. Anybody may have written it. The code itself is not looked at, and
 * records that are of no use are passed over unread.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt of the kernel.
 */
#ifndef PROFPIPE_JITDUMP_H
#define PROFPIPE_JITDUMP_H

#include "common/names/jit/codemap.h"

#define JITDUMP_RECORD (1u << 20) /* bytes of a record that are looked at */

enum jitdump_verdict {
	/* CODEMAP_FULL = 1 */
	JITDUMP_FOREIGN = 16,	/* of another byte order, machine or version */
	JITDUMP_MALFORMED = 17, /* no jitdump, or one that goes on with what is no record */
};

struct jitdump {
	struct codemap code;
	struct buf pending; /* the beginning of a record */
	uint64_t skip;	    /* bytes of the file that come next and are not wanted */
	bool header, times; /* header: it was taken; times: CLOCK_MONOTONIC */
	int stopped;	    /* a verdict, when nothing more is taken */
	uint64_t bad_records;
	/* Lines that wait for the code they are for. */
	uint64_t lines_for;
	uint32_t lines;
	uint32_t last_file; /* where the name of last_name is kept */
	struct buf last_name, table;
};

/* max: bytes of memory. */
void jitdump_init(struct jitdump *j, size_t max);
void jitdump_done(struct jitdump *j);
/* Takes the bytes that follow those taken before. *ret_skip: so many bytes that come next in the
 * file need not be given. 0, CODEMAP_FULL, enum jitdump_verdict (what came before holds; nothing
 * more is taken), -ENOMEM. */
int jitdump_feed(struct jitdump *j, struct span bytes, uint64_t *ret_skip);

#endif
