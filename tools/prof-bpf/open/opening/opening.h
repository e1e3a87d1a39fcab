/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens one file that a process chose. Implements what each kind of request means, which files are
 * refused, and where else to look. Runs in worker processes (worker.h), since each call may hang.
 */
#ifndef PROF_BPF_OPEN_OPENING_OPENING_H
#define PROF_BPF_OPEN_OPENING_OPENING_H

#include "tools/prof-bpf/open/opening/mounts.h"
#include "tools/prof-bpf/open/opening/opener_request.h"
#include "tools/prof-bpf/open/opening/sealed.h"

#define OPENING_GRANTS 4
#define OPENING_LATER 16

/* The rights that the calling process uses to open a file. */
enum opening_rights {
	OPENING_ALL_RIGHTS,
	OPENING_FILES_OF_ALL, /* only files that all users may read, in folders that all may
			       * enter */
};

struct opening {
	int proc;	       /* an O_PATH descriptor of a mounted proc; borrowed */
	struct mounts *mounts; /* borrowed; NULL: all file systems are local (tests) */
	/* Foreign file systems that may be asked, by device. For others the result is
	 * OPENER_FOREIGN, with the device in ret->file.dev, before anything is asked of them. */
	uint64_t granted[OPENING_GRANTS];
	unsigned grants;
	bool may_copy;	   /* if false, files that must be copied give no descriptor */
	uint64_t copy_max; /* bytes of memory for a copy */
	/* Changes the rights of the calling thread; NULL: it has none to give up. */
	void (*set_rights)(enum opening_rights rights);

	/* Results besides opener_result. probe: of a copy (sealed.h), otherwise -1. */
	int probe;
	uint64_t copy_bytes;
	/* Descriptors of foreign files that the caller must close. That may hang, and the result
	 * need not wait for it. */
	int later[OPENING_LATER];
	unsigned laters;

	/* Private to opening.c. */
	uint32_t pid;
	uint64_t foreign_dev;
	bool at_foreign, at_pseudo;
};

/* Checks whether the request is valid. Returns 0 or -EINVAL. */
int opening_check(const struct opener_request *q);
/* Opens the file. q must have been checked, and its path and name end with NUL. */
void opening_run(struct opening *o, const struct opener_request *q, struct opener_result *ret);

/* Reads the kernel's facts about an open file (fd: borrowed), without asking a server. Returns 0,
 * OPENER_NOT_REGULAR or -errno. */
int opening_stat(int fd, struct opener_file *ret);

#endif
