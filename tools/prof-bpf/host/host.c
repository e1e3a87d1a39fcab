// SPDX-License-Identifier: Apache-2.0
/*
 * Combines what records, samples and /proc tell of processes.
 *
 * A reading of a process's /proc includes all that earlier records tell, so those are ignored
 * (scanned_ns, counted_ns). Threads are counted so that the exit of a leader is not mistaken for
 * the end of its process. If the count may be wrong, /proc is read again a little later.
 *
 * The kernel writes one false exit record. An exec that makes a process undumpable removes all
 * events of tasks from it, as if it exited (begin_new_exec in fs/exec.c). This happens for set-id
 * programs, programs with file capabilities, and those that their user may not read. The record
 * follows directly on the exec's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>
#include <utlist.h>
#include "common/base/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/host/processes.h"
#include "tools/prof-bpf/host/publish.h"
#include "tools/prof-bpf/kernel/sideband.h"

#define RESYNC_NS 2000000000ull /* between two complete readings, after lost records */
#define RESYNC_BATCH 64		/* processes per tick */
#define LEADER_CHECK_NS 500000000ull
#define LAST_CHECK_NS 2000000000ull
#define LAST_FEW 64 /* processes, including ended ones that are still known */

/* --- records --- */

static void on_mmap(struct host *h, const struct sideband_event *e)
{
	struct process *p = process_find_alive(h, e->pid);
	struct str name = e->name;
	bool deleted;

	if (!p)
		return;
	p->just_execed = false;
	if (e->time_ns < p->scanned_ns || (p->pub.flags & PROCESS_KERNEL))
		return;
	enum procfs_name kind = procfs_name_kind(&name, &deleted);
	uint64_t end_addr;
	if (kind == PROCFS_VSYSCALL || __builtin_add_overflow(e->addr, e->length, &end_addr))
		return;
	struct map m = { .start = e->addr,
			 .end = end_addr,
			 .offset = kind == PROCFS_VDSO ? 0 : e->offset };
	struct backing_key key = { .dev = (uint64_t)e->dev_major << 32 | e->dev_minor,
				   .inode = e->inode,
				   .generation = e->inode_generation };

	/* A JIT makes the same pages writable and executable by turns. */
	if ((kind != PROCFS_FILE || !e->inode) && kind != PROCFS_VDSO && p->maps &&
	    maps_has_anonymous(p->maps, m.start, m.end))
		return;
	m.backing = process_backing(h, p, &m, kind, key, name, deleted, e->time_ns);
	if (p->maps)
		process_note_displaced(p, p->maps, &m, e->time_ns, e->time_ns);
	process_add_mapping(h, p, &m);
}

static void on_fork(struct host *h, const struct sideband_event *e)
{
	/* If it has ended, another process had the same pid. */
	struct process *parent = process_find_alive(h, e->parent_pid), *p = process_find(h, e->pid);

	if (e->pid == e->parent_pid) {
		if (p && !p->pub.end_ns && e->time_ns >= p->counted_ns)
			p->threads++;
		return;
	}
	if (p && !p->pub.end_ns && (e->time_ns < p->scanned_ns || e->time_ns < p->born_ns))
		return;
	bool selected = !h->config.only_selected ||
			(parent && parent->pub.selected && h->config.follow_forks);
	if (!selected)
		return;
	p = process_new(h, e->pid, e->time_ns);
	if (!p)
		return;
	/* process_new may have forgotten the parent. */
	parent = process_find_alive(h, e->parent_pid);
	p->pub.parent_pid = e->parent_pid;
	p->pub.selected = true;
	/* The host may have been suspended since the last tick. */
	bootclock_read(&h->boot);
	uint64_t at = bootclock_at(&h->boot, e->time_ns, &p->vague_ns);
	p->pub.start_ns = at - at % START_TICK_NS;
	p->start_guessed = true;
	if (!parent) {
		p->wants_maps = true;
		process_mark_dirty(h, p);
		return;
	}
	p->pub.uid = parent->pub.uid;
	p->pub.flags |= parent->pub.flags & PROCESS_KERNEL;
	memcpy(p->pub.comm, parent->pub.comm, sizeof(p->pub.comm));
	p->pub.comm_len = parent->pub.comm_len;
	/* The kernel's hook gave it its parent's mappings. */
	p->pub.first_generation = parent->pub.first_generation;
	p->pub.last_generation = parent->pub.last_generation;
	if (!displaced_copy(parent->displaced, &p->displaced))
		process_forget_generations(p, p->pub.last_generation);
	p->exe = backing_get(parent->exe);
	p->wants_maps = parent->wants_maps ||
			(!parent->maps && !(parent->pub.flags & PROCESS_KERNEL));
	if (parent->maps)
		p->maps = maps_get(parent->maps);
	process_mark_dirty(h, p);
}

