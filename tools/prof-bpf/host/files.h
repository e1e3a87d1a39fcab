/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files behind mappings, for host.c: each by the kernel's identity, once, with its slot in the
 * tables; and backings, which stand for a file while it is being opened.
 *
 * A backing belongs to one device, inode and generation as the mapping's record names them. It is
 * shared by all mappings of these as long as its opening is under way, for HOST_RECHECK_NS after
 * when only root could have changed the file, and while the file is held open and fstat says what
 * it said; else the next mapping gets a new one, which is opened anew.
 */
#ifndef PROFPIPE_FILES_H
#define PROFPIPE_FILES_H

#include <uthash.h>
#include "tools/prof-bpf/host/host.h"

struct file_key {
	uint64_t dev, inode, ctime_ns, size;
};

struct file {
	struct host_file pub;
	struct file_key key;
	uint32_t refs;	  /* backings, and what is under way */
	bool asked;	  /* for its rows, once at least */
	bool foreign;	  /* what its file system says is no proof */
	bool unwanted;	  /* rows were asked for again and could not be had */
	uint64_t idle_ns; /* since when refs is 0 */
	int fd;		  /* kept open, or -1 */
	uint64_t fd_ns;	  /* last use of it */
	bool fd_stays;
	struct file *prev, *next;	/* of the idle ones, oldest first */
	struct file *fd_prev, *fd_next; /* of those with a descriptor, least recently used first */
	UT_hash_handle hh, hh_id;
};

/* A mapping as the kernel's record names its file. */
struct backing_key {
	uint64_t dev, inode, generation;
};

/* Where something is mapped now. */
struct mapper {
	uint32_t process_id, pid; /* pid 0: nowhere */
	uint32_t parent_pid;
	uint64_t start, end;
};

enum backing_state {
	BACKING_WAITING,
	BACKING_OPENING,
	BACKING_CONFIRM,
	BACKING_READY,
	BACKING_FAILED
};

struct backing {
	struct files *files;
	uint32_t refs; /* mappings, processes whose executable it is, and the cache */
	enum backing_state state;
	struct backing_key key;
	bool cached; /* to be found by its key */
	bool root_only;
	bool deleted;  /* as its name says */
	bool unmapped; /* BACKING_FAILED: nobody had it mapped any more */
	bool by_name;  /* then to be found by its name */
	uint8_t tries;
	uint16_t was_slot;   /* of what its key named where it was mapped: displaced.c's */
	uint32_t parent_pid; /* of the first asker: where its name may still be found when it is
				gone */
	int fd;		     /* BACKING_CONFIRM, else -1 */
	uint64_t checked_ns, confirm_ns;
	uint64_t ticket;
	struct mapper asker;
	struct file *file; /* BACKING_CONFIRM, BACKING_READY: counted */
	char *path;
	uint32_t path_len;
	struct backing *prev, *next; /* in a list of its state, or of the cache */
	UT_hash_handle hh;
};

struct files;
struct files_config {
	struct tables *tables;
	struct opener *opener;
	void (*needs_rows)(void *rows_ctx, struct host_file *f, int fd);
	void *rows_ctx;
	/* A process that lives and has b (or f, when b is NULL) mapped, other than `not`. pid 0:
	 * none. */
	struct mapper (*find)(void *ctx, const struct backing *b, const struct file *f,
			      uint32_t not_process);
	/* Is b still mapped by its asker, as far as the records say? */
	bool (*mapped)(void *ctx, const struct backing *b);
	/* A backing is ready or has failed: mappings that were left out can be published. */
	void (*resolved)(void *ctx);
	void *ctx;
};
int files_new(const struct files_config *c, struct files **ret);
void files_free(struct files *f);
/* Submits openings, confirms what came, closes and forgets what is old. */
void files_tick(struct files *f, uint64_t now_ns);
bool files_settled(const struct files *f);

/* The backing of a mapping, counted. NULL: no memory. path: copied. */
struct backing *files_backing(struct files *f, struct backing_key key, struct mapper asker,
			      struct str path, bool deleted, uint64_t now_ns);
/* A sample waits for it: where it failed since its process had gone, it is tried by its name, once.
 * True: it is under way. */
bool files_retry(struct backing *b);
/* The vDSO's, counted; NULL: there is none, or [start, end) is not like ours. */
struct backing *files_vdso(struct files *f, uint64_t start, uint64_t end);
/* Both take NULL. */
struct backing *backing_get(struct backing *b);
void backing_put(struct backing *b);

struct file *files_by_slot(struct files *f, uint16_t slot);
struct file *files_by_id(struct files *f, uint32_t id);
int files_open(struct files *f, struct file *file, opener_done *done, void *ctx);
void files_want_rows(struct files *f, struct file *file);

struct files_figures {
	uint64_t files, fds, opens, spared, failed, limit;
	uint64_t put_off; /* opens, for want of a descriptor */
};
void files_figures(const struct files *f, struct files_figures *ret);

#endif
