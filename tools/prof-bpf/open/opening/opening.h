/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens one file that a process chose: what each kind of request means, which files are refused,
 * and where else to look. Runs in worker processes (worker.h), since each of its calls may hang.
 */
#ifndef PROF_BPF_OPEN_OPENING_OPENING_H
#define PROF_BPF_OPEN_OPENING_OPENING_H

#include "tools/prof-bpf/open/opening/mounts.h"
#include "tools/prof-bpf/open/opening/opener_request.h"
#include "tools/prof-bpf/open/opening/sealed.h"

#define OPENING_GRANTS 4
#define OPENING_LATER 16

/* The rights that the calling process may use to open a file. */
enum opening_rights {
	OPENING_ALL_RIGHTS,
	OPENING_FILES_OF_ALL, /* only what everybody may read, in folders that all may enter */
};

struct opening {
	int proc;	       /* an O_PATH descriptor of a mounted proc; borrowed */
	struct mounts *mounts; /* borrowed; NULL: all file systems are local (tests) */
	/* Foreign file systems that may be asked, by device. Others give OPENER_FOREIGN, with the
	 * device in ret->file.dev, before anything is asked of them. */
	uint64_t granted[OPENING_GRANTS];
	unsigned grants;
	bool may_copy;	   /* else files that are copied give no descriptor */
	uint64_t copy_max; /* bytes of memory for a copy */
	/* Changes the rights of the calling thread; NULL: it has none to give up. */
	void (*set_rights)(enum opening_rights rights);

	/* Results beside opener_result. probe: of a copy (sealed.h), else -1. */
	int probe;
	uint64_t copy_bytes;
	/* Descriptors of foreign files, for the caller to close: that may hang, and the result need
	 * not wait for it. */
	int later[OPENING_LATER];
	unsigned laters;

	/* Within opening.c. */
	uint32_t pid;
	uint64_t foreign_dev;
	bool at_foreign;
};

/* Whether the request makes sense. 0, -EINVAL. */
int opening_check(const struct opener_request *q);
/* Opens the file. q was checked, and its path and name end with NUL. */
void opening_run(struct opening *o, const struct opener_request *q, struct opener_result *ret);

/* Reads the kernel's facts about an open file (fd: borrowed), without asking a server. 0,
 * OPENER_NOT_REGULAR, -errno. */
int opening_stat(int fd, struct opener_file *ret);

#endif
