// SPDX-License-Identifier: Apache-2.0
/*
 * Processes over time. The newest object of a pid stands in a hash; older ones (before an exec, or ended) hang behind it and in a queue, in the order in which they
 * will be forgotten.
 *
 * What a process's /proc says at a moment holds all that records of earlier moments say: those are passed over (scanned_ns). Threads are counted so that the exit of a leader
 * is not taken for the end of its process; where the count may be wrong, /proc is asked again a little later.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uthash.h>
#include <utlist.h>
#include "common/clock.h"
#include "common/msg.h"
#include "tools/prof-bpf/files.h"
#include "tools/prof-bpf/host.h"
#include "tools/prof-bpf/maps.h"
#include "tools/prof-bpf/procfs.h"
#include "tools/prof-bpf/tables.h"

#define THREAD_IDLE_NS 60000000000ull	/* a thread not sampled that long is forgotten, and gets another id when it is again */
#define NOTED_MAX 256u			/* mappings noted before they are put in place, at least */
#define PUBLISH_NS_PER_MAPPING 2000u	/* a large process is published that much less often */
#define FULL_RETRY_NS 1000000000ull
#define RESCAN_NS 1000000000ull		/* between two readings of a process's maps */
#define RESYNC_NS 2000000000ull		/* between two readings of all, after lost records */
#define RESYNC_BATCH 64			/* processes a tick */
#define LEADER_CHECK_NS 500000000ull
#define GUESS_SAFE_NS 3000000ull	/* a fork's record comes so much later than the start it speaks of, hardly ever more */
#define MAX_SELF 64

struct thread {
	struct host_thread pub;
	struct {
		uint32_t process, tid;
	} key;
	uint64_t last_ns, end_ns;
	struct thread *prev, *next;		/* by last use */
	struct thread *of_prev, *of_next;	/* of its process */
	UT_hash_handle hh;
};

struct process {
	struct host_process pub;
	struct process *older;		/* what the pid was before */
	uint64_t born_ns;		/* CLOCK_MONOTONIC: of its fork or exec; 0: before us */
	uint64_t fork_ns;		/* the same, of its fork alone */
	uint64_t scanned_ns;		/* what records of mappings before that say is known */
	uint64_t counted_ns;		/* what records of threads before that say is known */
	uint64_t publish_ns;		/* not before */
	uint64_t rescan_ns;		/* not before */
	uint32_t threads;
	uint32_t scanned_len;		/* mappings when they were last read whole */
	bool dirty;			/* in the list of what is to be published */
	bool changed;			/* since it was published */
	bool unresolved, leader_gone, start_guessed, described, wants_maps;
	struct maps *maps;		/* NULL: none */
	struct backing *exe;
	struct thread *thread_list;
	struct process *prev, *next;	/* retired */
	struct process *dirty_next, *unresolved_next;
	struct process *leader_prev, *leader_next;
	UT_hash_handle hh;
};

struct host {
	struct host_config config;
	struct files *files;
	int proc;
	struct process *by_pid, *retired, *dirty, *unresolved, *leaderless;
	struct thread *threads, *thread_lru;
	uint32_t process_count, thread_count, next_process, next_thread;
	uint32_t self[MAX_SELF];
	unsigned self_count;
	uint64_t boot_offset_ns;	/* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	uint64_t offset_ns, leader_check_ns, resync_ns;
	bool resync, resolved;
	uint32_t *resync_pids;
	size_t resync_len, resync_cap, resync_at;
	struct tables_mapping *publish;	/* being made */
	size_t publish_cap;
	struct host_figures figures;
};

/* --- processes --- */

static struct process *find(struct host *h, uint32_t pid)
{
	struct process *p;

	HASH_FIND(hh, h->by_pid, &pid, sizeof(pid), p);
	return p;
}

static struct process *find_alive(struct host *h, uint32_t pid)
{
	struct process *p = find(h, pid);

	return p && !p->pub.end_ns ? p : NULL;
}

static void mark_dirty(struct host *h, struct process *p)
{
	p->changed = true;
	if (p->dirty || p->pub.end_ns)
		return;
	p->dirty = true;
	p->dirty_next = h->dirty;
	h->dirty = p;
}

static void dirty_remove(struct host *h, struct process *p)
{
	if (p->dirty)
		LL_DELETE2(h->dirty, p, dirty_next);
	p->dirty = false;
	if (p->unresolved)
		LL_DELETE2(h->unresolved, p, unresolved_next);
	p->unresolved = false;
}