static void on_exec(struct host *h, const struct sideband_event *e)
{
	struct process *old = process_find_alive(h, e->pid);

	if (!old)
		return;
	old->just_execed = true;
	if (e->time_ns < old->scanned_ns)
		return;
	/* Copy what is needed, since process_new may forget the object. */
	struct host_process was = old->pub;
	bool guessed = old->start_guessed;
	uint64_t fork_ns = old->fork_ns;
	struct process *p = process_new(h, e->pid, e->time_ns);
	if (!p) {
		tables_process_drop(h->config.tables, e->pid);
		return;
	}
	p->just_execed = true;
	p->pub.parent_pid = was.parent_pid;
	p->pub.uid = was.uid;
	p->pub.execs = was.execs + 1;
	p->pub.start_ns = was.start_ns;
	p->pub.selected = was.selected;
	p->start_guessed = guessed;
	p->fork_ns = fork_ns;
	process_set_comm(&p->pub, e->name.data, e->name.len);
	h->figures.processes_seen--;
	h->figures.execs_seen++;
	process_mark_dirty(h, p);
}

static void on_exit_record(struct host *h, const struct sideband_event *e)
{
	struct process *p = process_find_alive(h, e->pid);
	struct thread *t;

	if (!p || e->time_ns < p->born_ns)
		return;
	struct {
		uint32_t process, tid;
	} key = { .process = p->pub.id, .tid = e->tid };
	HASH_FIND(hh, h->threads, &key, sizeof(key), t);
	if (t)
		t->end_ns = e->time_ns;
	/* The leader's exit right after an exec is the false record, unless the process was killed
	 * during the exec. A real exit record comes before /proc shows the exit, so check later. */
	const bool of_exec = p->just_execed && e->tid == e->pid;

	p->just_execed = false;
	if (of_exec || e->time_ns < p->counted_ns) {
		if (e->tid == e->pid)
			process_lacks_leader(h, p);
		return;
	}
	if (p->threads)
		p->threads--;
	if (!p->threads && (e->tid == e->pid || p->leader_gone)) {
		process_end(h, p, e->time_ns);
	} else if (e->tid == e->pid) {
		process_lacks_leader(h, p);
	} else if (!p->threads) {
		/* The leader lives, so there were more threads than we knew. */
		p->threads = 1;
	}
}

void host_event(struct host *h, const struct sideband_event *e)
{
	struct process *p;

	switch (e->type) {
	case SIDEBAND_MMAP:
		on_mmap(h, e);
		break;
	case SIDEBAND_FORK:
		on_fork(h, e);
		break;
	case SIDEBAND_EXIT:
		on_exit_record(h, e);
		break;
	case SIDEBAND_COMM:
		p = process_find_alive(h, e->pid);
		if (e->exec)
			on_exec(h, e);
		else if (p && e->tid == e->pid && e->time_ns >= p->scanned_ns)
			process_set_comm(&p->pub, e->name.data, e->name.len);
		break;
	case SIDEBAND_LOST:
		h->resync = true;
		break;
	case SIDEBAND_KSYMBOL:
	case SIDEBAND_THROTTLE:
		break;
	}
}

/* --- samples --- */

/* Whether the sample can be of this process, by the start time. Corrects a guessed start time. */
static bool start_agrees(struct host *h, struct process *p, const struct sample *s)
{
	if (p->pub.start_ns == s->start_ns)
		return true;
	/* A child's first sample comes after the record of its fork. So an older sample is of what
	 * the pid was before. */
	if (!p->start_guessed || s->time_ns < p->fork_ns || s->start_ns > p->pub.start_ns ||
	    p->pub.start_ns - s->start_ns > 100 * START_TICK_NS + p->vague_ns)
		return false;
	p->pub.start_ns = s->start_ns;
	p->pub.changed = true;
	p->start_guessed = false;
	process_mark_dirty(h, p);
	return true;
}

