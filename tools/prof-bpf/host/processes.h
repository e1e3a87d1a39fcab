/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of host.c: processes over time, and the threads that were sampled.
 *
 * The newest object of a pid stands in a hash; older ones (before an exec, or ended) hang behind it
 * and in a queue, in the order in which they will be forgotten.
 */
#ifndef PROFPIPE_PROCESSES_H
#define PROFPIPE_PROCESSES_H

#include <uthash.h>
#include "tools/prof-bpf/host/bootclock.h"
#include "tools/prof-bpf/host/displaced.h"
#include "tools/prof-bpf/host/files.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/host/maps.h"
#include "common/walk/procfs.h"
#include "common/walk/tables.h"

#define NOTED_MAX 256u		/* mappings noted before they are put in place, at least */
#define RESCAN_NS 1000000000ull /* between two readings of a process's maps */
/* A thread not sampled that long is forgotten, and gets another id when it is again. */
#define THREAD_IDLE_NS 60000000000ull
#define MAX_SELF 64

struct thread {
	struct host_thread pub;
	struct {
		uint32_t process, tid;
	} key;
	uint64_t last_ns, end_ns;
	struct thread *prev, *next;	  /* by last use */
	struct thread *of_prev, *of_next; /* of its process */
	UT_hash_handle hh;
};

struct process {
	struct host_process pub;
	struct process *older;	 /* what the pid was before */
	uint64_t born_ns;	 /* CLOCK_MONOTONIC: of its fork or exec; 0: before us */
	uint64_t fork_ns;	 /* the same, of its fork alone */
	uint64_t scanned_ns;	 /* what records of mappings before that say is known */
	uint64_t counted_ns;	 /* what records of threads before that say is known */
	uint64_t vague_ns;	 /* start_guessed: so much earlier it may have begun */
	uint64_t publish_ns;	 /* not before */
	uint64_t rescan_ns;	 /* not before */
	uint64_t memory_ns;	 /* when its memory was last read (memory.h) */
	uint32_t memory_left;	 /* bytes that may be read then */
	uint64_t interpreted_ns; /* CLOCK_MONOTONIC: its newest sample with interpreted frames */
	bool undumpable;	 /* at that time */
	uint32_t threads;
	uint32_t unpublished; /* mappings that there was no room for, at the most */
	uint32_t scanned_len; /* mappings when they were last read whole */
	bool dirty;	      /* in the list of what is to be published */
	bool changed;	      /* since it was published */
	bool unresolved, leader_gone, start_guessed, described, wants_maps, seen_gone;
	bool just_execed;  /* its last record is that of an exec */
	struct maps *maps; /* NULL: none */
	struct displaced *displaced;
	struct backing *exe;
	struct thread *thread_list;
	struct process *prev, *next; /* retired */
	struct process *dirty_next, *unresolved_next;
	struct process *leader_prev, *leader_next;
	UT_hash_handle hh;
};

struct host {
	struct host_config config;
	struct files *files;
	int proc;
	struct process *by_pid, *retired, *dirty, *unresolved, *leaderless;
	struct thread *threads, *thread_lru;
	uint32_t process_count, thread_count, next_process, next_thread;
	uint32_t self[MAX_SELF];
	unsigned self_count;
	struct bootclock boot;
	uint64_t heard_ns; /* records up to then were taken */
	uint64_t leader_check_ns, last_check_ns, resync_ns;
	bool resync, resolved;
	uint32_t *resync_pids;
	size_t resync_len, resync_cap, resync_at;
	struct tables_mapping *publish; /* being made */
	size_t publish_cap;
	struct host_figures figures;
};

/* The newest object of a pid, living or not; NULL: none. */
struct process *process_find(struct host *h, uint32_t pid);
struct process *process_find_alive(struct host *h, uint32_t pid);
/* A new object for a pid; what lives there by now is retired. born_ns: 0 when that was before us.
 * NULL: the ceiling, or no memory. May forget an object of another pid. */
struct process *process_new(struct host *h, uint32_t pid, uint64_t born_ns);
/* An object for what a pid was before all that is known of it: retired from the first. last: the
 * pid's newest. */
struct process *process_behind(struct host *h, struct process *last, uint64_t end_ns);
/* A process as /proc shows it now. NULL: there is none, or nothing runs in it any more. */
struct process *process_read(struct host *h, uint32_t pid, bool selected);
/* Its leader has ended by its records, and whether that is so, and others of its threads are left,
 * is asked of /proc in a while; or that was not so. */
void process_lacks_leader(struct host *h, struct process *p);
void process_keeps_leader(struct host *h, struct process *p);
/* Nothing runs in it any more: retires it and tells the tables. */
void process_end(struct host *h, struct process *p, uint64_t now_ns);
/* Its mappings are of no more use; the object stays for late samples. */
void process_retire(struct host *h, struct process *p, uint64_t now_ns);
/* A retired one is forgotten, with its threads. */
void process_forget(struct host *h, struct process *p);
void process_set_comm(struct host_process *p, const char *comm, size_t len);
/* Its executable, once that is open. */
void process_find_exe(struct process *p);
/* Its user, taken once: as the first sample of it has it. */
void process_describe(struct host *h, struct process *p, uint32_t uid);
/* It is to be published. */
void process_mark_dirty(struct host *h, struct process *p);

/* The backing of a mapping, counted; NULL: code in no file. */
struct backing *process_backing(struct host *h, struct process *p, const struct map *m,
				enum procfs_name kind, struct backing_key key, struct str path,
				bool deleted, uint64_t now_ns);
/* Takes the reference to the backing. */
void process_add_mapping(struct host *h, struct process *p, const struct map *m);
/* Mappings that `by`, mapped between since_ns and time_ns, takes the place of are of no more use to
 * walks: `was` has them. */
void process_note_displaced(struct process *p, const struct maps *was, const struct map *by,
			    uint64_t since_ns, uint64_t time_ns);
/* Samples that were walked with mappings of this generation, or older ones, are nobody's. */
void process_forget_generations(struct process *p, uint32_t up_to);
/* Puts noted mappings in place. */
void process_settle(struct host *h, struct process *p);
/* Reads the mappings of a process that lives, in place of what is known. 0, -errno, -ENOMEM. */
int process_read_maps(struct host *h, struct process *p);

/* The thread of a sample, made when there is none of its name. NULL: no memory. */
struct thread *thread_of(struct host *h, struct process *p, const struct sample *s);
void thread_free(struct host *h, struct thread *t);

#endif
