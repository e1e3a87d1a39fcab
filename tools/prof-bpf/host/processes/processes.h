/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of host.c: processes over time, and sampled threads.
 *
 * A hash holds the newest object of each pid. Older ones (ended, or from before an exec) are linked
 * from it. They are also in a queue, in the order in which they will be forgotten.
 */
#ifndef PROF_BPF_HOST_PROCESSES_PROCESSES_H
#define PROF_BPF_HOST_PROCESSES_PROCESSES_H

#include "common/base/tables/hashtable.h"
#include "common/base/system/procfs.h"
#include "common/walk/tables/tables.h"
#include "tools/prof-bpf/host/processes/cgroups.h"
#include "tools/prof-bpf/host/processes/bootclock.h"
#include "tools/prof-bpf/host/maps/displaced.h"
#include "tools/prof-bpf/files/files.h"
#include "tools/prof-bpf/host/processes/host_types.h"
#include "tools/prof-bpf/host/maps/maps.h"
#include "tools/prof-bpf/owners/owners.h"

/* At least this many mappings are noted before they are put in place. */
#define PROCESSES_NOTED_MAX 256u
/* Interval between two readings of a process's maps. */
#define PROCESSES_RESCAN_NS 1000000000ull
#define PROCESSES_RESCAN_NS_PER_MAPPING 50000u /* and this much more per mapping */
/* A process whose leader has exited is checked after this time, and then after intervals that are
 * doubled this often. */
#define PROCESSES_LEADER_NS 500000000ull
#define PROCESSES_LEADER_DOUBLED 7
/* A thread without samples for this long is forgotten; later it gets a new id. */
#define PROCESSES_THREAD_IDLE_NS 60000000000ull
#define PROCESSES_SELF_MAX 64
/* A process may rename its threads this often at once, and once more after each
 * PROCESSES_RENAME_NS. Further names are ignored: a sample has its thread's previous name, or no
 * title (titles.h). */
#define PROCESSES_RENAMES 256u
#define PROCESSES_RENAME_NS 4000000000ull

struct process_thread {
	struct host_thread pub;
	struct {
		uint32_t process, tid;
	} key;
	uint64_t last_ns, end_ns;
	struct record_title *title; /* its current title; NULL: not known. Owned. */
	struct process_thread *titled,
		*of; /* titled: the same thread under its titles, linked by `more`; of: the thread
		      * that this title belongs to */
	struct process_thread *more;
	struct process_thread *prev, *next;	  /* list of all threads, in the order of last
						   * use */
	struct process_thread *of_prev, *of_next; /* list of the threads of their process */
	UT_hash_handle hh;
};

/* Variables and command line of a process (attributes.h). The texts are stored one after the
 * other. */
struct process_attributes_value {
	uint16_t which, len; /* which: as in environment_next */
};
struct process_attributes {
	struct owner *owner; /* the owner charged; holds a reference */
	uint32_t count, bytes;
	struct process_attributes_value at[ENVIRONMENT_VALUES];
	char text[];
};

/* A reading of these. */
struct process_attributes_reading {
	struct host *host;		/* NULL: the host is gone */
	struct process *process;	/* NULL: cancelled */
	uint64_t done_ns;		/* 0: still in progress */
	struct process_attributes *got; /* owned; NULL until the reading is done */
	struct process_attributes_reading *prev, *next;
};