static void thread_free(struct host *h, struct thread *t)
{
	struct process *p = (struct process *)t->pub.process;

	HASH_DEL(h->threads, t);
	DL_DELETE(h->thread_lru, t);
	DL_DELETE2(p->thread_list, t, of_prev, of_next);
	h->thread_count--;
	free(t);
}

/* The object stays for late samples, and its mappings for the deferred walk. */
static void retire(struct host *h, struct process *p, uint64_t now_ns)
{
	p->pub.end_ns = now_ns ? now_ns : 1;
	dirty_remove(h, p);
	if (p->leader_gone)
		DL_DELETE2(h->leaderless, p, leader_prev, leader_next);
	p->leader_gone = false;
	DL_APPEND(h->retired, p);
}

/* A retired process is forgotten. */
static void forget(struct host *h, struct process *p)
{
	struct process *newest = find(h, p->pub.pid);
	struct thread *t, *next;

	if (h->config.process_gone)
		h->config.process_gone(h->config.ctx, &p->pub);
	DL_DELETE(h->retired, p);
	maps_put(p->maps);
	p->maps = NULL;
	if (newest == p) {
		HASH_DEL(h->by_pid, p);
		if (p->older)
			HASH_ADD(hh, h->by_pid, pub.pid, sizeof(p->pub.pid), p->older);
	} else {
		while (newest->older != p)
			newest = newest->older;
		newest->older = p->older;
	}
	DL_FOREACH_SAFE2(p->thread_list, t, next, of_next)
		thread_free(h, t);
	backing_put(p->exe);
	h->process_count--;
	free(p);
}

static void end(struct host *h, struct process *p, uint64_t now_ns)
{
	if (p->pub.end_ns)
		return;
	retire(h, p, now_ns);
	tables_process_drop(h->config.tables, p->pub.pid);
}

/* A new object for a pid; what lives there by now is retired. born_ns: 0 when that was before us. NULL: the ceiling, or no memory. */
static struct process *process_new(struct host *h, uint32_t pid, uint64_t born_ns)
{
	struct process *older = find(h, pid), *p;

	if (older && !older->pub.end_ns)
		retire(h, older, born_ns ? born_ns : clock_mono_ns());
	if (h->process_count >= HOST_MAX_PROCESSES && h->retired) {
		if (h->retired == older)
			older = older->older;
		forget(h, h->retired);
	}
	if (h->process_count >= HOST_MAX_PROCESSES) {
		h->figures.limit++;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pub.id = ++h->next_process;
	p->pub.pid = pid;
	p->born_ns = p->fork_ns = born_ns;
	p->threads = 1;
	p->older = older;
	if (older)
		HASH_DEL(h->by_pid, older);
	HASH_ADD(hh, h->by_pid, pub.pid, sizeof(p->pub.pid), p);
	h->process_count++;
	h->figures.processes_seen++;
	for (unsigned i = 0; i < h->self_count; i++) {
		if (h->self[i] == pid)
			p->pub.flags |= PROCESS_SELF;
	}
	return p;
}

/* An object for what a pid was before all that is known of it: retired from the first. */
static struct process *process_behind(struct host *h, struct process *last, uint64_t end_ns)
{
	struct process *p = h->process_count < HOST_MAX_PROCESSES ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		h->figures.limit++;
		return NULL;
	}
	while (last->older)
		last = last->older;
	last->older = p;
	p->pub.id = ++h->next_process;
	p->pub.pid = last->pub.pid;
	h->process_count++;
	h->figures.processes_seen++;
	retire(h, p, end_ns);
	return p;
}

static void set_comm(struct host_process *p, const char *comm, size_t len)
{
	p->comm_len = (uint8_t)(len > sizeof(p->comm) ? sizeof(p->comm) : len);
	memset(p->comm, 0, sizeof(p->comm));
	memcpy(p->comm, comm, p->comm_len);
}

/* --- mappings --- */

static struct backing *backing_of(struct host *h, struct process *p, const struct map *m, enum procfs_name kind, struct backing_key key,
				  struct str path, bool deleted, uint64_t now_ns)
{
	struct mapper asker = { .process_id = p->pub.id, .pid = p->pub.pid, .start = m->start, .end = m->end };

	if (kind == PROCFS_VDSO)
		return files_vdso(h->files, m->start, m->end);
	if (kind != PROCFS_FILE || !key.inode)
		return NULL;
	return files_backing(h->files, key, asker, path, deleted, now_ns);
}

