/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/lookups/jitfiles.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/statuses.h"
#include "tools/prof-bpf/open/closing.h"

#define PARENTS 4 /* limit of generations of forks */

/* The /tmp of a process that had no map. */
struct folder {
	uint32_t process; /* 0: empty */
	int fd;		  /* -1: being opened */
	uint64_t used_ns;
	struct opener_request
		q; /* the request for the map, without its path; holds a reference to its owner */
	uint32_t inner_pid;
};

struct jitfiles {
	struct host *host;
	struct opener *opener;
	struct folder folders[JITFILES_KEEP];
	bool wall_known;
	int64_t wall_offset_ns; /* see wall_offset */
};

struct asked {
	struct jitfiles *jitfiles;
	/* The owner of the file: the process itself, or one that it was forked from. */
	uint32_t process, pid; /* process 0: the host does not know it */
	uint32_t of_pid; /* the process whose code needs names, charged for its parents' files */
	uint64_t start_ns;
	bool map;
	bool gone;	  /* search in a folder that was kept */
	unsigned parents; /* how many generations of forks it goes back */
	opener_done *done;
	void *ctx;
};

/* --- folders --- */

static struct folder *folder_find(struct jitfiles *j, uint32_t process)
{
	for (unsigned i = 0; i < JITFILES_KEEP; i++)
		if (j->folders[i].process == process)
			return &j->folders[i];
	return NULL;
}

static void folder_drop(struct jitfiles *j, struct folder *f)
{
	closing_give(f->fd);
	if (f->q.payer)
		owner_put(j->host->owners, f->q.payer);
	*f = (struct folder){ .fd = -1 };
}

static void folder_opened(void *ctx, const struct opener_result *r)
{
	struct asked *a = ctx;
	struct folder *f = folder_find(a->jitfiles, a->process);

	if (r->status == 0 && f && f->fd < 0)
		f->fd = r->fd;
	else if (r->status == 0)
		closing_give(r->fd);
	else if (f && f->fd < 0)
		folder_drop(a->jitfiles, f);
	free(a);
}

/* Keeps the folder for the map of a process. It replaces the one that was requested longest ago. */
static void folder_keep(const struct asked *a, const struct opener_request *q, uint32_t inner_pid)
{
	struct folder *f = folder_find(a->jitfiles, a->process), *oldest = a->jitfiles->folders;
	struct opener_request folder = {
		.kind = OPENER_FOLDER, .pid = a->pid, .payer = q->payer, .path = STR_LIT("/tmp")
	};
	struct asked *b;
	uint64_t ticket;

	if (f) {
		f->used_ns = clock_mono_ns();
		return;
	}
	for (unsigned i = 1; i < JITFILES_KEEP && oldest->process; i++)
		if (a->jitfiles->folders[i].used_ns < oldest->used_ns)
			oldest = &a->jitfiles->folders[i];
	b = malloc(sizeof(*b));
	if (!b)
		return;
	*b = *a;
	if (opener_submit(a->jitfiles->opener, &folder, folder_opened, b, &ticket) != 0) {
		free(b);
		return;
	}
	folder_drop(a->jitfiles, oldest);
	*oldest = (struct folder){ .process = a->process,
				   .fd = -1,
				   .used_ns = clock_mono_ns(),
				   .q = *q,
				   .inner_pid = inner_pid };
	if (q->payer)
		(void)owner_get(q->payer);
}

/* Returns the offset from the clock since boot to the clock of file times, which can be set. The
 * smallest offset seen is used, so that a file as old as its process still counts after the clock
 * was set forward. */
static int64_t wall_offset(struct jitfiles *j)
{
	const int64_t now = (int64_t)(clock_wall_ns() - clock_ns(CLOCK_BOOTTIME));

	if (!j->wall_known || now < j->wall_offset_ns)
		j->wall_offset_ns = now;
	j->wall_known = true;
	return j->wall_offset_ns;
}

int jitfiles_new(struct host *h, struct opener *o, struct jitfiles **ret)
{
	struct jitfiles *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->host = h;
	j->opener = o;
	(void)wall_offset(j);
	for (unsigned i = 0; i < JITFILES_KEEP; i++)
		j->folders[i].fd = -1;
	*ret = j;
	return 0;
}

void jitfiles_free(struct jitfiles *j)
{
	if (!j)
		return;
	for (unsigned i = 0; i < JITFILES_KEEP; i++)
		folder_drop(j, &j->folders[i]);
	free(j);
}

void jitfiles_tick(struct jitfiles *j, uint64_t now_ns)
{
	for (unsigned i = 0; i < JITFILES_KEEP; i++) {
		struct folder *f = &j->folders[i];

		if (f->process && now_ns > f->used_ns + JITFILES_KEEP_NS)
			folder_drop(j, f);
	}
}

/* --- opening --- */

/* Whether the pid still belongs to the requested process. */
static bool is_same(const struct asked *a)
{
	struct host *h = a->jitfiles->host;
	const struct process *p = process_find_alive(h, a->pid);
	struct procfs_stat st;

	return (!a->process || (p && p->pub.id == a->process)) &&
	       procfs_read_thread_stat(h->proc, a->pid, &st) == 0 && st.start_ns == a->start_ns;
}

/* Whether a link of two processes in /proc, such as "exe", has the same text. */
static bool links_agree(const struct host *h, const char *link, uint32_t a, uint32_t b)
{
	char to[2][PATH_MAX];
	const ssize_t n = procfs_read_link(h->proc, a, link, to[0]),
		      m = procfs_read_link(h->proc, b, link, to[1]);

	return n > 0 && n == m && memcmp(to[0], to[1], (size_t)n) == 0;
}

