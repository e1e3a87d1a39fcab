/* SPDX-License-Identifier: Apache-2.0 */
/* The processes and threads of the host (host.h), as seen by its parts and its users; and the
 * host's config. host_file.h has its files. */
#ifndef PROF_BPF_HOST_PROCESSES_HOST_TYPES_H
#define PROF_BPF_HOST_PROCESSES_HOST_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/str.h"
#include "tools/prof-bpf/files/host_file.h"
#include "tools/prof-bpf/open/workers/environment.h"

#define HOST_GRACE_NS 2500000000ull /* longer than TABLES_GRACE_NS */
#define HOST_MAX_PROCESSES 32768
/* Threads with samples; beyond that the least recent one is forgotten. */
#define HOST_MAX_THREADS 16384
/* Limit for all processes; a mapped file counts as several. Lower if memory is scarce. */
#define HOST_ALL_MAPPINGS 262144
#define HOST_MAX_FILES 8191 /* likewise */

struct opener;
struct owner;
struct tables;

/* A cgroup in which processes were sampled. */
struct host_cgroup {
	uint32_t id;	    /* from 1 on, never reused */
	uint64_t sent;	    /* mark for the caller, 0 in a new one */
	uint64_t kernel_id; /* 0: unknown */
	struct str path;
};

/* A process between two execs. */
struct host_process {
	uint32_t id; /* from 1 on, never reused */
	uint64_t sent, generated_sent;
	uint64_t definitions_charged; /* used by the caller: what was charged for it and its
				       * threads */
	bool changed; /* differs from the stream's definition; the caller clears it */
	uint32_t pid, parent_pid, uid, execs;
	uint32_t flags; /* enum msg_process_flags of common/wire/msg.h */
	/* Set by its first sample; before that, by its user alone. */
	struct owner *owner;
	uint64_t start_ns; /* CLOCK_BOOTTIME, rounded down to SAMPLE_START_TICK_NS */
	uint64_t end_ns;   /* CLOCK_MONOTONIC of its exit or exec; 0: alive */
	char comm[16];
	uint8_t comm_len;
	bool selected;
	uint32_t generation; /* of the mappings that were published last; 0: none */
	/* Range of generations that its samples may carry: those published for it, and for its
	 * parent before the fork. Both 0: none. */
	uint32_t first_generation, last_generation;
	struct host_file *exe; /* NULL: unknown */
	/* As of its first sample. Borrowed from the host; NULL: unknown, or none. */
	struct host_cgroup *cgroup;
	uint32_t inner_pid;	  /* likewise: its pid in its own namespace; 0: unknown */
	uint32_t host_pid;	  /* likewise: its pid on the host; 0: same as pid */
	bool has_attributes;	  /* its command line and variables are known (attributes.h) */
	uint64_t attributes_sent; /* mark for the caller, for the attributes */
	uint64_t mappings_sent;	  /* mark for the caller, for its mappings of files with
				   * runtimes, */
	uint64_t mappings_hash;	  /* a hash of these mappings, */
	uint32_t mappings_as_of;  /* and the generation that they had */
};

/* A thread under one of its names. */
struct host_thread {
	uint32_t id;
	uint64_t sent;
	uint32_t tid;
	struct host_process *process;
	char comm[16];
	uint8_t comm_len, title_len;
	char *title; /* owned; NULL if title_len is 0 (titles.h) */
};

struct host_config {
	struct tables *tables; /* borrowed, also the opener and the pool */
	struct opener *opener;
	struct workerpool *pool;
	const char *proc;   /* "/proc" */
	bool only_selected; /* track only processes that host_select has selected; otherwise all */
	bool follow_forks;  /* also select children of selected processes */
	/* NULL: track all processes, unless only_selected. Otherwise a process is tracked from its
	 * first sample on, or from an exec on if this returns true, which means that it will be
	 * sampled. The exec was at exec_ns. Also returns false if the answer is not known yet. */
	bool (*is_wanted)(void *ctx, uint32_t pid, uint64_t exec_ns);
	const uint32_t *self_uids; /* processes of these users are flagged MSG_PROCESS_SELF */
	size_t self_uid_count;
	struct environment_wanted environment; /* the parts of sampled processes to read */
	uint64_t memory; /* limit of bytes for processes, mappings and files; 0: none */
	/* Called when a file is mapped for the first time. Returns whether it needs a slot and rows
	 * before its first sample. NULL: no file does. */
	bool (*file_known)(void *ctx, struct host_file *f);
	/* Called when a file got a slot and needs rows, or after host_want_rows. The callback
	 * closes fd. */
	void (*file_needs_rows)(void *ctx, struct host_file *f, int fd);
	/* Called when no process maps the file any more; it is forgotten after this returns, and no
	 * later sample has a frame in it. May be NULL. */
	void (*file_gone)(void *ctx, struct host_file *f);
	/* Called when the variables and the command line of a sampled process are known. May be
	 * NULL. */
	void (*attributes_known)(void *ctx, struct host_process *p);
	/* Called before the process and its threads are forgotten. */
	void (*process_gone)(void *ctx, struct host_process *p);
	/* Called before the thread is forgotten, and before its process is. May be NULL. */
	void (*thread_gone)(void *ctx, struct host_thread *t);
	void *ctx;
};

struct host_figures {
	uint64_t processes, threads, files; /* current numbers */
	uint64_t opens;
	uint64_t deferred; /* openings of files and readings of maps that lacked a descriptor */
	uint64_t limit;	   /* processes, mappings and files over a limit: LOST_UNTRACKED */
	/* For tests: */
	uint64_t open_fds; /* now */
	uint64_t processes_seen, execs_seen;
	uint64_t opens_spared, opens_failed;
	uint64_t publishes;
	uint64_t rescans; /* readings of a process's maps, after lost records or many changes */
};

/* mappings of living processes, and the bytes of all objects of the host. */
struct host_sizes {
	uint64_t mappings, bytes;
};

#endif
