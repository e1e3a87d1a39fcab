/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens one file that a process chose: what each kind of request means, which files are refused,
 * and where else to look. Runs in the opener's threads, since each of its calls may hang.
 */
#ifndef PROF_BPF_OPEN_OPENING_H
#define PROF_BPF_OPEN_OPENING_H

#include "tools/prof-bpf/open/request.h"

struct opening {
	int proc; /* an O_PATH descriptor of a mounted proc; borrowed */
	/* Called before anything that may ask a server, with the device of the folder or file to be
	 * accessed. False: not now, which gives OPENER_TIMEOUT. NULL: any device is allowed. */
	bool (*may_ask)(void *ctx, uint64_t dev);
	void *ctx;
};

/* Whether the request makes sense. 0, -EINVAL. */
int opening_check(const struct opener_request *q);
/* Opens the file. q was checked, and its path and name end with NUL. */
void opening_run(const struct opening *o, const struct opener_request *q,
		 struct opener_result *ret);

/* What the kernel knows of an open file (fd: borrowed), without asking a server. 0,
 * OPENER_NOT_REGULAR, -errno. */
int opening_stat(int fd, struct opener_file *ret);

#endif
