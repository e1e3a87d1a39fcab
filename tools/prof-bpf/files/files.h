/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that are mapped, for host.c: each file once, identified by the kernel's numbers. A
 * backing represents a file while it is being opened.
 *
 * A file gets a slot in the tables, and rows, with its first sample. So a file that was never
 * sampled takes no resources that others need.
 *
 * A backing belongs to one device, inode and generation, as in the mapping's record. Mappings with
 * the same numbers share it in three cases: while it is being opened; for HOST_RECHECK_NS, if only
 * root could have changed the file; and while the file is held open and fstat reports no change.
 * Otherwise the next mapping gets a new backing, and the file is opened again.
 */
#ifndef PROF_BPF_FILES_FILES_H
#define PROF_BPF_FILES_FILES_H

#include "common/base/tables/hashtable.h"
#include "tools/prof-bpf/files/host_file.h"
#include "tools/prof-bpf/open/opener.h"

struct file_key {
	uint64_t dev, inode, ctime_ns, size;
};

struct file {
	struct host_file pub;
	struct file_key key;
	uint32_t refs;	      /* held by backings and current operations */
	bool known;	      /* files_config.known was called */
	bool foreign;	      /* its file system's answers cannot be trusted */
	bool unwanted;	      /* its rows were requested again but are not available */
	uint64_t idle_ns;     /* when refs became 0 */
	uint64_t slot_ns;     /* it gets no slot before this time */
	uint16_t was_slot;    /* its last slot; 0: none */
	struct owner *owner;  /* the owner charged for the slot; NULL: it has none */
	struct owner *finder; /* the owner charged for the file */
	bool rows_later;      /* its rows must be requested when descriptors are available again */
	bool lost_slot; /* it has just lost its slot: published mappings name a slot that another
			 * file may soon get */
	struct runtime_config *runtime; /* owned; NULL: no known runtime */
	uint64_t again_ns;		/* when its rows are requested again; 0: never */
	uint64_t pause_ns;		/* interval between the last two such requests */
	bool copied;			/* its descriptors are copies, made when one is needed */
	int fd;				/* kept open, or -1 */
	uint64_t fd_ns;			/* when it was last used */
	bool fd_stays;
	struct file *prev, *next;	/* idle files, oldest first */
	struct file *fd_prev, *fd_next; /* files with a descriptor, least recently used first */
	UT_hash_handle hh, hh_id;
};

/* A mapping's file as the kernel's record names it. */
struct files_backing_key {
	uint64_t dev, inode, generation;
};

/* A process and place where a file is mapped now. */
struct files_mapper {
	uint32_t process_id, pid; /* pid 0: not mapped anywhere */
	struct owner *owner;	  /* of the process; borrowed */
	uint32_t parent_pid;
	uint64_t start, end;
};

/* A search of mappers.h: for a process that has `backing` mapped, or else `file`. */
struct files_mapper_search {
	const struct files_backing *backing;
	const struct file *file;
	const struct files_mapper *tried; /* excludes these processes, and avoids their owners */
	unsigned tried_count;
	bool other_owner; /* also excludes their owners */
};

/* At most this many mappers of a file are listed. */
#define FILES_LISTED 15u
/* The last lists are kept for a second each: prof-symd requests the debug files of a file one after
 * the other. */
#define FILES_KEPT 16u
#define FILES_KEPT_NS 1000000000ull

/* A list of the processes that have a file mapped. */
struct files_kept {
	uint32_t file; /* its id; 0: none */
	uint32_t count;
	uint64_t until_ns;
	struct files_mapper at[FILES_LISTED]; /* their owners are not valid */
};

enum files_backing_state {
	FILES_BACKING_WAITING,
	FILES_BACKING_OPENING,
	FILES_BACKING_CONFIRM,
	FILES_BACKING_READY,
	FILES_BACKING_FAILED
};

#define FILES_BACKING_COST 9 /* a backing takes as much memory as this many mappings */

struct files_backing {
	struct files *files;
	uint32_t refs; /* mappings, processes with it as executable, and the cache */
	enum files_backing_state state;
	struct files_backing_key key;
	bool cached;   /* it can be found by its key */
	bool roots;    /* as in struct host_file */
	bool deleted;  /* according to its name */
	bool unmapped; /* FILES_BACKING_FAILED: no process had it mapped any more */
	bool by_name;  /* unmapped: look the file up by its name */
	uint8_t tries;
	uint16_t was_slot; /* if `file` is not known yet: slot of the same file, mapped here
			    * before */
	/* Parent of the first asker: if the asker is gone, the file may be found by its name in the
	 * root of the parent. */
	uint32_t parent_pid;
	int fd; /* FILES_BACKING_CONFIRM; otherwise -1 */
	uint64_t checked_ns, confirm_ns;
	uint64_t ticket;
	struct files_mapper asker;
	struct owner *owner; /* of the first asker; holds a reference */
	struct file *file;   /* FILES_BACKING_CONFIRM, FILES_BACKING_READY: holds a reference */
	char *path;
	uint32_t path_len;
	struct files_backing *prev, *next; /* in a list of its state, or in the cache */
	UT_hash_handle hh;
};

