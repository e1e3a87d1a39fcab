/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host as samples find it: processes, their threads, executable mappings, and the files behind
 * them.
 *
 * A process is (pid, start time, exec count); each exec makes a new object, and a sample gets the
 * one that was there at its time. Objects outlive what they stand for by HOST_GRACE_NS, so that
 * late samples find them. Mapping arrays are shared between a process and its forks until one of
 * them changes.
 *
 * A file is what the kernel says of the open descriptor: (device, inode, ctime, size). It is opened
 * by the opener, through map_files; until that is done its mappings are not published. A device,
 * inode and generation as in a mapping record spare an opening only for files that are open still,
 * unchanged, and for those that nobody but root can write and that were looked at within
 * HOST_RECHECK_NS.
 *
 * Order of use: side-band events are opened, then host_new and host_scan, then host_event for each
 * record in order, then host_sample for samples no later than the records, then host_tick, which
 * opens and publishes what has changed. Nothing here waits, but for /proc.
 */
#ifndef PROFPIPE_HOST_H
#define PROFPIPE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "bpf/sample.h"
#include "common/base/span.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/kernel/sideband.h"

#define HOST_GRACE_NS 2500000000ull /* above TABLES_GRACE_NS */
#define HOST_RECHECK_NS 1000000000ull
#define HOST_IDLE_FILE_NS 30000000000ull /* an unmapped file keeps its rows that long */
/* An open descriptor is kept that long after its last use. */
#define HOST_FD_IDLE_NS 10000000000ull
#define HOST_MAX_FDS 64
#define HOST_MAX_PROCESSES 32768
#define HOST_MAX_MAPPINGS 131072 /* of a process */
#define HOST_MAX_FILES 8191
#define HOST_PATH_MAX 1024

struct host;
struct tables;
struct host_maps;

/* A file with a slot. Borrowed from the host; good until the next host_tick. */
struct host_file {
	uint32_t id;   /* from 1 on, never used again */
	uint64_t sent; /* the caller's mark, 0 in a new one */
	uint64_t dev;  /* as in struct opener_file: major << 32 | minor */
	uint64_t inode, ctime_ns, size;
	uint32_t uid, mode;
	uint32_t flags;	    /* enum file_flags of common/wire/msg.h */
	bool foreign_owner; /* uid is what a server of files says (FUSE, NFS) */
	bool described;	    /* the caller's: prof-symd has said what runtime it holds */
	bool offered;	    /* the caller's: prof-symd was, or will be, told to look at it */
	bool looked_at;	    /* the caller's: what came of that is known */
	uint16_t slot;	    /* in the tables; 0: none was left */
	char *path;	    /* as the first process that mapped it sees it; NUL-terminated */
	uint32_t path_len;
};

/* A process between two execs. */
struct host_process {
	uint32_t id; /* from 1 on, never used again */
	uint64_t sent, generated_sent;
	bool changed; /* in what the stream says of it; the caller clears it when it has said it */
	uint32_t pid, parent_pid, uid, execs;
	uint32_t flags;	   /* enum process_flags of common/wire/msg.h */
	uint64_t start_ns; /* CLOCK_BOOTTIME, cut to START_TICK_NS */
	uint64_t end_ns;   /* CLOCK_MONOTONIC of its exit or exec; 0: it lives */
	char comm[16];
	uint8_t comm_len;
	bool selected;
	uint32_t generation; /* of the mappings last published, 0: none */
	/* Generations that samples of it may have been walked with: what was published of it, and
	 * of its parent before it was forked. Both 0: none. */
	uint32_t first_generation, last_generation;
	struct host_file *exe; /* NULL: unknown */
};

/* A thread under one of its names. */
struct host_thread {
	uint32_t id;
	uint64_t sent;
	uint32_t tid;
	struct host_process *process;
	char comm[16];
	uint8_t comm_len;
};

struct host_config {
	struct tables *tables; /* borrowed, as is the opener */
	struct opener *opener;
	const char *proc;	   /* "/proc" */
	bool only_selected;	   /* only what host_select names is tracked; else everything */
	bool follow_forks;	   /* children of what is selected are selected */
	const uint32_t *self_uids; /* processes of these users are flagged PROCESS_SELF */
	size_t self_uid_count;
	/* A file with a slot needs rows (once a file, and after host_want_rows). fd: the callback's
	 * to close. */
	void (*file_needs_rows)(void *ctx, struct host_file *f, int fd);
	/* The process and its threads are forgotten after this returns. */
	void (*process_gone)(void *ctx, struct host_process *p);
	void *ctx;
};
/* -errno. The caller owns *ret. Calls file_needs_rows for the vDSO. */
int host_new(const struct host_config *c, struct host **ret);
void host_free(struct host *h);

