/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump: a file to which a runtime appends a record whenever it generates, moves or drops code,
 * with names, times and source lines. Its contents are hostile. The reader skips the code itself,
 * and records that it does not use.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt of the kernel.
 */
#ifndef COMMON_NAMES_JIT_JITDUMP_H
#define COMMON_NAMES_JIT_JITDUMP_H

#include "common/names/jit/codemap.h"

#define JITDUMP_RECORD (1u << 20) /* bytes of a record that are parsed */

enum jitdump_verdict {
	/* CODEMAP_FULL is 1 */
	JITDUMP_FOREIGN = 16,	/* of another byte order, machine or version */
	JITDUMP_MALFORMED = 17, /* not a jitdump, or garbage follows its records */
};

struct jitdump {
	struct codemap code;
	struct buf pending;   /* a record of which only the beginning has come */
	uint64_t skip;	      /* bytes to come that are not needed */
	bool header, times;   /* header: it was read; times: timestamps are of CLOCK_MONOTONIC */
	int stopped;	      /* the verdict after which reading stopped; 0: it has not stopped */
	uint64_t bad_records; /* for tests */
	/* A line table comes before the record of its code. lines_for is the address of that
	 * code. */
	uint64_t lines_for;
	uint32_t lines;
	uint32_t last_file; /* the number of last_name in `code` */
	struct buf last_name, table;
};

/* max: limit of memory in bytes. */
void jitdump_init(struct jitdump *j, size_t max);
void jitdump_done(struct jitdump *j);
/* Parses the next bytes of the file. *ret_skip is the number of bytes after these that the caller
 * need not read. Returns 0, CODEMAP_FULL, enum jitdump_verdict or -ENOMEM. After a verdict earlier
 * records stay valid, and nothing more is added. */
int jitdump_feed(struct jitdump *j, struct span bytes, uint64_t *ret_skip);

#endif
