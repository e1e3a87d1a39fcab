/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/maps, stat and status. Names in there are chosen by strangers: a comm may
 * hold parentheses, blanks and line feeds, a path anything but NUL.
 *
 * Source: proc(5); fs/proc/task_mmu.c and fs/proc/array.c of the kernel.
 */
#ifndef PROFPIPE_PROCFS_H
#define PROFPIPE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/span.h"

/* A path of PATH_MAX whose every byte is escaped, and the columns before it. */
#define PROCFS_LINE_MAX 17408u

enum procfs_name {
	PROCFS_ANON, /* nothing, or "[anon:…]", "[heap]", "[stack]": code in no file */
	PROCFS_FILE, /* a path, a memfd, a shared anonymous mapping: an inode stands behind it */
	PROCFS_VDSO,
	PROCFS_VSYSCALL,
	PROCFS_UPROBES,
};

struct procfs_mapping {
	uint64_t start, end, offset; /* bytes */
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	enum procfs_name kind;
	struct str name; /* unescaped, " (deleted)" taken off; borrowed */
	bool deleted, readable, writable;
};

enum procfs_verdict {
	PROCFS_SKIP = 1,      /* a mapping that is not executable; it is given all the same */
	PROCFS_MALFORMED = 2, /* not a line of that file */
};

/* One line of maps, without its line feed. Unescapes the path in place. 0, enum procfs_verdict. */
int procfs_parse_mapping(char *line, size_t len, struct procfs_mapping *ret);
/* What a mapping's name as perf's side-band records say it is. Takes " (deleted)" off. */
enum procfs_name procfs_name_kind(struct str *name, bool *ret_deleted);

struct procfs_stat {
	uint32_t pid, parent_pid, threads;
	char state;
	char comm[16]; /* zero-filled; not NUL-terminated when 16 bytes long (kernel workers have
			  longer names, cut here) */
	uint8_t comm_len;
	bool kernel;	   /* a kernel thread */
	bool exiting;	   /* its leader has begun to end */
	uint64_t start_ns; /* CLOCK_BOOTTIME, cut down to a clock tick (PROCFS_TICK_NS) */
};
/* USER_HZ is 100 on every architecture that we know. */
#define PROCFS_TICK_NS 10000000u
/* 0, PROCFS_MALFORMED. */
int procfs_parse_stat(struct span text, struct procfs_stat *ret);
/* The real uid out of status. 0, PROCFS_MALFORMED. */
int procfs_parse_status_uid(struct span text, uint32_t *ret_uid);
/* More out of status. */
struct procfs_ids {
	uint32_t uid, effective_uid;
	uint32_t inner_pid; /* as the process itself knows it, in its innermost pid namespace */
};
int procfs_parse_status_ids(struct span text, struct procfs_ids *ret);

/* --- small readers; `proc` is an O_PATH descriptor of a mounted proc, or of a copy of one.
 * -ENOENT, -ESRCH: no such process; -errno. --- */

/* Reads maps in pieces, however long it is; fn gets each executable mapping, in order. Bad lines
 * are skipped and counted. max: of mappings; the rest is not read. A process that ends meanwhile
 * shows an early end. How many, or -errno. */
ssize_t procfs_read_maps(int proc, uint32_t pid, size_t max,
			 void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx);
/* The same of all mappings. */
ssize_t procfs_read_all_maps(int proc, uint32_t pid, size_t max,
			     void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx);
/* 0, PROCFS_MALFORMED, -errno. */
int procfs_read_stat(int proc, uint32_t pid, struct procfs_stat *ret);
int procfs_read_uid(int proc, uint32_t pid, uint32_t *ret_uid);
int procfs_read_ids(int proc, uint32_t pid, struct procfs_ids *ret);
/* The proportional set size, in bytes; reading it takes the right to trace. 0, PROCFS_MALFORMED,
 * -errno. */
int procfs_read_pss(int proc, uint32_t pid, uint64_t *ret);
/* Calls fn with the first `max` children that the main thread of pid has. 0, -errno: -ENOENT also
 * where the kernel does not list them. */
int procfs_each_child(int proc, uint32_t pid, size_t max, void (*fn)(void *ctx, uint32_t pid),
		      void *ctx);
/* Every pid that proc lists. 0 or -errno. */
int procfs_each(int proc, void (*fn)(void *ctx, uint32_t pid), void *ctx);

/* Splits a stream of text into lines with a fixed buffer: what procfs_read_maps stands on, for
 * tests and the fuzzer. read: as read(2), 0 at the end, -errno. */
struct procfs_source {
	ssize_t (*read)(void *ctx, void *to, size_t n);
	void *ctx;
	bool all; /* not the executable mappings alone */
};
ssize_t procfs_stream_maps(struct procfs_source from, size_t max,
			   void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx);

#endif