/* The process that existed at the sample's time. */
static struct process *process_at(struct host *h, const struct sample *s)
{
	struct process *p = process_find(h, s->pid), *fits = NULL;

	for (; p; p = p->older) {
		if (!start_agrees(h, p, s))
			continue;
		fits = p;
		if (p->born_ns <= s->time_ns)
			break;
	}
	return fits;
}

/* Whether this error of reading /proc means that the process is gone, unlike a lack of
 * descriptors. */
static bool says_gone(int r)
{
	return r == -ENOENT || r == -ESRCH;
}

/* Makes a process that this sample is the first to name. */
static struct process *process_from(struct host *h, const struct sample *s)
{
	struct procfs_stat st;
	struct process *newest = process_find(h, s->pid), *p;
	bool unknown = false;

	if (newest && newest->pub.start_ns > s->start_ns) {
		p = process_behind(h, newest, s->time_ns);
	} else {
		const int r = s->flags & SAMPLE_KERNEL_THREAD
				      ? -ESRCH
				      : procfs_read_stat(h->proc, s->pid, &st);

		p = r == 0 && st.start_ns == s->start_ns ? process_read(h, s->pid, true) : NULL;
		if (p)
			return p;
		unknown = r < 0 && !says_gone(r);
		p = process_new(h, s->pid, 0);
	}
	if (!p)
		return NULL;
	p->pub.parent_pid = s->parent_pid;
	p->pub.start_ns = s->start_ns;
	p->pub.selected = true;
	if (s->flags & SAMPLE_KERNEL_THREAD)
		p->pub.flags |= PROCESS_KERNEL;
	process_set_comm(&p->pub, s->comm, strnlen(s->comm, sizeof(s->comm)));
	p->scanned_ns = s->time_ns;
	/* It has already ended, or another process has its pid. */
	if (!(s->flags & SAMPLE_KERNEL_THREAD) && !unknown)
		process_end(h, p, s->time_ns);
	h->resync |= unknown;
	return p;
}

int host_sample(struct host *h, const struct sample *s, struct host_sample_ref *ret)
{
	struct process *p = process_at(h, s);

	if (!p)
		p = process_from(h, s);
	if (!p)
		return -ENOBUFS;
	process_describe(h, p, s->uid);
	process_find_exe(p);
	struct thread *t = thread_of(h, p, s);
	if (!t)
		return -ENOMEM;
	if (s->items && s->time_ns > p->interpreted_ns) {
		p->interpreted_ns = s->time_ns;
		p->undumpable = s->flags & SAMPLE_UNDUMPABLE;
	}
	ret->process = &p->pub;
	ret->thread = &t->pub;
	return 0;
}

bool host_walked_with(const struct host_process *p, uint32_t generation)
{
	/* Generations continue from 1 after the largest number. */
	return p->last_generation &&
	       generation - p->first_generation <= p->last_generation - p->first_generation;
}

unsigned host_frames_that_hold(const struct host_process *p, const struct sample *s)
{
	return s->generation ? displaced_before(((const struct process *)p)->displaced, s)
			     : s->user_frames;
}

bool host_mapped_since(const struct host_process *p, uint64_t time_ns)
{
	return displaced_since(((const struct process *)p)->displaced, 0, UINT64_MAX, time_ns);
}

/* --- periodic work --- */

enum seen {
	SEEN_NOT,    /* /proc cannot be read now */
	SEEN_GONE,   /* its last thread has ended, or the pid is another's */
	SEEN_ENDING, /* its leader has ended or is about to */
	SEEN_WHOLE,
};

/* The state of a process by /proc. */
static enum seen see(const struct host *h, const struct process *p)
{
	struct procfs_stat st;
	const int r = procfs_read_stat(h->proc, p->pub.pid, &st);

	if (r)
		return says_gone(r) ? SEEN_GONE : SEEN_NOT;
	if (st.start_ns > p->pub.start_ns || st.state == 'X' ||
	    (st.state == 'Z' && st.threads <= 1))
		return SEEN_GONE;
	return st.exiting || st.state == 'Z' ? SEEN_ENDING : SEEN_WHOLE;
}

static void check_leaderless(struct host *h, uint64_t now_ns)
{
	struct process *p, *next;

	if (!h->leaderless || now_ns < h->leader_check_ns)
		return;
	h->leader_check_ns = now_ns + LEADER_CHECK_NS;
	DL_FOREACH_SAFE2(h->leaderless, p, next, leader_next)
	{
		const enum seen s = see(h, p);

		if (s == SEEN_GONE)
			process_end(h, p, now_ns);
		else if (s == SEEN_WHOLE)
			process_keeps_leader(h, p);
	}
}

