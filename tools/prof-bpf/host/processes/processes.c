/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/tables/hashtable.h"
#include <utlist.h>
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/processes/reach.h"

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

bool process_says_gone(int r)
{
	return r == -ENOENT || r == -ESRCH;
}

void process_mark_dirty(struct host *h, struct process *p)
{
	p->changed = true;
	p->changed_at = ++h->changes;
	if (p->dirty || p->pub.end_ns)
		return;
	p->dirty = true;
	DL_PREPEND2(h->dirty, p, dirty_prev, dirty_next);
}

static void dirty_remove(struct host *h, struct process *p)
{
	if (p->waits)
		DL_DELETE2(h->waiting, p, dirty_prev, dirty_next);
	else if (p->dirty)
		DL_DELETE2(h->dirty, p, dirty_prev, dirty_next);
	p->dirty = p->waits = false;
	if (p->unresolved)
		DL_DELETE2(h->unresolved, p, unresolved_prev, unresolved_next);
	p->unresolved = false;
}

static void thread_remove(struct host *h, struct process_thread *t)
{
	struct process *p = (struct process *)t->pub.process;

	while (t->titled) {
		struct process_thread *of = t->titled;

		if (h->config.thread_gone)
			h->config.thread_gone(h->config.ctx, &of->pub);
		thread_remove(h, of);
	}
	if (t->of) {
		struct process_thread **at = &t->of->titled;

		while (*at != t)
			at = &(*at)->more;
		*at = t->more;
	} else {
		HASH_DEL(h->threads, t);
	}
	DL_DELETE(h->thread_lru, t);
	DL_DELETE2(p->thread_list, t, of_prev, of_next);
	h->thread_count--;
	free(t->title);
	free(t->pub.title);
	free(t);
}

void process_thread_free(struct host *h, struct process_thread *t)
{
	if (h->config.thread_gone)
		h->config.thread_gone(h->config.ctx, &t->pub);
	thread_remove(h, t);
}

static void leaderless_add(struct host *h, struct process *p, unsigned doubled, uint64_t now_ns)
{
	p->leader_doubled = (uint8_t)doubled;
	p->leader_look_ns = now_ns + (PROCESSES_LEADER_NS << doubled);
	DL_APPEND2(h->leaderless[doubled], p, leader_prev, leader_next);
}

void process_check_leader(struct host *h, struct process *p, unsigned doubled, uint64_t now_ns)
{
	DL_DELETE2(h->leaderless[p->leader_doubled], p, leader_prev, leader_next);
	leaderless_add(h, p, doubled, now_ns);
}

void process_lacks_leader(struct host *h, struct process *p, uint64_t now_ns)
{
	if (!p->leader_gone)
		leaderless_add(h, p, 0, now_ns);
	else if (p->leader_doubled)
		process_check_leader(h, p, 0, now_ns);
	p->leader_gone = true;
}

void process_keeps_leader(struct host *h, struct process *p)
{
	if (p->leader_gone)
		DL_DELETE2(h->leaderless[p->leader_doubled], p, leader_prev, leader_next);
	p->leader_gone = false;
}

void process_drop_reading(struct process_reading *r)
{
	maps_put(r->maps);
	maps_put(r->since);
	r->maps = r->since = NULL;
}

void process_cancel_reading(struct process *p)
{
	if (!p->reading)
		return;
	process_drop_reading(p->reading);
	if (p->reading->host)
		p->changed_at = ++p->reading->host->changes;
	p->reading->process = NULL;
	p->reading = NULL;
}

static void drop_reach(struct host *h, struct process *p)
{
	if (!p->reach)
		return;
	owner_release(h->owners, p->reach_by, OWNER_REACH, reach_bytes(p->reach));
	owner_put(h->owners, p->reach_by);
	p->reach_by = NULL;
	reach_free(p->reach);
	p->reach = NULL;
}

void process_charge_entry(struct host *h, struct process *p)
{
	const bool has = !p->pub.end_ns && (p->entered || p->pub.generation);

	if (has && !p->placed)
		owner_hold(h->owners, p->pub.owner, OWNER_ENTRIES, 1);
	else if (!has && p->placed)
		owner_release(h->owners, p->pub.owner, OWNER_ENTRIES, 1);
	p->placed = has;
}

/* The mappings also stay, for deferred walks. */
void process_retire(struct host *h, struct process *p, uint64_t now_ns)
{
	p->pub.end_ns = now_ns ? now_ns : 1;
	process_charge_entry(h, p);
	process_cancel_reading(p);
	h->living--;
	drop_reach(h, p);
	dirty_remove(h, p);
	process_keeps_leader(h, p);
	DL_APPEND(h->retired, p);
	h->resting = h->resting ? h->resting : p;
}

static void drop_attributes(struct host *h, struct process *p)
{
	struct process_attributes *a = p->attributes;

	if (p->attributes_reading)
		p->attributes_reading->process = NULL;
	p->attributes_reading = NULL;
	p->attributes = NULL;
	if (!a)
		return;
	owner_release(h->owners, a->owner, OWNER_ATTRIBUTES, a->bytes);
	owner_put(h->owners, a->owner);
	free(a);
}

