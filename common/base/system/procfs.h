/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsers and readers for /proc/PID/maps, stat and status. Users choose the names in them: a comm
 * may hold parentheses, blanks and line feeds, and a path may hold anything but NUL.
 *
 * Source: proc(5); fs/proc/task_mmu.c and fs/proc/array.c of the kernel.
 */
#ifndef COMMON_BASE_SYSTEM_PROCFS_H
#define COMMON_BASE_SYSTEM_PROCFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

/* The columns and a path of PATH_MAX in which every byte is escaped. */
#define PROCFS_LINE_MAX 17408u

enum procfs_name {
	PROCFS_ANON, /* no name, or "[anon:…]", "[heap]", "[stack]": code outside files */
	PROCFS_FILE, /* a path, a memfd or a shared anonymous mapping: it has an inode */
	PROCFS_VDSO,
	PROCFS_VSYSCALL,
	PROCFS_UPROBES,
};

struct procfs_mapping {
	uint64_t start, end, offset; /* bytes */
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	enum procfs_name kind;
	struct str name; /* unescaped, without " (deleted)"; borrowed */
	bool deleted, readable, writable;
};

enum procfs_verdict {
	PROCFS_SKIP = 1,      /* the mapping is not executable; *ret is set anyway */
	PROCFS_MALFORMED = 2, /* not a line of this file */
};

/* Parses one line of maps, without its line feed. Unescapes the path in place. 0, enum
 * procfs_verdict. */
int procfs_parse_mapping(char *line, size_t len, struct procfs_mapping *ret);
/* The kind of a mapping by its name in perf's side-band records. Removes " (deleted)" from the
 * name. */
enum procfs_name procfs_name_kind(struct str *name, bool *ret_deleted);

struct procfs_stat {
	uint32_t pid, parent_pid, threads;
	char state;
	/* Zero-filled. No NUL follows 16 bytes: kernel workers have longer names, which are cut
	 * here. */
	char comm[16];
	uint8_t comm_len;
	bool kernel;	   /* a kernel thread */
	bool exiting;	   /* its leader has begun to exit */
	uint64_t cpu_ns;   /* its own and its reaped children's, user and system */
	uint64_t start_ns; /* CLOCK_BOOTTIME, rounded down to a clock tick (PROCFS_TICK_NS) */
};
/* USER_HZ is 100 on every known architecture. */
#define PROCFS_TICK_NS 10000000u
/* 0, PROCFS_MALFORMED. */
int procfs_parse_stat(struct span text, struct procfs_stat *ret);
/* The real uid in status. 0, PROCFS_MALFORMED. */
int procfs_parse_status_uid(struct span text, uint32_t *ret_uid);
/* More ids in status. */
struct procfs_ids {
	uint32_t uid, effective_uid;
	uint32_t inner_pid; /* the pid in the innermost pid namespace of the process */
};
int procfs_parse_status_ids(struct span text, struct procfs_ids *ret);

/* --- readers ---
 *
 * proc: an O_PATH descriptor of a mounted proc, or of a copy of one. -ENOENT, -ESRCH: no such
 * process; -errno. */

/* Reads maps in pieces, whatever its length, and calls fn for each executable mapping, in order.
 * Skips invalid lines. Stops after `max` mappings. If the process exits meanwhile, the list ends
 * early. Returns the number of mappings, or -errno. */
ssize_t procfs_read_maps(int proc, uint32_t pid, size_t max,
			 void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx);
/* The same for all mappings. */
ssize_t procfs_read_all_maps(int proc, uint32_t pid, size_t max,
			     void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx);
/* 0, PROCFS_MALFORMED, -errno. The kernel adds up the times of all threads. */
int procfs_read_stat(int proc, uint32_t pid, struct procfs_stat *ret);
/* The same with the cpu time of the main thread alone, which takes no longer for many threads. */
int procfs_read_thread_stat(int proc, uint32_t pid, struct procfs_stat *ret);
int procfs_read_uid(int proc, uint32_t pid, uint32_t *ret_uid);
int procfs_read_ids(int proc, uint32_t pid, struct procfs_ids *ret);
/* Reads where a link of the process leads, such as "exe". No file system but proc is asked. Returns
 * the length of the text, which does not end with NUL. */
ssize_t procfs_read_link(int proc, uint32_t pid, const char *link, char ret[static PATH_MAX]);
/* Finds the path of the cgroup in a cgroup file: that of the unified hierarchy, unless it is only
 * the root; else that of systemd's hierarchy, else any. *ret_unified: whether it is the first of
 * these. Borrows the text. PROCFS_SKIP: there is none. */
int procfs_parse_cgroup(struct str text, struct str *ret_path, bool *ret_unified);
#define PROCFS_CGROUP_MAX 8192u /* a longer file, with paths of 4 KiB, is read only in part */
/* Reads it into text. 0, PROCFS_SKIP, -errno. */
int procfs_read_cgroup(int proc, uint32_t pid, char text[static PROCFS_CGROUP_MAX],
		       struct str *ret_path, bool *ret_unified);
/* The proportional set size in bytes. Needs the right to trace the process. 0, PROCFS_MALFORMED,
 * -errno. */
int procfs_read_pss(int proc, uint32_t pid, uint64_t *ret);
/* Calls fn with the first `max` children of the main thread of pid. 0, -errno. -ENOENT also means
 * that the kernel does not list children. */
int procfs_each_child(int proc, uint32_t pid, size_t max, void (*fn)(void *ctx, uint32_t pid),
		      void *ctx);
/* Calls fn with every pid in proc. 0 or -errno. */
int procfs_each(int proc, void (*fn)(void *ctx, uint32_t pid), void *ctx);

/* Two files that may stay open and be read again, since opening takes longer than reading. A
 * descriptor refers to this process for ever, even if another one gets its pid. They return a
 * descriptor that the caller closes, or -errno. */
int procfs_open_statm(int proc, uint32_t pid);
int procfs_open_children(int proc, uint32_t pid);
/* The resident set size in bytes. This is cheap, because the kernel only looks at counters. For the
 * proportional set size it visits every page. 0, PROCFS_MALFORMED, -errno; -ESRCH: the process has
 * exited. */
int procfs_statm_resident(int statm, uint64_t *ret);
/* Calls fn with the first `max` children of the main thread; none if it has exited. 0, -errno. */
int procfs_children_each(int children, size_t max, void (*fn)(void *ctx, uint32_t pid), void *ctx);

/* The core of procfs_read_maps, for tests and the fuzzer: splits a stream of text into lines with a
 * fixed buffer. read: as read(2), 0 at the end, -errno. */
struct procfs_source {
	ssize_t (*read)(void *ctx, void *to, size_t n);
	void *ctx;
	bool all; /* also mappings that are not executable */
};
ssize_t procfs_stream_maps(struct procfs_source from, size_t max,
			   void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx);

#endif