/* The run ends with the last selected process. A missing exit record must not make it endless. A
 * process must be seen gone twice, so that its last records, perhaps a fork, are known by then. */
static void check_last(struct host *h, uint64_t now_ns)
{
	struct process *p, *next;

	if (!h->config.only_selected || now_ns < h->last_check_ns)
		return;
	h->last_check_ns = now_ns + LAST_CHECK_NS;
	if (h->process_count > LAST_FEW)
		return;
	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns)
			continue;
		const bool gone = see(h, p) == SEEN_GONE;

		if (gone && p->seen_gone)
			process_end(h, p, now_ns);
		else
			p->seen_gone = gone;
	}
}

static void note_pid(void *ctx, uint32_t pid)
{
	struct host *h = ctx;

	if (h->resync_len == h->resync_cap) {
		size_t cap = h->resync_cap ? h->resync_cap * 2 : 512;
		uint32_t *p = reallocarray(h->resync_pids, cap, sizeof(*p));

		if (!p)
			return;
		h->resync_pids = p;
		h->resync_cap = cap;
	}
	h->resync_pids[h->resync_len++] = pid;
}

/* Checks whether a pid is still the process that we know. */
static void resync_one(struct host *h, uint32_t pid, uint64_t now_ns)
{
	struct process *p = process_find_alive(h, pid);
	struct procfs_stat st;
	uint64_t stat_ns = clock_mono_ns();
	int r = procfs_read_stat(h->proc, pid, &st);
	bool there = r == 0 && st.state != 'X' && !(st.state == 'Z' && st.threads <= 1);

	if (r < 0 && !says_gone(r)) {
		h->resync |= p != NULL; /* later */
		return;
	}
	if (p) {
		bool same = there && (st.start_ns == p->pub.start_ns ||
				      (p->start_guessed && st.start_ns < p->pub.start_ns));

		if (same) {
			p->threads = st.threads;
			p->counted_ns = stat_ns;
			p->pub.start_ns = st.start_ns;
			p->start_guessed = false;
			if (!(p->pub.flags & PROCESS_KERNEL)) {
				p->wants_maps = true;
				process_mark_dirty(h, p);
			}
			return;
		}
		process_end(h, p, now_ns);
	}
	if (there && !h->config.only_selected)
		(void)process_read(h, pid, true);
}

/* After lost records, checks all processes again, some per tick. */
static void resync(struct host *h, uint64_t now_ns)
{
	if (h->resync && h->resync_at == h->resync_len && now_ns >= h->resync_ns) {
		struct process *p, *next;

		h->resync = false;
		h->resync_ns = now_ns + RESYNC_NS;
		h->resync_at = h->resync_len = 0;
		HASH_ITER(hh, h->by_pid, p, next) {
			if (!p->pub.end_ns)
				note_pid(h, p->pub.pid);
		}
		if (!h->config.only_selected)
			(void)procfs_each(h->proc, note_pid, h);
	}
	for (unsigned i = 0; i < RESYNC_BATCH && h->resync_at < h->resync_len; i++) {
		uint32_t pid = h->resync_pids[h->resync_at++];
		struct process *p = process_find_alive(h, pid);

		/* Known pids come twice, from us and from /proc. */
		if (!p || p->scanned_ns < h->resync_ns - RESYNC_NS)
			resync_one(h, pid, now_ns);
	}
}

static void expire(struct host *h, uint64_t now_ns)
{
	while (h->retired && now_ns > h->retired->pub.end_ns + HOST_GRACE_NS)
		process_forget(h, h->retired);
	while (h->thread_lru && now_ns > h->thread_lru->last_ns + PROCESSES_THREAD_IDLE_NS)
		thread_free(h, h->thread_lru);
}

void host_tick(struct host *h, uint64_t now_ns, uint64_t heard_ns)
{
	h->heard_ns = heard_ns;
	bootclock_read(&h->boot);
	resync(h, now_ns);
	check_leaderless(h, now_ns);
	check_last(h, now_ns);
	files_tick(h->files, now_ns);
	publish_all(h, now_ns);
	expire(h, now_ns);
}

