/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the implementation of files.h. Each part uses only those above it:
 *
 * - file.c: one file, its descriptor and its slot
 * - reopening.c: files that are opened again, for their rows or for prof-symd
 * - slots.c: which files have a slot in the tables, and so rows
 * - backings.c: files while they are being opened
 * - vdso.c: the file of the vDSO
 * - files.c: everything that needs several parts
 */
#ifndef PROF_BPF_FILES_FILES_INTERNAL_H
#define PROF_BPF_FILES_FILES_INTERNAL_H

#include "common/walk/tables/tables.h"
#include "tools/prof-bpf/files/files.h"
#include "tools/prof-bpf/owners/owners.h"

#define FILES_EXPIRE_NS 500000000ull /* interval between removals of expired entries */
/* How many of the processes that should have a file mapped are tried. */
#define FILES_TRIES 3

struct reopen;

struct files {
	struct files_config config;
	struct file *by_key, *by_id;
	/* The last file of each slot: late samples name it until another file gets the slot. */
	struct file *slots[TABLES_MAX_FILES];
	struct file *idle, *open;
	struct files_backing *cache;		   /* by key */
	struct files_backing *waiting[OWNERS_MAX]; /* by the number of its owner */
	struct files_backing *confirming;
	uint32_t waits; /* number of backings in all lists of waiting */
	uint32_t opening, opening_of[OWNERS_MAX];
	uint32_t opening_ns[OWNERS_MAX]; /* mean cpu time of latest openings; 0: none is done */
	struct reopen *reopens;
	struct files_backing *vdso;
	uint64_t vdso_size;
	uint32_t next_id;
	bool rows_later;		    /* at least one file has rows_later set */
	uint32_t slots_taken, slots_wanted; /* wanted: slots refused since slots were last taken
					     * away */
	uint32_t agains;		    /* number of files with again_ns */
	uint64_t expire_ns, pause_ns;	    /* pause_ns: no openings before this time */
	struct files_figures figures;
};

/* --- file.c --- */

/* Returns the file of this identity, or NULL. */
struct file *file_find(struct files *f, const struct opener_file *o);
/* Makes the file of this identity, with a reference, charged to `finder`. NULL: no memory. */
struct file *file_new(struct files *f, const struct opener_file *o, struct str path,
		      struct owner *finder);
void file_forget(struct files *f, struct file *file);
struct file *file_get(struct files *f, struct file *file);
/* Accepts NULL. */
void file_put(struct files *f, struct file *file);
/* Keeps fd open for a while; the file owns it from then on. */
void file_keep_fd(struct files *f, struct file *file, int fd, uint64_t now_ns);
void file_drop_fd(struct files *f, struct file *file);
void file_use_fd(struct files *f, struct file *file, uint64_t now_ns);
/* Returns a duplicate of the descriptor that is still open, or -1. */
int file_dup_fd(struct files *f, struct file *file);
void file_drop_slot(struct files *f, struct file *file);

/* --- reopening.c --- */

/* Requests the rows of a file with a slot. at: where it is mapped, if known. */
void reopening_want_rows(struct files *f, struct file *file, struct files_mapper at);
/* Requests rows again if they failed for lack of a resource that may be available by now. */
void reopening_try_again(struct files *f, uint64_t now_ns);
/* Cancels all requests. */
void reopening_done(struct files *f);

/* --- slots.c --- */

/* Takes slots away from the owners who hold most, so that some stay free for the others. If owners
 * were refused a slot, files that were not sampled for long lose theirs. */
void slots_take_away(struct files *f, uint64_t now_ns);
/* Requests rows again that lacked a descriptor. */
void slots_want_rows(struct files *f);

/* --- backings.c --- */

/* Decides about opened files whose device or inode differs from the record's. */
void backings_confirm(struct files *f, uint64_t now_ns);
/* Opens the files that wait. */
void backings_submit(struct files *f, uint64_t now_ns);
/* Forgets old entries. */
void backings_expire(struct files *f, uint64_t now_ns);
void backings_done(struct files *f);

/* --- vdso.c --- */

/* Makes a file of the vDSO from this process's copy: the kernel maps it into every process. Returns
 * 0; -errno: there is no such file then. */
int vdso_new(struct files *f);

#endif
