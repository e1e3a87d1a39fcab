// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/msg.h"
#include "tools/prof-bpf/jitfiles.h"
#include "tools/prof-bpf/processes.h"

#define PARENTS 4 /* forks of forks */

struct asked {
	struct host *host;
	uint32_t process,
		pid; /* whose file it is: the process itself, or one that it was forked from */
	uint64_t start_ns;
	bool map;
	unsigned parents; /* how many forks up */
	opener_done *done;
	void *ctx;
};

/* The process is the one that was meant. */
static bool is_same(const struct asked *a)
{
	const struct process *p = process_find_alive(a->host, a->pid);
	struct procfs_stat st;

	return p && p->pub.id == a->process && procfs_read_stat(a->host->proc, a->pid, &st) == 0 &&
	       st.start_ns == a->start_ns;
}

/* What p was forked from, if p still runs its program: its code is p's, and so are its names. NULL:
 * nothing. */
static struct process *parent_of(const struct asked *a)
{
	const struct process *p = process_find_alive(a->host, a->pid);
	struct process *parent = p ? process_find_alive(a->host, p->pub.parent_pid) : NULL;

	if (!parent || a->parents == PARENTS || !p->exe || !parent->exe || !p->exe->file ||
	    p->exe->file != parent->exe->file)
		return NULL;
	return parent;
}

static int open_map(struct asked *a);

static void opened(void *ctx, const struct opener_result *r)
{
	struct asked *a = ctx;
	struct opener_result result = *r;

	if (result.status == 0 && !is_same(a)) {
		close(result.fd);
		result = (struct opener_result){ .status = -ESRCH, .fd = -1 };
	}
	struct process *parent = a->map && result.status == -ENOENT ? parent_of(a) : NULL;
	if (parent) {
		a->process = parent->pub.id;
		a->pid = parent->pub.pid;
		a->parents++;
		if (open_map(a) == 0)
			return;
	}
	a->done(a->ctx, &result);
	free(a);
}

/* Whose files they may be, and since when. */
static int describe(struct asked *a, struct opener_request *q, uint32_t *ret_inner_pid)
{
	struct procfs_stat st;
	struct procfs_ids ids;

	if (procfs_read_stat(a->host->proc, a->pid, &st) != 0 ||
	    procfs_read_ids(a->host->proc, a->pid, &ids) != 0)
		return -ESRCH;
	a->start_ns = st.start_ns;
	*ret_inner_pid = ids.inner_pid;
	*q = (struct opener_request){
		.pid = a->pid,
		.theirs = true,
		.uids = { ids.uid, ids.effective_uid },
		.since_ns = clock_wall_ns() - (clock_ns(CLOCK_BOOTTIME) - st.start_ns),
	};
	return 0;
}

/* Its callback frees a, unless this fails. */
static int open_map(struct asked *a)
{
	struct opener_request q;
	uint32_t inner_pid;
	uint64_t ticket;
	char path[40];
	int r = describe(a, &q, &inner_pid);

	if (r)
		return r;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", inner_pid);
	q.kind = OPENER_PATH;
	q.path = str_from(path);
	return opener_submit(a->host->config.opener, &q, opened, a, &ticket);
}

/* jit-NUMBER.dump */
static bool is_dump_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t digits;

	if (strncmp(name, "jit-", 4) != 0)
		return false;
	digits = strspn(name + 4, "0123456789");
	return digits > 0 && strcmp(name + 4 + digits, ".dump") == 0;
}

/* The newest such mapping by address: there is hardly ever more than one. */
static const struct map *find_dump(struct host *h, struct process *p)
{
	process_settle(h, p);
	for (uint32_t i = p->maps ? p->maps->len : 0; i-- > 0;) {
		const struct map *m = &p->maps->at[i];

		if (m->backing && m->backing->path && is_dump_name(m->backing->path))
			return m;
	}
	return NULL;
}

static int open_dump(struct asked *a)
{
	struct process *p = process_find_alive(a->host, a->pid);
	const struct map *m = p ? find_dump(a->host, p) : NULL;
	struct opener_request q;
	uint32_t inner_pid;
	uint64_t ticket;
	int r = m ? describe(a, &q, &inner_pid) : -ENOENT;

	if (r)
		return r;
	q.kind = OPENER_MAPPING;
	q.start = m->start;
	q.end = m->end;
	q.path = (struct str){ .data = m->backing->path, .len = m->backing->path_len };
	q.dev = m->backing->key.dev;
	q.inode = m->backing->key.inode;
	q.since_ns = 0; /* that it is mapped says whose it is; a fork has its parent's */
	return opener_submit(a->host->config.opener, &q, opened, a, &ticket);
}

int jitfiles_open(struct host *h, uint32_t process, uint32_t pid, uint64_t kind, opener_done *done,
		  void *ctx)
{
	struct process *p = process_find_alive(h, pid);
	struct asked *a;
	int r;

	if (!p || p->pub.id != process)
		return -ESRCH;
	if (kind != JIT_DUMP && kind != JIT_PERF_MAP)
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct asked){ .host = h,
			     .process = process,
			     .pid = pid,
			     .map = kind == JIT_PERF_MAP,
			     .done = done,
			     .ctx = ctx };
	r = kind == JIT_DUMP ? open_dump(a) : open_map(a);
	if (r)
		free(a);
	return r;
}
