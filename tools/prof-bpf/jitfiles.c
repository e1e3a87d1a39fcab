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

struct asked {
	struct host *host;
	uint32_t process, pid;
	uint64_t start_ns;
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

static void opened(void *ctx, const struct opener_result *r)
{
	struct asked *a = ctx;
	struct opener_result result = *r;

	if (result.status == 0 && !is_same(a)) {
		close(result.fd);
		result = (struct opener_result){ .status = -ESRCH, .fd = -1 };
	}
	a->done(a->ctx, &result);
	free(a);
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

int jitfiles_open(struct host *h, uint32_t process, uint32_t pid, uint64_t kind, opener_done *done,
		  void *ctx)
{
	struct process *p = process_find_alive(h, pid);
	struct opener_request q = { .pid = pid, .theirs = true };
	struct procfs_stat st;
	struct procfs_ids ids;
	const struct map *m;
	uint64_t ticket;
	char path[40];
	int r;

	if (!p || p->pub.id != process || procfs_read_stat(h->proc, pid, &st) != 0 ||
	    procfs_read_ids(h->proc, pid, &ids) != 0)
		return -ESRCH;
	q.uids[0] = ids.uid;
	q.uids[1] = ids.effective_uid;
	q.since_ns = clock_wall_ns() - (clock_ns(CLOCK_BOOTTIME) - st.start_ns);
	if (kind == JIT_DUMP) {
		m = find_dump(h, p);
		if (!m)
			return -ENOENT;
		q.kind = OPENER_MAPPING;
		q.start = m->start;
		q.end = m->end;
		q.path = (struct str){ .data = m->backing->path, .len = m->backing->path_len };
		q.dev = m->backing->key.dev;
		q.inode = m->backing->key.inode;
	} else if (kind == JIT_PERF_MAP) {
		snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", ids.inner_pid);
		q.kind = OPENER_PATH;
		q.path = str_from(path);
	} else {
		return -EINVAL;
	}
	struct asked *a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct asked){ .host = h,
			     .process = process,
			     .pid = pid,
			     .start_ns = st.start_ns,
			     .done = done,
			     .ctx = ctx };
	r = opener_submit(h->config.opener, &q, opened, a, &ticket);
	if (r)
		free(a);
	return r;
}