void process_forget(struct host *h, struct process *p)
{
	struct process *newest = process_find(h, p->pub.pid);

	process_find_exe(p);
	if (h->config.process_gone)
		h->config.process_gone(h->config.ctx, &p->pub);
	if (h->resting == p)
		h->resting = p->next;
	DL_DELETE(h->retired, p);
	maps_put(p->maps);
	p->maps = NULL;
	displaced_free(p->displaced);
	drop_reach(h, p);
	drop_attributes(h, p);
	if (newest == p) {
		HASH_DEL(h->by_pid, p);
		if (p->older)
			HASH_ADD(hh, h->by_pid, pub.pid, sizeof(p->pub.pid), p->older);
	} else {
		p->newer->older = p->older;
	}
	if (p->older)
		p->older->newer = p->newer;
	while (p->thread_list)
		thread_remove(h, p->thread_list);
	cgroups_put(&h->cgroups, p->pub.cgroup);
	files_backing_put(p->exe);
	owner_release(h->owners, p->pub.owner, OWNER_PROCESSES, 1);
	owner_put(h->owners, p->pub.owner);
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

void process_set_owner(struct host *h, struct process *p, struct owner_key key)
{
	struct owner *was = p->pub.owner;

	if (was && was->key.uid == key.uid && was->key.container == key.container)
		return;
	p->pub.owner = owners_get(h->owners, key);
	owner_hold(h->owners, p->pub.owner, OWNER_PROCESSES, 1);
	owner_hold(h->owners, p->pub.owner, OWNER_ENTRIES, p->placed);
	if (was) {
		owner_release(h->owners, was, OWNER_PROCESSES, 1);
		owner_release(h->owners, was, OWNER_ENTRIES, p->placed);
	}
	owner_put(h->owners, was);
}

void process_set_cgroup(struct host *h, struct process *p, const struct str *path,
			uint64_t kernel_id)
{
	struct host_cgroup *was = p->pub.cgroup;

	p->pub.cgroup = path ? cgroups_get(&h->cgroups, *path, kernel_id) : NULL;
	p->pub.changed |= p->pub.cgroup != was;
	cgroups_put(&h->cgroups, was);
}

void process_find_exe(struct process *p)
{
	if (p->pub.exe || !p->exe || p->exe->state != FILES_BACKING_READY)
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

struct files_backing *process_backing(struct host *h, struct process *p, const struct map *m,
				      enum procfs_name kind, struct files_backing_key key,
				      struct str path, bool deleted, uint64_t now_ns)
{
	struct files_mapper asker = {
		.process_id = p->pub.id,
		.pid = p->pub.pid,
		.owner = p->pub.owner,
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

void process_settle(struct host *h, struct process *p)
{
	if (!p->maps)
		return;
	(void)maps_settle(p->maps, HOST_MAX_MAPPINGS, &h->figures.limit);
	maps_charge(p->maps, h->owners, p->pub.owner);
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
	const uint32_t lost = displaced_note(&p->displaced, was, by, since_ns, time_ns,
					     p->pub.last_generation);

	if (lost)
		process_forget_generations(p, lost);
}

void process_describe(struct host *h, struct process *p, uint32_t uid)
{
	if (p->described)
		return;
	p->described = true;
	p->pub.uid = uid;
	for (size_t i = 0; i < h->config.self_uid_count; i++) {
		if (h->config.self_uids[i] == uid)
			p->pub.flags |= MSG_PROCESS_SELF;
	}
}

/* --- threads --- */

bool process_may_rename(struct process *p, uint64_t now_ns)
{
	/* Time is shifted by what all renames take, so that none is before zero soon after boot. */
	if (p->renames_ns < now_ns)
		p->renames_ns = now_ns;
	if (p->renames_ns + PROCESSES_RENAME_NS > now_ns + PROCESSES_RENAMES * PROCESSES_RENAME_NS)
		return false;
	p->renames_ns += PROCESSES_RENAME_NS;
	return true;
}

/* Whether the sample belongs to another thread, which got the same id later. */
static bool is_another(const struct process_thread *t, const struct sample *s)
{
	return t->end_ns && s->time_ns > t->end_ns && s->tid != s->pid;
}

void process_thread_touch(struct host *h, struct process_thread *t, uint64_t time_ns)
{
	if (time_ns <= t->last_ns + PROCESSES_THREAD_IDLE_NS / 16)
		return;
	t->last_ns = time_ns;
	DL_DELETE(h->thread_lru, t);
	DL_APPEND(h->thread_lru, t);
}

struct process_thread *process_thread_of(struct host *h, struct process *p, const struct sample *s)
{
	struct {
		uint32_t process, tid;
	} key = { .process = p->pub.id, .tid = s->tid };
	uint8_t len = (uint8_t)strnlen(s->comm, sizeof(s->comm));
	struct record_title *title = NULL;
	struct process_thread *t;

	HASH_FIND(hh, h->threads, &key, sizeof(key), t);
	if (t && (is_another(t, s) ||
		  ((t->pub.comm_len != len || memcmp(t->pub.comm, s->comm, len) != 0) &&
		   process_may_rename(p, s->time_ns)))) {
		if (!is_another(t, s)) {
			title = t->title;
			t->title = NULL;
		}
		process_thread_free(h, t);
		t = NULL;
	}
	if (t) {
		process_thread_touch(h, t, s->time_ns);
		return t;
	}
	if (h->thread_count >= HOST_MAX_THREADS)
		process_thread_free(h, h->thread_lru);
	t = calloc(1, sizeof(*t));
	if (!t) {
		free(title);
		return NULL;
	}
	t->title = title;
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
