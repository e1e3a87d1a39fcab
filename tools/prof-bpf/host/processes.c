// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>
#include <utlist.h>
#include "common/base/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/processes.h"

/* --- processes --- */

struct process *process_find(struct host *h, uint32_t pid)
{
	struct process *p;

	HASH_FIND(hh, h->by_pid, &pid, sizeof(pid), p);
	return p;
}

struct process *process_find_alive(struct host *h, uint32_t pid)
{
	struct process *p = process_find(h, pid);

	return p && !p->pub.end_ns ? p : NULL;
}

void process_mark_dirty(struct host *h, struct process *p)
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

void thread_free(struct host *h, struct thread *t)
{
	struct process *p = (struct process *)t->pub.process;

	HASH_DEL(h->threads, t);
	DL_DELETE(h->thread_lru, t);
	DL_DELETE2(p->thread_list, t, of_prev, of_next);
	h->thread_count--;
	free(t);
}

void process_lacks_leader(struct host *h, struct process *p)
{
	if (p->leader_gone)
		return;
	p->leader_gone = true;
	DL_APPEND2(h->leaderless, p, leader_prev, leader_next);
}

void process_keeps_leader(struct host *h, struct process *p)
{
	if (p->leader_gone)
		DL_DELETE2(h->leaderless, p, leader_prev, leader_next);
	p->leader_gone = false;
}

/* The mappings stay too, for the deferred walk. */
void process_retire(struct host *h, struct process *p, uint64_t now_ns)
{
	p->pub.end_ns = now_ns ? now_ns : 1;
	dirty_remove(h, p);
	process_keeps_leader(h, p);
	DL_APPEND(h->retired, p);
}