bool host_settled(const struct host *h)
{
	return files_settled(h->files) && !h->dirty && !h->resolved && !h->resync &&
	       h->resync_at == h->resync_len;
}

/* --- callbacks of files.c --- */

static bool maps_has(const struct map *at, size_t n, const struct backing *b, const struct file *f,
		     struct mapper *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (!at[i].backing || (b ? at[i].backing != b : at[i].backing->file != f))
			continue;
		ret->start = at[i].start;
		ret->end = at[i].end;
		return true;
	}
	return false;
}

static struct mapper find_mapper(void *ctx, const struct backing *b, const struct file *f,
				 uint32_t not_process)
{
	struct host *h = ctx;
	struct process *p, *next;
	struct mapper m = { 0 };

	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns || !p->maps || p->pub.id == not_process)
			continue;
		if (maps_has(p->maps->at, p->maps->len, b, f, &m) ||
		    maps_has(p->maps->noted, p->maps->noted_len, b, f, &m)) {
			m.process_id = p->pub.id;
			m.pid = p->pub.pid;
			break;
		}
	}
	return m;
}

static bool is_mapped(void *ctx, const struct backing *b)
{
	struct process *p = process_find_alive(ctx, b->asker.pid);
	struct mapper m;

	if (!p || p->pub.id != b->asker.process_id || !p->maps)
		return false;
	const struct map *at = maps_find(p->maps, b->asker.start);
	return (at && at->backing == b) ||
	       maps_has(p->maps->noted, p->maps->noted_len, b, NULL, &m);
}

static void on_resolved(void *ctx)
{
	((struct host *)ctx)->resolved = true;
}

/* --- the rest --- */