struct files;
struct runtime_config;
struct files_config {
	uint32_t max_files, all_mappings; /* limits */
	struct tables *tables;
	struct opener *opener;
	struct owners *owners;
	bool (*known)(void *rows_ctx, struct host_file *f);
	void (*needs_rows)(void *rows_ctx, struct host_file *f, int fd);
	void (*gone)(void *rows_ctx, struct host_file *f);
	void *rows_ctx;
	/* Finds a living process that has the file mapped. pid 0: none. */
	struct files_mapper (*find)(void *ctx, const struct files_mapper_search *s);
	/* may_open tells whether an owner's files may be opened now (mapping_turns.h). opened
	 * reports how much time an opening took. */
	bool (*may_open)(void *ctx, const struct owner *w, uint64_t now_ns);
	void (*opened)(void *ctx, struct owner *w, uint64_t ns);
	/* Whether b is still mapped by its asker, according to the records. */
	bool (*mapped)(void *ctx, const struct files_backing *b);
	/* Called if there are too many files. Drops mappings of the owner `most`; NULL: of an owner
	 * who holds more than `least` of OWNER_MAPPINGS. Returns false if there are none. */
	bool (*crowded)(void *ctx, const struct owner *most, uint64_t least);
	/* Files have lost their slots (lost_slot). */
	void (*unslotted)(void *ctx);
	/* A backing is ready or has failed: mappings that were left out because of it can be
	 * published. */
	void (*resolved)(void *ctx);
	void *ctx;
};
int files_new(const struct files_config *c, struct files **ret);
/* Reports no file as gone. */
void files_free(struct files *f);
/* Submits openings, confirms results, and closes and forgets old entries. */
void files_tick(struct files *f, uint64_t now_ns);
bool files_settled(const struct files *f);

/* Returns the backing of a mapping, with a reference. NULL: no memory. path is copied. */
struct files_backing *files_backing(struct files *f, struct files_backing_key key,
				    struct files_mapper asker, struct str path, bool deleted,
				    uint64_t now_ns);
/* A sample waits for the file. If opening failed because the process was gone, tries the name,
 * once. Returns true if the file is being opened. */
bool files_retry(struct files_backing *b);
/* Returns the backing of the vDSO, with a reference. NULL: there is none, or [start, end) has
 * another size than ours. */
struct files_backing *files_vdso(struct files *f, uint64_t start, uint64_t end);
/* files_backing_get takes a reference, files_backing_put drops it. Both accept NULL. */
struct files_backing *files_backing_get(struct files_backing *b);
void files_backing_put(struct files_backing *b);
/* Tells that a process ended and holds `refs` of the references. If it was the last one that had
 * the file mapped, its rows may go. Accepts NULL. */
void files_backing_rest(struct files_backing *b, uint32_t refs);

struct file *files_by_slot(struct files *f, uint16_t slot);
struct file *files_by_id(struct files *f, uint32_t id);
/* The file was sampled: gives it a slot if it has none, charged to at.owner, and requests its rows.
 * at: where it is mapped. Returns false if it gets no slot now. */
bool files_sampled(struct files *f, struct file *file, struct files_mapper at, uint64_t now_ns);
/* A sampled process of this owner has mapped the file. If the process is in no container, and only
 * root could have written the file, then that was the host's root: the file gets
 * MSG_FILE_ROOT_ONLY, and is defined again. */
void files_led_to(struct file *file, const struct owner *by);
/* A sample of this owner is in a file with a slot. The slot is charged to the owner with the fewest
 * slots among those who use the file. */
void files_used(struct files *f, struct file *file, struct owner *by);
/* Returns the slot that represents the file in published mappings. */
uint16_t files_slot(const struct file *file, uint64_t now_ns);
/* Records that the file contains a runtime. Returns 0, TABLES_FULL or -ENOMEM. */
int files_runtime(struct files *f, struct file *file, const struct runtime_config *c);
int files_open(struct files *f, struct file *file, opener_done *done, void *ctx);
void files_want_rows(struct files *f, struct file *file);

struct files_figures {
	uint64_t files, fds, opens, spared, failed, limit;
	uint64_t deferred; /* openings that had to wait for a descriptor */
};
void files_figures(const struct files *f, struct files_figures *ret);

#endif
