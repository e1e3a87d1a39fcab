/* SPDX-License-Identifier: Apache-2.0 */
/* The processes and threads of the host (host.h), as its parts and its users see them; and its
 * setup. host_file.h has its files. */
#ifndef PROF_BPF_HOST_PROCESSES_HOST_TYPES_H
#define PROF_BPF_HOST_PROCESSES_HOST_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/str.h"
#include "tools/prof-bpf/files/host_file.h"
#include "tools/prof-bpf/open/workers/startup.h"

#define HOST_GRACE_NS 2500000000ull /* more than TABLES_GRACE_NS */
#define HOST_MAX_PROCESSES 32768
#define HOST_MAX_THREADS 16384 /* with samples; beyond that the least recent one is forgotten */
/* Of all processes; a file that is mapped counts as some. Fewer fit into little memory. */
#define HOST_ALL_MAPPINGS 262144
#define HOST_MAX_FILES 8191 /* likewise */

struct opener;
struct owner;
struct tables;

/* A cgroup that processes were sampled in. */
struct host_cgroup {
	uint32_t id;	    /* from 1 on, never reused */
	uint64_t sent;	    /* the caller's mark, 0 in a new one */
	uint64_t kernel_id; /* 0: unknown */
	struct str path;
};

/* A process between two execs. */
struct host_process {
	uint32_t id; /* from 1 on, never reused */
	uint64_t sent, generated_sent;
	uint64_t definitions_charged; /* the caller's: for it and its threads */
	bool changed; /* differs from the stream's definition; the caller clears it */
	uint32_t pid, parent_pid, uid, execs;
	uint32_t flags; /* enum process_flags of common/wire/msg.h */
	/* By its first sample; before that, by its user alone. */
	struct owner *owner;
	uint64_t start_ns; /* CLOCK_BOOTTIME, rounded down to START_TICK_NS */
	uint64_t end_ns;   /* CLOCK_MONOTONIC of its exit or exec; 0: alive */
	char comm[16];
	uint8_t comm_len;
	bool selected;
	uint32_t generation; /* of the mappings published last; 0: none */
	/* Range of generations that its samples may carry: those published for it, and for its
	 * parent before the fork. Both 0: none. */
	uint32_t first_generation, last_generation;
	struct host_file *exe; /* NULL: unknown */
	/* As of its first sample. Borrowed from the host; NULL: unknown, or none. */
	struct host_cgroup *cgroup;
	uint32_t inner_pid;	  /* the same: its pid in its own namespace; 0: unknown */
	uint32_t host_pid;	  /* of its first sample: its pid on the host; 0: pid is that */
	bool has_attributes;	  /* what it was started with is known (attributes.h) */
	uint64_t attributes_sent; /* the caller's: mark of that */
	uint64_t mappings_sent;	  /* the caller's: mark of its mappings of files with runtimes, */
	uint64_t mappings_hash;	  /* a hash of them, */
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
	struct tables *tables; /* borrowed, like the opener and the pool */
	struct opener *opener;
	struct workerpool *pool;
	const char *proc;    /* "/proc" */
	const char *cgroups; /* "/sys/fs/cgroup"; NULL: cgroups have no numbers */
	bool only_selected;  /* track only processes chosen by host_select; else all */
	bool follow_forks;   /* also select children of selected processes */
	/* NULL: track all, unless only_selected. Else a process is tracked from its first sample
	 * on, or from an exec on if this says that it will be sampled. The process had an exec at
	 * exec_ns. False also if the answer is not known yet. */
	bool (*is_wanted)(void *ctx, uint32_t pid, uint64_t exec_ns);
	const uint32_t *self_uids; /* flag processes of these users PROCESS_SELF */
	size_t self_uid_count;
	struct startup_wanted startup; /* what to read of sampled processes */
	uint64_t memory;	       /* bytes for processes, mappings and files; 0: no limit */
	/* A file was mapped that nobody had mapped before. Returns whether it needs a slot and rows
	 * before its first sample. NULL: no file does. */
	bool (*file_known)(void *ctx, struct host_file *f);
	/* A file got a slot and needs rows, or after host_want_rows. The callback closes fd. */
	void (*file_needs_rows)(void *ctx, struct host_file *f, int fd);
	/* The file is mapped nowhere, and is forgotten after this returns; no later sample has a
	 * frame in it. NULL: nobody asks. */
	void (*file_gone)(void *ctx, struct host_file *f);
	/* The variables and the command line of a sampled process are known. NULL: nobody asks. */
	void (*attributes_known)(void *ctx, struct host_process *p);
	/* The process and its threads are forgotten after this returns. */
	void (*process_gone)(void *ctx, struct host_process *p);
	/* The thread is forgotten after this returns, before its process. NULL: nobody asks. */
	void (*thread_gone)(void *ctx, struct host_thread *t);
	void *ctx;
};

struct host_figures {
	uint64_t processes, threads, files; /* now */
	uint64_t opens;
	uint64_t deferred; /* openings of files and reads of maps that lacked a descriptor */
	uint64_t limit;	   /* processes, mappings and files beyond a ceiling: LOST_UNTRACKED */
	/* For tests: */
	uint64_t open_fds; /* now */
	uint64_t processes_seen, execs_seen;
	uint64_t opens_spared, opens_failed;
	uint64_t publishes;
	uint64_t rescans; /* readings of a process's maps, after lost records or many changes */
};

/* Of living processes, and what all of the host's objects take. */
struct host_sizes {
	uint64_t mappings, bytes;
};

#endif