int host_new(const struct host_config *c, struct host **ret)
{
	struct host *h = calloc(1, sizeof(*h));
	struct files_config files = {
		.tables = c->tables,
		.opener = c->opener,
		.needs_rows = c->file_needs_rows,
		.rows_ctx = c->ctx,
		.find = find_mapper,
		.mapped = is_mapped,
		.resolved = on_resolved,
		.ctx = h,
	};

	if (!h)
		return -ENOMEM;
	h->config = *c;
	bootclock_read(&h->boot);
	h->proc = open(c->proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = h->proc < 0 ? -errno : files_new(&files, &h->files);
	if (r) {
		host_free(h);
		return r;
	}
	h->resync_ns = RESYNC_NS;
	*ret = h;
	return 0;
}

void host_free(struct host *h)
{
	struct process *p, *next;

	if (!h)
		return;
	h->config.process_gone = NULL;
	HASH_ITER(hh, h->by_pid, p, next) {
		if (!p->pub.end_ns)
			process_retire(h, p, 1);
	}
	while (h->retired)
		process_forget(h, h->retired);
	files_free(h->files);
	if (h->proc >= 0)
		close(h->proc);
	free(h->publish);
	free(h->resync_pids);
	free(h);
}

int host_select(struct host *h, uint32_t pid)
{
	struct process *p = process_find_alive(h, pid);

	if (!p)
		p = process_read(h, pid, true);
	if (!p)
		return -ESRCH;
	p->pub.selected = true;
	process_mark_dirty(h, p);
	/* A process without an entry in the tables is not sampled, and nothing counts that. So
	 * enter it at once, before its files are open. If there is no room now, there may be when
	 * its mappings come. */
	if (h->config.only_selected)
		(void)process_publish(h, p, NULL, 0);
	return 0;
}

#define FAMILY_ROUNDS 8 /* a child whose pid is below its parent's needs one more round */

struct family {
	struct host *h;
	bool grown;
};

static void note_child(void *ctx, uint32_t pid)
{
	struct family *f = ctx;
	struct procfs_stat st;
	const struct process *parent;

	if (process_find_alive(f->h, pid) || procfs_read_stat(f->h->proc, pid, &st))
		return;
	parent = process_find_alive(f->h, st.parent_pid);
	if (parent && parent->pub.selected && !host_select(f->h, pid))
		f->grown = true;
}

int host_select_children(struct host *h)
{
	struct family f = { .h = h, .grown = true };
	int r = 0;

	for (unsigned i = 0; i < FAMILY_ROUNDS && f.grown && !r; i++) {
		f.grown = false;
		r = procfs_each(h->proc, note_child, &f);
	}
	return r;
}

void host_mark_self(struct host *h, uint32_t pid)
{
	struct process *p = process_find_alive(h, pid);

	if (p)
		p->pub.flags |= PROCESS_SELF;
	if (h->self_count < PROCESSES_SELF_MAX)
		h->self[h->self_count++] = pid;
}

static void scan_pid(void *ctx, uint32_t pid)
{
	struct host *h = ctx;

	if (!process_find_alive(h, pid))
		(void)process_read(h, pid, true);
}

int host_scan(struct host *h)
{
	return h->config.only_selected ? 0 : procfs_each(h->proc, scan_pid, h);
}

struct host_file *host_slot_file(struct host *h, uint16_t slot)
{
	struct file *f = files_by_slot(h->files, slot);

	return f ? &f->pub : NULL;
}

struct host_file *host_file(struct host *h, uint32_t id)
{
	struct file *f = files_by_id(h->files, id);

	return f ? &f->pub : NULL;
}

void host_each_process(struct host *h, void (*fn)(void *ctx, struct host_process *p), void *ctx)
{
	struct process *newest, *next;

	HASH_ITER(hh, h->by_pid, newest, next) {
		for (struct process *p = newest; p; p = p->older) {
			process_find_exe(p);
			fn(ctx, &p->pub);
		}
	}
}

struct host_process *host_process(struct host *h, uint32_t id)
{
	for (struct process *newest = h->by_pid; newest; newest = newest->hh.next)
		for (struct process *p = newest; p; p = p->older)
			if (p->pub.id == id)
				return &p->pub;
	return NULL;
}

int host_open(struct host *h, struct host_file *f, opener_done *done, void *ctx)
{
	return files_open(h->files, (struct file *)f, done, ctx);
}

int host_open_debug(struct host *h, struct host_file *f, struct span build_id, struct str name,
		    opener_done *done, void *ctx)
{
	struct mapper m = find_mapper(h, NULL, (struct file *)f, 0);
	struct opener_request q = {
		.kind = !name.len      ? OPENER_BUILD_ID
			: build_id.len ? OPENER_ALT
				       : OPENER_DEBUGLINK,
		.pid = m.pid,
		.path = { .data = f->path, .len = f->path_len },
		.name = name,
		.build_id = build_id,
		.dev = f->dev,
		.owner = f->uid,
	};
	uint64_t ticket;

	return opener_submit(h->config.opener, &q, done, ctx, &ticket);
}

void host_want_rows(struct host *h, struct host_file *f)
{
	files_want_rows(h->files, (struct file *)f);
}

void host_figures(const struct host *h, struct host_figures *ret)
{
	struct files_figures f;
	struct process *p, *next;

	files_figures(h->files, &f);
	*ret = h->figures;
	ret->processes = 0;
	ret->mappings = 0;
	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns)
			continue;
		ret->processes++;
		ret->mappings += p->maps ? p->maps->len : 0;
		if (p->maps)
			ret->bytes += ((uint64_t)p->maps->cap + p->maps->noted_cap) *
				      sizeof(struct map) / p->maps->refs;
	}
	ret->threads = h->thread_count;
	ret->files = f.files;
	ret->open_fds = f.fds;
	ret->bytes += h->process_count * sizeof(struct process) +
		      h->thread_count * sizeof(struct thread) +
		      f.files * (sizeof(struct file) + sizeof(struct backing) + 2 * 64) +
		      h->publish_cap * sizeof(*h->publish);
	ret->opens = f.opens;
	ret->opens_spared = f.spared;
	ret->opens_failed = f.failed;
	ret->put_off += f.put_off;
	ret->limit += f.limit;
}

void host_each_mapping(struct host *h, uint32_t pid,
		       void (*fn)(void *ctx, const struct host_process *p, uint64_t start,
				  uint64_t end, uint64_t offset, const struct host_file *file,
				  bool pending),
		       void *ctx)
{
	struct process *p, *next;

	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns || (pid && p->pub.pid != pid))
			continue;
		process_settle(h, p);
		for (uint32_t i = 0; p->maps && i < p->maps->len; i++) {
			const struct map *m = &p->maps->at[i];
			bool ready = m->backing && m->backing->state == BACKING_READY;

			fn(ctx, &p->pub, m->start, m->end, m->offset,
			   ready ? &m->backing->file->pub : NULL,
			   m->backing && !ready && m->backing->state != BACKING_FAILED);
		}
	}
}