void process_forget(struct host *h, struct process *p)
{
	struct process *newest = process_find(h, p->pub.pid);
	struct thread *t, *next;

	process_find_exe(p);
	if (h->config.process_gone)
		h->config.process_gone(h->config.ctx, &p->pub);
	DL_DELETE(h->retired, p);
	maps_put(p->maps);
	p->maps = NULL;
	displaced_free(p->displaced);
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

void process_end(struct host *h, struct process *p, uint64_t now_ns)
{
	if (p->pub.end_ns)
		return;
	process_retire(h, p, now_ns);
	tables_process_drop(h->config.tables, p->pub.pid);
}

struct process *process_new(struct host *h, uint32_t pid, uint64_t born_ns)
{
	struct process *older = process_find(h, pid), *p;

	if (older && !older->pub.end_ns)
		process_retire(h, older, born_ns ? born_ns : clock_mono_ns());
	if (h->process_count >= HOST_MAX_PROCESSES && h->retired) {
		if (h->retired == older)
			older = older->older;
		process_forget(h, h->retired);
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

struct process *process_behind(struct host *h, struct process *last, uint64_t end_ns)
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
	process_retire(h, p, end_ns);
	return p;
}

void process_find_exe(struct process *p)
{
	if (p->pub.exe || !p->exe || p->exe->state != BACKING_READY)
		return;
	p->pub.exe = &p->exe->file->pub;
	p->pub.changed = true;
}

void process_set_comm(struct host_process *p, const char *comm, size_t len)
{
	p->changed = true;
	p->comm_len = (uint8_t)(len > sizeof(p->comm) ? sizeof(p->comm) : len);
	memset(p->comm, 0, sizeof(p->comm));
	memcpy(p->comm, comm, p->comm_len);
}

/* --- mappings --- */

struct backing *process_backing(struct host *h, struct process *p, const struct map *m,
				enum procfs_name kind, struct backing_key key, struct str path,
				bool deleted, uint64_t now_ns)
{
	struct mapper asker = {
		.process_id = p->pub.id,
		.pid = p->pub.pid,
		.parent_pid = p->pub.parent_pid,
		.start = m->start,
		.end = m->end,
	};

	if (kind == PROCFS_VDSO)
		return files_vdso(h->files, m->start, m->end);
	if (kind != PROCFS_FILE || !key.inode)
		return NULL;
	return files_backing(h->files, key, asker, path, deleted, now_ns);
}

/* Memory or descriptors are lacking: read its mappings later. */
static void read_later(struct host *h, struct process *p, uint64_t now_ns)
{
	p->wants_maps = true;
	p->rescan_ns = now_ns + PROCESSES_RESCAN_NS;
	process_mark_dirty(h, p);
}

void process_settle(struct host *h, struct process *p)
{
	if (p->maps)
		(void)maps_settle(p->maps, HOST_MAX_MAPPINGS, &h->figures.limit);
}

void process_forget_generations(struct process *p, uint32_t up_to)
{
	if (up_to == p->pub.last_generation)
		p->pub.first_generation = p->pub.last_generation = 0;
	else
		p->pub.first_generation = up_to == UINT32_MAX ? 1 : up_to + 1;
}

void process_note_displaced(struct process *p, const struct maps *was, const struct map *by,
			    uint64_t since_ns, uint64_t time_ns)
{
	uint32_t lost = 0;

	if (p->pub.last_generation)
		lost = displaced_note(&p->displaced, was, by, since_ns, time_ns,
				      p->pub.last_generation);
	if (lost)
		process_forget_generations(p, lost);
}

void process_add_mapping(struct host *h, struct process *p, const struct map *m)
{
	if (!p->maps)
		p->maps = maps_new();
	if (!p->maps) {
		backing_put(m->backing);
		read_later(h, p, clock_mono_ns());
		return;
	}
	if (m->backing && !p->exe && m->backing->path)
		p->exe = backing_get(m->backing);
	if (maps_add(&p->maps, m) == -ENOMEM)
		read_later(h, p, clock_mono_ns());
	if (p->maps->noted_len >= PROCESSES_NOTED_MAX && p->maps->noted_len >= p->maps->len / 2)
		process_settle(h, p);
	process_mark_dirty(h, p);
}

struct reading {
	struct host *host;
	struct process *process;
	struct maps *maps; /* being made */
	const struct maps *known;
	struct str exe;
	uint64_t now_ns;
	bool failed;
};

static void read_mapping(void *ctx, const struct procfs_mapping *from)
{
	struct reading *r = ctx;
	struct map m = { .start = from->start, .end = from->end, .offset = from->offset };
	struct backing_key key = { .dev = (uint64_t)from->dev_major << 32 | from->dev_minor,
				   .inode = from->inode };
	const struct map *known = r->known ? maps_find(r->known, from->start) : NULL;

	if (from->kind == PROCFS_VSYSCALL)
		return;
	if (from->kind == PROCFS_VDSO)
		m.offset = 0;
	if (known && known->backing && known->start == m.start && known->end == m.end &&
	    known->offset == m.offset && known->backing->key.dev == key.dev &&
	    known->backing->key.inode == key.inode && from->kind == PROCFS_FILE &&
	    known->backing->state != BACKING_FAILED)
		m.backing = backing_get(known->backing);
	else
		m.backing = process_backing(r->host, r->process, &m, from->kind, key, from->name,
					    from->deleted, r->now_ns);
	if (from->kind == PROCFS_FILE && str_eq(from->name, r->exe) && !r->process->exe)
		r->process->exe = backing_get(m.backing);
	r->failed |= maps_add(&r->maps, &m) != 0;
}

int process_read_maps(struct host *h, struct process *p)
{
	char link[32], exe[PATH_MAX];
	struct reading r = {
		.host = h, .process = p, .maps = maps_new(), .now_ns = clock_mono_ns()
	};

	p->wants_maps = false;
	if (!r.maps) {
		read_later(h, p, r.now_ns);
		return -ENOMEM;
	}
	process_settle(h, p);
	r.known = p->maps;
	snprintf(link, sizeof(link), "%u/exe", p->pub.pid);
	ssize_t n = readlinkat(h->proc, link, exe, sizeof(exe));
	r.exe = (struct str){ .data = exe, .len = n > 0 ? (uint32_t)n : 0 };
	n = procfs_read_maps(h->proc, p->pub.pid, HOST_MAX_MAPPINGS, read_mapping, &r);
	if (n < 0 || r.failed) {
		const bool lacks = n < 0 && opener_lacks_descriptors((int)n);

		maps_put(r.maps);
		h->figures.put_off += lacks;
		if (lacks || n >= 0 || n == -ENOMEM)
			read_later(h, p, r.now_ns);
		return n < 0 ? (int)n : -ENOMEM;
	}
	struct maps *was = p->maps;
	p->maps = r.maps;
	process_settle(h, p);
	/* The records that tell when these mappings began will be ignored now. */
	for (uint32_t i = 0; was && i < p->maps->len; i++)
		process_note_displaced(p, was, &p->maps->at[i], h->heard_ns, r.now_ns);
	maps_put(was);
	p->scanned_ns = r.now_ns;
	p->scanned_len = p->maps->len;
	p->rescan_ns = r.now_ns + PROCESSES_RESCAN_NS;
	h->figures.rescans++;
	process_mark_dirty(h, p);
	return 0;
}

void process_describe(struct host *h, struct process *p, uint32_t uid)
{
	if (p->described)
		return;
	p->described = true;
	p->pub.uid = uid;
	for (size_t i = 0; i < h->config.self_uid_count; i++) {
		if (h->config.self_uids[i] == uid)
			p->pub.flags |= PROCESS_SELF;
	}
}

struct process *process_read(struct host *h, uint32_t pid, bool selected)
{
	struct procfs_stat st;
	uint64_t now_ns = clock_mono_ns();

	if (procfs_read_stat(h->proc, pid, &st) != 0 || st.state == 'X' ||
	    (st.state == 'Z' && st.threads <= 1))
		return NULL;
	struct process *p = process_new(h, pid, 0);
	if (!p)
		return NULL;
	p->pub.parent_pid = st.parent_pid;
	p->pub.start_ns = st.start_ns;
	p->pub.selected = selected;
	p->pub.flags |= st.kernel ? PROCESS_KERNEL : 0;
	process_set_comm(&p->pub, st.comm, st.comm_len);
	p->threads = st.threads ? st.threads : 1;
	p->scanned_ns = p->counted_ns = now_ns;
	uint32_t uid;
	if (procfs_read_uid(h->proc, pid, &uid) == 0)
		process_describe(h, p, uid);
	if (!st.kernel)
		(void)process_read_maps(h, p);
	return p;
}

/* --- threads --- */

struct thread *thread_of(struct host *h, struct process *p, const struct sample *s)
{
	struct {
		uint32_t process, tid;
	} key = { .process = p->pub.id, .tid = s->tid };
	uint8_t len = (uint8_t)strnlen(s->comm, sizeof(s->comm));
	struct thread *t;

	HASH_FIND(hh, h->threads, &key, sizeof(key), t);
	if (t && (t->pub.comm_len != len || memcmp(t->pub.comm, s->comm, len) != 0 ||
		  (t->end_ns && s->time_ns > t->end_ns && s->tid != s->pid))) {
		thread_free(h, t);
		t = NULL;
	}
	if (t) {
		if (s->time_ns > t->last_ns + PROCESSES_THREAD_IDLE_NS / 16) {
			t->last_ns = s->time_ns;
			DL_DELETE(h->thread_lru, t);
			DL_APPEND(h->thread_lru, t);
		}
		return t;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->pub = (struct host_thread){
		.id = ++h->next_thread, .tid = s->tid, .process = &p->pub, .comm_len = len
	};
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