static void settle(struct host *h, struct process *p)
{
	if (p->maps)
		(void)maps_settle(p->maps, HOST_MAX_MAPPINGS, &h->figures.limit);
}

/* Takes the reference to the backing. */
static void add_mapping(struct host *h, struct process *p, const struct map *m)
{
	if (!p->maps)
		p->maps = maps_new();
	if (!p->maps) {
		backing_put(m->backing);
		return;
	}
	if (m->backing && !p->exe && m->backing->path)
		p->exe = backing_get(m->backing);
	(void)maps_add(&p->maps, m);
	if (p->maps->noted_len >= NOTED_MAX && p->maps->noted_len >= p->maps->len / 2)
		settle(h, p);
	mark_dirty(h, p);
}

struct reading {
	struct host *host;
	struct process *process;
	struct maps *maps;		/* being made */
	const struct maps *known;
	struct str exe;
	uint64_t now_ns;
	bool failed;
};

static void read_mapping(void *ctx, const struct procfs_mapping *from)
{
	struct reading *r = ctx;
	struct map m = { .start = from->start, .end = from->end, .offset = from->offset };
	struct backing_key key = { .dev = (uint64_t)from->dev_major << 32 | from->dev_minor, .inode = from->inode };
	const struct map *known = r->known ? maps_find(r->known, from->start) : NULL;

	if (from->kind == PROCFS_VSYSCALL)
		return;
	if (from->kind == PROCFS_VDSO)
		m.offset = 0;
	if (known && known->backing && known->start == m.start && known->end == m.end && known->offset == m.offset &&
	    known->backing->key.dev == key.dev && known->backing->key.inode == key.inode && from->kind == PROCFS_FILE &&
	    known->backing->state != BACKING_FAILED)
		m.backing = backing_get(known->backing);
	else
		m.backing = backing_of(r->host, r->process, &m, from->kind, key, from->name, from->deleted, r->now_ns);
	if (from->kind == PROCFS_FILE && str_eq(from->name, r->exe) && !r->process->exe)
		r->process->exe = backing_get(m.backing);
	r->failed |= maps_add(&r->maps, &m) != 0;
}

/* Reads the mappings of a process that lives, in place of what is known. */
static int read_maps(struct host *h, struct process *p)
{
	char link[32], exe[PATH_MAX];
	struct reading r = { .host = h, .process = p, .maps = maps_new(), .now_ns = clock_mono_ns() };

	p->wants_maps = false;
	if (!r.maps)
		return -ENOMEM;
	settle(h, p);
	r.known = p->maps;
	snprintf(link, sizeof(link), "%u/exe", p->pub.pid);
	ssize_t n = readlinkat(h->proc, link, exe, sizeof(exe));
	r.exe = (struct str){ .data = exe, .len = n > 0 ? (uint32_t)n : 0 };
	n = procfs_read_maps(h->proc, p->pub.pid, HOST_MAX_MAPPINGS, read_mapping, &r);
	if (n < 0 || r.failed) {
		maps_put(r.maps);
		return n < 0 ? (int)n : -ENOMEM;
	}
	maps_put(p->maps);
	p->maps = r.maps;
	settle(h, p);
	p->scanned_ns = r.now_ns;
	p->scanned_len = p->maps->len;
	p->rescan_ns = r.now_ns + RESCAN_NS;
	h->figures.rescans++;
	mark_dirty(h, p);
	return 0;
}

static void describe(struct host *h, struct process *p)
{
	if (p->described)
		return;
	p->described = true;
	if (!p->pub.end_ns && procfs_read_uid(h->proc, p->pub.pid, &p->pub.uid) == 0) {
		for (size_t i = 0; i < h->config.self_uid_count; i++) {
			if (h->config.self_uids[i] == p->pub.uid)
				p->pub.flags |= PROCESS_SELF;
		}
	}
}

/* A process as /proc shows it now. NULL: there is none, or nothing runs in it any more. */
static struct process *process_read(struct host *h, uint32_t pid, bool selected)
{
	struct procfs_stat st;
	uint64_t now_ns = clock_mono_ns();