struct process {
	struct host_process pub;
	struct process *older, *newer; /* the previous and the next object of this pid */
	uint64_t born_ns;	       /* CLOCK_MONOTONIC of its fork or exec; 0: before profpipe */
	uint64_t fork_ns;	       /* likewise, of its fork only */
	uint64_t scanned_ns;	       /* older records of mappings are ignored */
	uint64_t counted_ns;	       /* older records of threads are ignored */
	uint64_t vague_ns;	 /* start_guessed: the process may have begun this much earlier */
	uint64_t publish_ns;	 /* not published again before this time */
	uint64_t rescan_ns;	 /* not read again before this time */
	uint64_t memory_ns;	 /* time of the last read of its memory (memory.h) */
	uint32_t memory_left;	 /* bytes that it could still have read then, */
	int32_t memory_long;	 /* and those of long pieces; negative: none */
	uint64_t interpreted_ns; /* CLOCK_MONOTONIC: its latest sample with interpreted frames */
	bool undumpable;	 /* it was undumpable at that sample */
	struct reach *reach;	 /* owned; NULL: no memory is within reach */
	struct owner *reach_by;	 /* the owner charged; holds a reference; NULL if reach is NULL */
	uint32_t threads;
	uint64_t renames_ns;  /* process_may_rename: when the budget covers all renames so far */
	uint32_t unpublished; /* at most this many mappings did not fit the tables */
	uint32_t scanned_len; /* number of mappings at the last full reading */
	bool dirty;	      /* it is in the list of processes to publish, or: */
	bool waits;	      /* in the list of those that wait for a turn */
	bool changed;	      /* changed since it was published */
	uint64_t changed_at;  /* value of host.changes at its last change */
	bool unresolved, leader_gone, start_guessed, described, wants_maps, seen_gone;
	bool just_execed; /* its last record was an exec */
	bool unwanted;	  /* it ended by an exec of a program that is not known to be wanted */
	bool sampled, lacks_inner_pid; /* which is read at a later sample */
	uint64_t sampled_ns;	       /* CLOCK_MONOTONIC of its latest sample; 0: none */
	/* The number of its cgroup in the sample at which the path was read, and the time of that
	 * sample; 0: it was not read. */
	uint64_t cgroup, cgroup_read_ns;
	/* leader_gone: when /proc is read next, and how often the interval was doubled. */
	uint64_t leader_look_ns;
	uint8_t leader_doubled;
	bool dropped; /* its mappings were dropped, and are read again at its next sample */
	uint8_t read_failures, publish_failures;
	bool entered;	   /* the tables have an entry that was not published for it */
	bool placed;	   /* its owner is charged for its entry in the tables */
	struct maps *maps; /* NULL: none */
	struct process_reading *reading; /* the current reading of its mappings; NULL: none */
	struct displaced *displaced;
	struct process_attributes *attributes; /* owned; NULL: none */
	struct process_attributes_reading *attributes_reading;
	struct files_backing *exe;
	struct process_thread *thread_list;
	struct process *prev, *next; /* list of retired processes */
	struct process *dirty_prev, *dirty_next, *unresolved_prev, *unresolved_next;
	struct process *leader_prev, *leader_next;
	UT_hash_handle hh;
};

/* A current reading of a process's mappings (reading.h). */
struct process_reading {
	struct host *host;	 /* NULL: the host is gone */
	struct process *process; /* NULL: cancelled */
	struct maps *maps;	 /* read so far */
	struct maps *since;	 /* from records since the reading began; NULL: none */
	size_t most, count;
	/* When the reading began, and the time up to which records had been taken then. */
	uint64_t began_ns, heard_ns;
	char *exe; /* the program's path; NULL: not needed, or unknown */
	bool failed;
	bool full;	 /* its owner has too many mappings: the rest is left out */
	bool incomplete; /* records since the beginning were lost for lack of memory */
	struct process_reading *prev, *next;
};

struct host {
	struct host_config config;
	struct files *files;
	struct cgroups cgroups;
	struct owners *owners;
	struct tables_ledger ledger;
	int proc;
	struct process *by_pid, *retired, *dirty, *waiting, *unresolved;
	struct process *resting; /* the first retired one whose files may still be sampled */
	struct process *leaderless[PROCESSES_LEADER_DOUBLED + 1]; /* by leader_doubled, in the order
								   * of leader_look_ns */
	struct process_thread *threads, *thread_lru;
	uint32_t process_count, thread_count, next_process, next_thread;
	uint32_t living;		      /* processes that are not retired */
	uint32_t max_processes, all_mappings; /* limits */
	uint64_t no_unsampled_ns;	      /* until then, eviction_make_room does not search */
	uint32_t self[PROCESSES_SELF_MAX];
	unsigned self_count;
	struct bootclock boot;
	/* When the budget covers all time spent on mappings so far (mapping_turns.h). */
	uint64_t maps_paid_ns;
	/* statuses.h: the last slow one, 0: none; when the budget covers those of unknown
	 * owners. */
	uint64_t slow_status_ns, statuses_paid_ns;
	uint64_t heard_ns;     /* records up to this time were taken */
	uint32_t leader_first; /* the next check of `leaderless` begins here */
	uint64_t last_check_ns, resync_ns;
	uint64_t sweep_ns;     /* when the next sweep of the tables may begin; 0: not known yet */
	bool sweeps, no_place; /* a sweep is in progress; a process found no place since the last */
	uint64_t resync_paid_ns, waiting_look_ns; /* next times, since looking has a cost */
	uint64_t tick, small_spent_ns; /* the number of the tick, and what it took to publish small
					* processes */
	bool resync, resolved;
	/* Counts changes of processes and openings that ended; and its value at the last
	 * opening. */
	uint64_t changes, resolved_at;
	struct process_reading *readings;
	struct process_attributes_reading *attributes_readings;
	uint64_t attributes_max; /* bytes */
	struct debug_search *debug_searches;
	struct files_kept kept_mappers[FILES_KEPT];
	uint64_t searches; /* number of searches in the mappings of all processes */
	bool scanning;	   /* the first reading of all processes is in progress */
	uint32_t *resync_pids;
	size_t resync_len, resync_cap, resync_at;
	struct tables_mapping *publish; /* a buffer */
	size_t publish_cap;
	struct host_figures figures;
};