/* Selects a process that runs, or is about to be heard of. Before host_scan or at any time. -ESRCH:
 * there is none. */
int host_select(struct host *h, uint32_t pid);
/* The children of those that were selected, and theirs, as far as they live now. 0, -errno of
 * /proc.
 */
int host_select_children(struct host *h);
/* Flags a process PROCESS_SELF, now or when it is heard of. */
void host_mark_self(struct host *h, uint32_t pid);
/* Reads /proc for what runs already. -errno. */
int host_scan(struct host *h);
void host_event(struct host *h, const struct sideband_event *e);
/* Opens and publishes what changed, expires what is old. Calls back. CLOCK_MONOTONIC; heard_ns:
 * every record up to then was taken. */
void host_tick(struct host *h, uint64_t now_ns, uint64_t heard_ns);

struct host_sample_ref {
	struct host_process *process;
	struct host_thread *thread;
};
/* Whose the sample is, as of its time. What is not known yet is made from the sample. 0, -ENOBUFS
 * at the ceiling of processes (counted), -ENOMEM. */
int host_sample(struct host *h, const struct sample *s, struct host_sample_ref *ret);

/* Whether the mappings of this generation were the process's: a sample that was walked with another
 * program's shows what is not so. */
bool host_walked_with(const struct host_process *p, uint32_t generation);
/* How many of its user frames, from the leaf on, were walked with mappings that were there at its
 * time: behind them lies code whose place another file's has taken. */
unsigned host_frames_that_hold(const struct host_process *p, const struct sample *s);
/* Whether mappings took the place of others behind then: host_mappings leaves those out. */
bool host_mapped_since(const struct host_process *p, uint64_t time_ns);

/* The mappings of a process as the tables take them, also of one that has ended a moment ago; of
 * what they were at time_ns, but for places where something else was then. *ret: borrowed until the
 * next call. *ret_whole: no file of it is still being opened. How many, or
 * -ENOMEM. */
struct tables_mapping;
ssize_t host_mappings(struct host *h, struct host_process *p, uint64_t time_ns,
		      const struct tables_mapping **ret, bool *ret_whole);

/* What the tables know of a file has changed: all who map it are published anew. */
void host_republish(struct host *h, const struct host_file *f);

/* The file in a slot of the tables, or by its id; NULL: none any more. */
struct host_file *host_slot_file(struct host *h, uint16_t slot);
struct host_file *host_file(struct host *h, uint32_t id);
/* Calls fn with each process that is known, living or gone a moment ago. */
void host_each_process(struct host *h, void (*fn)(void *ctx, struct host_process *p), void *ctx);
/* The process of this id, living or gone a moment ago; NULL: none any more. */
struct host_process *host_process(struct host *h, uint32_t id);

/* Opens a file of the host again, for prof-symd or for rows that were evicted: done gets a
 * descriptor of the very same file (identity checked), or a status. Called from here (when one is
 * still open), or from opener_run. 0, or -errno and done is not called. */
int host_open(struct host *h, struct host_file *f, opener_done *done, void *ctx);
/* Opens a debug file of f: by build id (name empty) or by name. The same. */
int host_open_debug(struct host *h, struct host_file *f, struct span build_id, struct str name,
		    opener_done *done, void *ctx);
/* Evicted rows are wanted again: file_needs_rows comes with a descriptor; where it cannot be opened
 * the tables are told that there are none. */
void host_want_rows(struct host *h, struct host_file *f);
/* Every file has its slot and has been handed to file_needs_rows: nothing is being opened, nothing
 * waits for the next tick. */
bool host_settled(const struct host *h);

struct host_figures {
	uint64_t processes, threads, mappings, files, open_fds, bytes; /* now */
	uint64_t processes_seen, execs_seen;
	uint64_t opens, opens_spared, opens_failed;
	uint64_t put_off; /* of files and of processes' maps, for want of a descriptor */
	uint64_t publishes;
	uint64_t rescans; /* of a process's maps, after lost records or much change */
	uint64_t limit;	  /* processes, mappings and files beyond a ceiling: LOST_UNTRACKED */
};
void host_figures(const struct host *h, struct host_figures *ret);

/* For tests and host-watch: calls fn with each executable mapping of each live process, rising.
 * file: NULL for code in none, or not open yet (*pending). */
void host_each_mapping(struct host *h, uint32_t pid,
		       void (*fn)(void *ctx, const struct host_process *p, uint64_t start,
				  uint64_t end, uint64_t offset, const struct host_file *file,
				  bool pending),
		       void *ctx);

#endif