	if (procfs_read_stat(h->proc, pid, &st) != 0 || st.state == 'X' || (st.state == 'Z' && st.threads <= 1))
		return NULL;
	struct process *p = process_new(h, pid, 0);
	if (!p)
		return NULL;
	p->pub.parent_pid = st.parent_pid;
	p->pub.start_ns = st.start_ns;
	p->pub.selected = selected;
	p->pub.flags |= st.kernel ? PROCESS_KERNEL : 0;
	set_comm(&p->pub, st.comm, st.comm_len);
	p->threads = st.threads ? st.threads : 1;
	p->scanned_ns = p->counted_ns = now_ns;
	describe(h, p);
	if (!st.kernel)
		(void)read_maps(h, p);
	return p;
}

/* --- records --- */

static void on_mmap(struct host *h, const struct sideband_event *e)
{
	struct process *p = find_alive(h, e->pid);
	struct str name = e->name;
	bool deleted;

	if (!p || e->time_ns < p->scanned_ns || (p->pub.flags & PROCESS_KERNEL))
		return;
	enum procfs_name kind = procfs_name_kind(&name, &deleted);
	uint64_t end_addr;
	if (kind == PROCFS_VSYSCALL || __builtin_add_overflow(e->addr, e->length, &end_addr))
		return;
	struct map m = { .start = e->addr, .end = end_addr, .offset = kind == PROCFS_VDSO ? 0 : e->offset };
	struct backing_key key = { .dev = (uint64_t)e->dev_major << 32 | e->dev_minor, .inode = e->inode, .generation = e->inode_generation };

	/* A JIT makes the same pages writable and executable in turns. */
	if ((kind != PROCFS_FILE || !e->inode) && kind != PROCFS_VDSO && p->maps && maps_has_anonymous(p->maps, m.start, m.end))
		return;
	m.backing = backing_of(h, p, &m, kind, key, name, deleted, e->time_ns);
	add_mapping(h, p, &m);
}

static void on_fork(struct host *h, const struct sideband_event *e)
{
	struct process *parent = find(h, e->parent_pid), *p = find(h, e->pid);

	if (e->pid == e->parent_pid) {
		if (p && !p->pub.end_ns && e->time_ns >= p->counted_ns)
			p->threads++;
		return;
	}
	if (p && !p->pub.end_ns && (e->time_ns < p->scanned_ns || e->time_ns < p->born_ns))
		return;
	bool selected = !h->config.only_selected || (parent && parent->pub.selected && h->config.follow_forks);
	if (!selected)
		return;
	p = process_new(h, e->pid, e->time_ns);
	if (!p)
		return;
	/* process_new may have forgotten the parent. */
	parent = find(h, e->parent_pid);
	p->pub.parent_pid = e->parent_pid;
	p->pub.selected = true;
	uint64_t at = e->time_ns + h->boot_offset_ns;
	p->pub.start_ns = at - at % START_TICK_NS;
	p->start_guessed = true;
	if (!parent) {
		p->wants_maps = true;
		mark_dirty(h, p);
		return;
	}
	p->pub.uid = parent->pub.uid;
	p->pub.flags |= parent->pub.flags & PROCESS_KERNEL;
	memcpy(p->pub.comm, parent->pub.comm, sizeof(p->pub.comm));
	p->pub.comm_len = parent->pub.comm_len;
	p->exe = backing_get(parent->exe);
	p->wants_maps = parent->wants_maps || (!parent->maps && !(parent->pub.flags & PROCESS_KERNEL));
	if (parent->maps)
		p->maps = maps_get(parent->maps);
	mark_dirty(h, p);
}

static void on_exec(struct host *h, const struct sideband_event *e)
{
	struct process *old = find(h, e->pid);

	if (!old || e->time_ns < old->scanned_ns)
		return;
	/* What is kept of it; the object may go. */
	struct host_process was = old->pub;
	bool guessed = old->start_guessed;
	uint64_t fork_ns = old->fork_ns;
	struct process *p = process_new(h, e->pid, e->time_ns);
	if (!p) {
		tables_process_drop(h->config.tables, e->pid);
		return;
	}
	p->pub.parent_pid = was.parent_pid;
	p->pub.uid = was.uid;
	p->pub.execs = was.execs + 1;
	p->pub.start_ns = was.start_ns;
	p->pub.selected = was.selected;
	p->start_guessed = guessed;
	p->fork_ns = fork_ns;
	set_comm(&p->pub, e->name.data, e->name.len);
	h->figures.processes_seen--;
	h->figures.execs_seen++;
	mark_dirty(h, p);
}

/* Whether others are left is asked of /proc in a while. */
static void leader_goes(struct host *h, struct process *p)
{
	if (p->leader_gone)
		return;
	p->leader_gone = true;
	DL_APPEND2(h->leaderless, p, leader_prev, leader_next);
}