/* Returns the newest object of a pid, alive or not; NULL: none. */
struct process *process_find(struct host *h, uint32_t pid);
struct process *process_find_alive(struct host *h, uint32_t pid);
/* Whether this error of reading /proc means that the process is gone. Other errors may come from a
 * lack of descriptors. */
bool process_says_gone(int r);
/* Record, and take back, that the leader has exited according to records. If so, /proc is checked
 * later for whether this is true and other threads are left. If that is known already, another
 * thread has ended or has a sample, and /proc is checked soon. */
void process_lacks_leader(struct host *h, struct process *p, uint64_t now_ns);
void process_keeps_leader(struct host *h, struct process *p);
/* Schedules a check of a process without a leader. */
void process_check_leader(struct host *h, struct process *p, unsigned doubled, uint64_t now_ns);
/* Ends a process in which nothing runs any more: retires it and updates the tables. */
void process_end(struct host *h, struct process *p, uint64_t now_ns);
/* Drops a process's mappings; the object stays for late samples. */
void process_retire(struct host *h, struct process *p, uint64_t now_ns);
/* Forgets a retired process and its threads. */
void process_forget(struct host *h, struct process *p);
void process_set_comm(struct host_process *p, const char *comm, size_t len);
/* Sets its cgroup, by its path (NULL: unknown) and number (cgroups.h). */
void process_set_cgroup(struct host *h, struct process *p, const struct str *path,
			uint64_t kernel_id);
/* Looks up its executable, once that file is open. */
void process_find_exe(struct process *p);
/* Sets its user, once: that of its first sample. */
void process_describe(struct host *h, struct process *p, uint32_t uid);
/* Sets who is charged for it. Its current files and mappings stay charged as they are. */
void process_set_owner(struct host *h, struct process *p, struct owner_key key);
/* Charges its owner for its entry in the tables, or no longer. Call it when `entered` or the
 * generation changed. */
void process_charge_entry(struct host *h, struct process *p);
/* Queues it for publishing. */
void process_mark_dirty(struct host *h, struct process *p);

/* Returns the backing of a mapping, with a reference; NULL: code that belongs to no file. */
struct files_backing *process_backing(struct host *h, struct process *p, const struct map *m,
				      enum procfs_name kind, struct files_backing_key key,
				      struct str path, bool deleted, uint64_t now_ns);
/* Notes the mappings in `was` that `by`, mapped between since_ns and time_ns, displaces, so that
 * walks do not use them. */
void process_note_displaced(struct process *p, const struct maps *was, const struct map *by,
			    uint64_t since_ns, uint64_t time_ns);
/* From now on, samples walked with mappings up to this generation no longer count as this
 * process's. */
void process_forget_generations(struct process *p, uint32_t up_to);
/* Puts noted mappings in place. */
void process_settle(struct host *h, struct process *p);
/* Drops what was read of the process so far, and the rest when it comes. */
void process_cancel_reading(struct process *p);
/* Drops what was read so far. */
void process_drop_reading(struct process_reading *r);
/* Returns the thread of a sample, and makes it if there is none with its name. NULL: no memory. */
struct process_thread *process_thread_of(struct host *h, struct process *p, const struct sample *s);
void process_thread_free(struct host *h, struct process_thread *t);
/* Records a sample of the thread. */
void process_thread_touch(struct host *h, struct process_thread *t, uint64_t time_ns);
/* Whether the process may give a thread another name at this time. */
bool process_may_rename(struct process *p, uint64_t now_ns);

#endif