/* Whether two processes run the same program. The host does not know the program of a process that
 * was never sampled, or that is no target. Then the paths of both are compared. A path names the
 * same file only in the same mount namespace. */
static bool run_same_program(struct host *h, uint32_t a, uint32_t b)
{
	const struct process *p = process_find_alive(h, a), *q = process_find_alive(h, b);

	if (p && q && p->exe && q->exe && p->exe->file && q->exe->file)
		return p->exe->file == q->exe->file;
	return links_agree(h, "exe", a, b) && links_agree(h, "ns/mnt", a, b);
}

/* Goes on with the process that a->pid was forked from, if both still run the same program: then
 * code and names are the same. False: there is none. */
static bool step_to_parent(struct asked *a)
{
	struct host *h = a->jitfiles->host;
	struct procfs_stat st;

	if (a->parents == PARENTS || procfs_read_thread_stat(h->proc, a->pid, &st) != 0 ||
	    st.start_ns != a->start_ns || !run_same_program(h, a->pid, st.parent_pid))
		return false;
	const struct process *parent = process_find_alive(h, st.parent_pid);

	a->process = parent ? parent->pub.id : 0;
	a->pid = st.parent_pid;
	a->parents++;
	return true;
}

static int open_map(struct asked *a);
static int open_gone(struct asked *a);

static void opened(void *ctx, const struct opener_result *r)
{
	struct asked *a = ctx;
	struct opener_result result = *r;

	if (result.status == 0 && !a->gone && !is_same(a)) {
		closing_give(result.fd);
		result = (struct opener_result){ .status = -ESRCH, .fd = -1 };
	}
	if (a->map && result.status == -ENOENT && !a->gone && step_to_parent(a)) {
		if (open_map(a) == 0)
			return;
	} else if (result.status == -ENOENT && !a->gone && !a->parents && open_gone(a) == 0) {
		return; /* the process may have ended meanwhile */
	}
	a->done(a->ctx, &result);
	free(a);
}

/* Sets allowed owners and the minimum mtime. Returns 0, -ESRCH or -EBUSY. */
static int describe(struct asked *a, struct opener_request *q, uint32_t *ret_inner_pid)
{
	struct host *h = a->jitfiles->host;
	const struct process *p = process_find_alive(h, a->of_pid);
	struct procfs_stat st;
	struct procfs_ids ids;
	int r = procfs_read_thread_stat(h->proc, a->pid, &st);

	if (!r)
		r = statuses_read_ids(h, p ? p->pub.owner : NULL, a->pid, &ids);
	if (r)
		return r == -EBUSY ? r : -ESRCH;
	a->start_ns = st.start_ns;
	*ret_inner_pid = ids.inner_pid;
	*q = (struct opener_request){
		.pid = a->pid,
		.payer = p ? p->pub.owner : NULL,
		.by_users = true,
		.uids = { ids.uid, ids.effective_uid },
		.since_ns = (uint64_t)(wall_offset(a->jitfiles) + (int64_t)st.start_ns),
	};
	return 0;
}

/* Opens the map. The callback frees a, unless this fails. */
static int open_map(struct asked *a)
{
	struct opener_request q;
	uint32_t inner_pid;
	uint64_t ticket;
	char path[40];
	int r = describe(a, &q, &inner_pid);

	if (r)
		return r;
	if (!a->parents)
		folder_keep(a, &q, inner_pid);
	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", inner_pid);
	q.kind = OPENER_PATH;
	q.path = str_from(path);
	return opener_submit(a->jitfiles->opener, &q, opened, a, &ticket);
}

/* Opens the map of a process that has ended. */
static int open_gone(struct asked *a)
{
	struct folder *f = folder_find(a->jitfiles, a->process);
	struct opener_request q;
	uint64_t ticket;
	char name[40];

	if (!a->map || !f || f->fd < 0)
		return -ESRCH;
	snprintf(name, sizeof(name), "perf-%" PRIu32 ".map", f->inner_pid);
	q = f->q;
	q.kind = OPENER_IN_FOLDER;
	q.folder = f->fd;
	q.path = str_from(name);
	a->gone = true;
	return opener_submit(a->jitfiles->opener, &q, opened, a, &ticket);
}

/* Whether the name is jit-NUMBER.dump. */
static bool is_dump_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t digits;

	if (strncmp(name, "jit-", 4) != 0)
		return false;
	digits = strspn(name + 4, "0123456789");
	return digits > 0 && strcmp(name + 4 + digits, ".dump") == 0;
}

/* Returns the last such mapping by address; usually there is only one. */
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
	struct host *h = a->jitfiles->host;
	struct process *p = process_find_alive(h, a->pid);
	const struct map *m = p ? find_dump(h, p) : NULL;
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
	q.since_ns = 0; /* not needed: the mapping proves the owner, and a fork has its parent's
			 * file */
	return opener_submit(a->jitfiles->opener, &q, opened, a, &ticket);
}

int jitfiles_open(struct jitfiles *j, uint32_t process, uint32_t pid, uint64_t kind,
		  opener_done *done, void *ctx)
{
	struct process *p = process_find_alive(j->host, pid);
	struct asked *a;
	int r = -ESRCH;

	if (!process || (kind != MSG_JIT_DUMP && kind != MSG_JIT_PERF_MAP))
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct asked){ .jitfiles = j,
			     .process = process,
			     .pid = pid,
			     .of_pid = pid,
			     .map = kind == MSG_JIT_PERF_MAP,
			     .done = done,
			     .ctx = ctx };
	if (p && p->pub.id == process)
		r = kind == MSG_JIT_DUMP ? open_dump(a) : open_map(a);
	if (r == -ESRCH)
		r = open_gone(a);
	if (r)
		free(a);
	return r;
}