static void on_exit_record(struct host *h, const struct sideband_event *e)
{
	struct process *p = find_alive(h, e->pid);
	struct thread *t;

	if (!p || e->time_ns < p->born_ns)
		return;
	struct {
		uint32_t process, tid;
	} key = { .process = p->pub.id, .tid = e->tid };
	HASH_FIND(hh, h->threads, &key, sizeof(key), t);
	if (t)
		t->end_ns = e->time_ns;
	/* An exit's record comes before /proc shows it. */
	if (e->time_ns < p->counted_ns) {
		if (e->tid == e->pid)
			leader_goes(h, p);
		return;
	}
	if (p->threads)
		p->threads--;
	if (!p->threads && (e->tid == e->pid || p->leader_gone)) {
		end(h, p, e->time_ns);
	} else if (e->tid == e->pid) {
		leader_goes(h, p);
	} else if (!p->threads) {
		/* The leader lives: there were more threads than we heard of. */
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
		p = find_alive(h, e->pid);
		if (e->exec)
			on_exec(h, e);
		else if (p && e->tid == e->pid && e->time_ns >= p->scanned_ns)
			set_comm(&p->pub, e->name.data, e->name.len);
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

static struct thread *thread_of(struct host *h, struct process *p, const struct sample *s)
{
	struct {
		uint32_t process, tid;
	} key = { .process = p->pub.id, .tid = s->tid };
	uint8_t len = (uint8_t)strnlen(s->comm, sizeof(s->comm));
	struct thread *t;

	HASH_FIND(hh, h->threads, &key, sizeof(key), t);
	if (t && (t->pub.comm_len != len || memcmp(t->pub.comm, s->comm, len) != 0 || (t->end_ns && s->time_ns > t->end_ns && s->tid != s->pid))) {
		thread_free(h, t);
		t = NULL;
	}
	if (t) {
		if (s->time_ns > t->last_ns + THREAD_IDLE_NS / 16) {
			t->last_ns = s->time_ns;
			DL_DELETE(h->thread_lru, t);
			DL_APPEND(h->thread_lru, t);
		}
		return t;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->pub = (struct host_thread){ .id = ++h->next_thread, .tid = s->tid, .process = &p->pub, .comm_len = len };
	memcpy(t->pub.comm, s->comm, len);
	t->key.process = key.process;
	t->key.tid = key.tid;
	t->last_ns = s->time_ns;
	HASH_ADD(hh, h->threads, key, sizeof(t->key), t);
	DL_APPEND(h->thread_lru, t);
	DL_APPEND2(p->thread_list, t, of_prev, of_next);
	h->thread_count++;
	return t;
}

/* Is this the process that the sample is of, for all that is known of its start? What was guessed is set right. */
static bool start_agrees(struct host *h, struct process *p, const struct sample *s)
{
	if (p->pub.start_ns == s->start_ns)
		return true;
	/* A child's first sample comes after the record of its fork, so an older one is of what the pid was before. */
	if (!p->start_guessed || s->time_ns < p->fork_ns || s->start_ns > p->pub.start_ns ||
	    p->pub.start_ns - s->start_ns > 100 * START_TICK_NS)
		return false;
	p->pub.start_ns = s->start_ns;
	p->start_guessed = false;
	mark_dirty(h, p);
	return true;
}

/* The process that was there at the sample's time. */
static struct process *process_at(struct host *h, const struct sample *s)
{
	struct process *p = find(h, s->pid), *fits = NULL;

	for (; p; p = p->older) {
		if (!start_agrees(h, p, s))
			continue;
		fits = p;
		if (p->born_ns <= s->time_ns)
			break;
	}
	return fits;
}

/* A process that is heard of for the first time, by this sample. */
static struct process *process_from(struct host *h, const struct sample *s)
{
	struct procfs_stat st;
	struct process *newest = find(h, s->pid), *p;

	if (newest && newest->pub.start_ns > s->start_ns) {
		p = process_behind(h, newest, s->time_ns);
	} else {
		bool there = !(s->flags & SAMPLE_KERNEL_THREAD) && procfs_read_stat(h->proc, s->pid, &st) == 0 && st.start_ns == s->start_ns;

		p = there ? process_read(h, s->pid, true) : NULL;
		if (p)
			return p;
		p = process_new(h, s->pid, 0);
	}
	if (!p)
		return NULL;
	p->pub.parent_pid = s->parent_pid;
	p->pub.start_ns = s->start_ns;
	p->pub.selected = true;
	p->described = true;
	if (s->flags & SAMPLE_KERNEL_THREAD)
		p->pub.flags |= PROCESS_KERNEL;
	set_comm(&p->pub, s->comm, strnlen(s->comm, sizeof(s->comm)));
	p->scanned_ns = s->time_ns;
	/* It is gone already, or its pid is another's by now. */
	if (!(s->flags & SAMPLE_KERNEL_THREAD))
		end(h, p, s->time_ns);
	return p;
}

int host_sample(struct host *h, const struct sample *s, struct host_sample_ref *ret)
{
	struct process *p = process_at(h, s);

	if (!p)
		p = process_from(h, s);
	if (!p)
		return -ENOBUFS;
	describe(h, p);
	if (p->exe && p->exe->state == BACKING_READY)
		p->pub.exe = &p->exe->file->pub;
	struct thread *t = thread_of(h, p, s);
	if (!t)
		return -ENOMEM;
	ret->process = &p->pub;
	ret->thread = &t->pub;
	return 0;
}

/* --- publishing --- */

/* A fork's record comes a moment after the start it speaks of: near the edge of a tick only /proc knows on which side that was. */
static void check_start(struct host *h, struct process *p)
{
	struct procfs_stat st;

	if (!p->start_guessed || (p->fork_ns + h->boot_offset_ns) % START_TICK_NS > GUESS_SAFE_NS)
		return;
	if (procfs_read_stat(h->proc, p->pub.pid, &st) == 0 && st.start_ns <= p->pub.start_ns) {
		p->pub.start_ns = st.start_ns;
		p->start_guessed = false;
	}
}

/* The mappings of p as the tables want them, in h->publish. How many, or -ENOMEM. */
static ssize_t make_publish(struct host *h, struct process *p, uint32_t *ret_left_out)
{
	size_t n = 0;

	*ret_left_out = 0;
	if (!p->maps)
		return 0;
	if (h->publish_cap < p->maps->len) {
		struct tables_mapping *to = reallocarray(NULL, p->maps->len, sizeof(*to));

		if (!to)
			return -ENOMEM;
		free(h->publish);
		h->publish = to;
		h->publish_cap = p->maps->len;
	}
	for (uint32_t i = 0; i < p->maps->len; i++) {
		const struct map *m = &p->maps->at[i];
		uint16_t slot = 0;

		if (m->backing) {
			if (m->backing->state != BACKING_READY && m->backing->state != BACKING_FAILED) {
				(*ret_left_out)++;
				continue;
			}
			slot = m->backing->file ? m->backing->file->pub.slot : 0;
		}
		struct tables_mapping *last = n ? &h->publish[n - 1] : NULL;
		if (last && last->end == m->start && last->slot == slot && (!slot || last->offset + (last->end - last->start) == m->offset))
			last->end = m->end;
		else
			h->publish[n++] = (struct tables_mapping){ .start = m->start, .end = m->end, .offset = m->offset, .slot = slot };
	}
	return (ssize_t)n;
}

ssize_t host_mappings(struct host *h, struct host_process *of, const struct tables_mapping **ret, bool *ret_whole)
{
	struct process *p = (struct process *)of;
	uint32_t left_out;

	_Static_assert(offsetof(struct process, pub) == 0, "one is the head of the other");
	settle(h, p);
	ssize_t n = make_publish(h, p, &left_out);
	*ret = h->publish;
	*ret_whole = p->maps && !left_out && !p->wants_maps;
	return n;
}

/* True: it is done with; false: again later. */
static bool publish(struct host *h, struct process *p, uint64_t now_ns)
{
	uint32_t left_out, generation;

	if (p->pub.flags & PROCESS_KERNEL)
		return true;
	if (now_ns < p->publish_ns)
		return false;
	if (p->wants_maps && now_ns >= p->rescan_ns)
		(void)read_maps(h, p);
	if (!p->changed)
		return !p->wants_maps;
	settle(h, p);
	ssize_t n = make_publish(h, p, &left_out);
	if (n < 0)
		return false;
	if (left_out && !p->unresolved) {
		p->unresolved = true;
		p->unresolved_next = h->unresolved;
		h->unresolved = p;
	}
	/* Nothing of use yet: after an exec the vDSO is known first. */
	if (!p->maps || (left_out && left_out >= p->maps->len - 1 && !p->pub.generation))
		return true;
	check_start(h, p);
	int r = tables_process_set(h->config.tables, p->pub.pid, p->pub.start_ns, h->publish, (size_t)n, p->pub.selected, &generation);
	if (r) {
		h->figures.limit += r == TABLES_FULL;
		p->publish_ns = now_ns + FULL_RETRY_NS;
		return false;
	}
	h->figures.publishes++;
	p->changed = false;
	p->pub.generation = generation;
	p->publish_ns = now_ns + (uint64_t)p->maps->len * PUBLISH_NS_PER_MAPPING;
	/* Much has been mapped since all was read, and what was unmapped is never told. */
	if (p->maps->len > 2 * p->scanned_len + NOTED_MAX)
		p->wants_maps = true;
	return !p->wants_maps;
}

static void publish_all(struct host *h, uint64_t now_ns)
{
	struct process *p;

	if (h->resolved) {
		h->resolved = false;
		while (h->unresolved) {
			p = h->unresolved;
			h->unresolved = p->unresolved_next;
			p->unresolved = false;
			mark_dirty(h, p);
		}
	}
	struct process *list = h->dirty;
	h->dirty = NULL;
	while (list) {
		p = list;
		list = p->dirty_next;
		p->dirty = false;
		if (!publish(h, p, now_ns))
			mark_dirty(h, p);
	}
}

/* --- now and then --- */

static void check_leaderless(struct host *h, uint64_t now_ns)
{
	struct process *p, *next;

	if (!h->leaderless || now_ns < h->leader_check_ns)
		return;
	h->leader_check_ns = now_ns + LEADER_CHECK_NS;
	DL_FOREACH_SAFE2(h->leaderless, p, next, leader_next) {
		struct procfs_stat st;
		int r = procfs_read_stat(h->proc, p->pub.pid, &st);

		if (r < 0 || (r == 0 && (st.start_ns > p->pub.start_ns || st.state == 'X' || (st.state == 'Z' && st.threads <= 1))))
			end(h, p, now_ns);
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

/* Whether a pid is still what is known of it. */
static void resync_one(struct host *h, uint32_t pid, uint64_t now_ns)
{
	struct process *p = find_alive(h, pid);
	struct procfs_stat st;
	uint64_t stat_ns = clock_mono_ns();
	int r = procfs_read_stat(h->proc, pid, &st);
	bool there = r == 0 && st.state != 'X' && !(st.state == 'Z' && st.threads <= 1);

	if (p) {
		bool same = there && (st.start_ns == p->pub.start_ns || (p->start_guessed && st.start_ns < p->pub.start_ns));

		if (same) {
			p->threads = st.threads;
			p->counted_ns = stat_ns;
			p->pub.start_ns = st.start_ns;
			p->start_guessed = false;
			if (!(p->pub.flags & PROCESS_KERNEL)) {
				p->wants_maps = true;
				mark_dirty(h, p);
			}
			return;
		}
		end(h, p, now_ns);
	}
	if (there && !h->config.only_selected)
		(void)process_read(h, pid, true);
}

/* Records were lost: all is looked at again, some at a time. */
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
		struct process *p = find_alive(h, pid);

		/* Known ones come twice, from us and from /proc. */
		if (!p || p->scanned_ns < h->resync_ns - RESYNC_NS)
			resync_one(h, pid, now_ns);
	}
}

static void expire(struct host *h, uint64_t now_ns)
{
	while (h->retired && now_ns > h->retired->pub.end_ns + HOST_GRACE_NS)
		forget(h, h->retired);
	while (h->thread_lru && now_ns > h->thread_lru->last_ns + THREAD_IDLE_NS)
		thread_free(h, h->thread_lru);
}

void host_tick(struct host *h, uint64_t now_ns)
{
	if (now_ns > h->offset_ns + RESCAN_NS) {
		h->offset_ns = now_ns;
		h->boot_offset_ns = clock_ns(CLOCK_BOOTTIME) - clock_mono_ns();
	}
	resync(h, now_ns);
	check_leaderless(h, now_ns);
	files_tick(h->files, now_ns);
	publish_all(h, now_ns);
	expire(h, now_ns);
}

bool host_settled(const struct host *h)
{
	return files_settled(h->files) && !h->dirty && !h->resolved && !h->resync && h->resync_at == h->resync_len;
}

/* --- what files.c asks --- */

static bool maps_has(const struct map *at, size_t n, const struct backing *b, const struct file *f, struct mapper *ret)
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

static struct mapper find_mapper(void *ctx, const struct backing *b, const struct file *f, uint32_t not_process)
{
	struct host *h = ctx;
	struct process *p, *next;
	struct mapper m = { 0 };

	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns || !p->maps || p->pub.id == not_process)
			continue;
		if (maps_has(p->maps->at, p->maps->len, b, f, &m) || maps_has(p->maps->noted, p->maps->noted_len, b, f, &m)) {
			m.process_id = p->pub.id;
			m.pid = p->pub.pid;
			break;
		}
	}
	return m;
}

static bool is_mapped(void *ctx, const struct backing *b)
{
	struct process *p = find_alive(ctx, b->asker.pid);
	struct mapper m;

	if (!p || p->pub.id != b->asker.process_id || !p->maps)
		return false;
	const struct map *at = maps_find(p->maps, b->asker.start);
	return (at && at->backing == b) || maps_has(p->maps->noted, p->maps->noted_len, b, NULL, &m);
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
		.tables = c->tables, .opener = c->opener, .needs_rows = c->file_needs_rows, .rows_ctx = c->ctx, .find = find_mapper, .mapped = is_mapped,
		.resolved = on_resolved, .ctx = h,
	};

	if (!h)
		return -ENOMEM;
	h->config = *c;
	h->boot_offset_ns = clock_ns(CLOCK_BOOTTIME) - clock_mono_ns();
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
			retire(h, p, 1);
	}
	while (h->retired)
		forget(h, h->retired);
	files_free(h->files);
	if (h->proc >= 0)
		close(h->proc);
	free(h->publish);
	free(h->resync_pids);
	free(h);
}

