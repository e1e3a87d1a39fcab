/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening one file that a process chose: what each kind of request means, which files are refused,
 * and where else a file is looked for. Done by the opener's threads, since every call of it may
 * hang.
 */
#ifndef PROFPIPE_OPENING_H
#define PROFPIPE_OPENING_H

#include "tools/prof-bpf/open/request.h"

struct opening {
	int proc; /* an O_PATH descriptor of a mounted proc; borrowed */
	/* Told the device of a folder in which a name is about to be looked up, and of a file that
	 * is about to be opened, before anything that may ask a server. False: not now, which gives
	 * OPENER_TIMEOUT. NULL: any device will do. */
	bool (*may_ask)(void *ctx, uint64_t dev);
	void *ctx;
};

/* Whether what is asked for makes sense. 0, -EINVAL. */
int opening_check(const struct opener_request *q);
/* Opens it. q was checked, and its path and name end with NUL. */
void opening_run(const struct opening *o, const struct opener_request *q,
		 struct opener_result *ret);

/* What the kernel knows of an open file (fd: borrowed) without asking a server. 0,
 * OPENER_NOT_REGULAR, -errno. */
int opening_stat(int fd, struct opener_file *ret);

#endif