int host_select(struct host *h, uint32_t pid)
{
	struct process *p = find_alive(h, pid);

	if (!p)
		p = process_read(h, pid, true);
	if (!p)
		return -ESRCH;
	p->pub.selected = true;
	mark_dirty(h, p);
	return 0;
}

void host_mark_self(struct host *h, uint32_t pid)
{
	struct process *p = find_alive(h, pid);

	if (p)
		p->pub.flags |= PROCESS_SELF;
	if (h->self_count < MAX_SELF)
		h->self[h->self_count++] = pid;
}

static void scan_pid(void *ctx, uint32_t pid)
{
	struct host *h = ctx;

	if (!find_alive(h, pid))
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

int host_open(struct host *h, struct host_file *f, opener_done *done, void *ctx)
{
	return files_open(h->files, (struct file *)f, done, ctx);
}

int host_open_debug(struct host *h, struct host_file *f, struct span build_id, struct str name, opener_done *done, void *ctx)
{
	struct mapper m = find_mapper(h, NULL, (struct file *)f, 0);
	struct opener_request q = {
		.kind = name.len ? OPENER_DEBUGLINK : OPENER_BUILD_ID, .pid = m.pid, .path = { .data = f->path, .len = f->path_len }, .name = name,
		.build_id = build_id,
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
			ret->bytes += ((uint64_t)p->maps->cap + p->maps->noted_cap) * sizeof(struct map) / p->maps->refs;
	}
	ret->threads = h->thread_count;
	ret->files = f.files;
	ret->open_fds = f.fds;
	ret->bytes += h->process_count * sizeof(struct process) + h->thread_count * sizeof(struct thread) +
		      f.files * (sizeof(struct file) + sizeof(struct backing) + 2 * 64) + h->publish_cap * sizeof(*h->publish);
	ret->opens = f.opens;
	ret->opens_spared = f.spared;
	ret->opens_failed = f.failed;
	ret->limit += f.limit;
}

void host_each_mapping(struct host *h, uint32_t pid, void (*fn)(void *ctx, const struct host_process *p, uint64_t start, uint64_t end, uint64_t offset,
								const struct host_file *file, bool pending), void *ctx)
{
	struct process *p, *next;

	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns || (pid && p->pub.pid != pid))
			continue;
		settle(h, p);
		for (uint32_t i = 0; p->maps && i < p->maps->len; i++) {
			const struct map *m = &p->maps->at[i];
			bool ready = m->backing && m->backing->state == BACKING_READY;

			fn(ctx, &p->pub, m->start, m->end, m->offset, ready ? &m->backing->file->pub : NULL,
			   m->backing && !ready && m->backing->state != BACKING_FAILED);
		}
	}
}
