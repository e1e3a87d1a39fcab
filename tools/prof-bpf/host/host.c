/* SPDX-License-Identifier: Apache-2.0 */
/* Combines what records (records.c), samples and /proc (reading.c, recheck.c) tell about
 * processes. */
#include "tools/prof-bpf/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/tables/hashtable.h"
#include <utlist.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/processes/titles.h"
#include "tools/prof-bpf/host/admission.h"
#include "tools/prof-bpf/host/memory/attributes.h"
#include "tools/prof-bpf/host/lookups/debugsearch.h"
#include "tools/prof-bpf/host/processes/entries.h"
#include "tools/prof-bpf/host/shares/eviction.h"
#include "tools/prof-bpf/host/shares/ledger.h"
#include "tools/prof-bpf/host/lookups/mappers.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/publish/publish.h"
#include "tools/prof-bpf/host/publish/reading.h"
#include "tools/prof-bpf/host/recheck.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/host/shares/places.h"
#include "tools/prof-bpf/host/shares/statuses.h"
#include "tools/prof-bpf/kernel/sideband.h"

/* Bytes that one process takes, with its name and its entries in hashes. */
#define PROCESS_BYTES 640
#define FILE_BYTES 512
/* Samples of an ended process may come this much later, and its files are still needed for them. */
#define REST_NS 300000000ull
#define CGROUP_INTERVAL_NS 1000000000ull /* the cgroup of a process is not read more often */
#define REST_MAPPINGS 64 /* at most so many are looked at, since any process may end */

/* --- samples --- */

/* Whether the sample can belong to this process, by the start time. Corrects a guessed start
 * time. */
static bool start_agrees(struct host *h, struct process *p, const struct sample *s)
{
	if (p->pub.start_ns == s->start_ns)
		return true;
	/* A child's first sample comes after the record of its fork. So an older sample belongs to
	 * an earlier process with this pid. */
	if (!p->start_guessed || s->time_ns < p->fork_ns || s->start_ns > p->pub.start_ns ||
	    p->pub.start_ns - s->start_ns > 100 * SAMPLE_START_TICK_NS + p->vague_ns)
		return false;
	p->pub.start_ns = s->start_ns;
	p->pub.changed = true;
	p->start_guessed = false;
	process_mark_dirty(h, p);
	return true;
}

/* Returns the process that existed at the sample's time. */
static struct process *process_at(struct host *h, const struct sample *s)
{
	struct process *p = process_find(h, s->pid), *fits = NULL;

	for (; p; p = p->older) {
		if (!start_agrees(h, p, s) || (p->unwanted && s->time_ns >= p->pub.end_ns))
			continue;
		fits = p;
		if (p->born_ns <= s->time_ns)
			break;
	}
	return fits;
}

/* Makes a process from the first sample that names it. */
static struct process *process_from(struct host *h, const struct sample *s)
{
	struct procfs_stat st;
	struct process *newest = process_find(h, s->pid), *p;
	/* An object exists from before its latest exec. */
	const uint32_t execs = newest && newest->pub.start_ns == s->start_ns ? newest->pub.execs + 1
									     : 0;
	bool unknown = false;

	if (newest && newest->pub.start_ns > s->start_ns) {
		p = admission_behind(h, newest, s->time_ns);
	} else {
		const int r = s->flags & SAMPLE_KERNEL_THREAD
				      ? -ESRCH
				      : procfs_read_thread_stat(h->proc, s->pid, &st);

		p = r == 0 && st.start_ns == s->start_ns ? admission_running(h, s->pid, true)
							 : NULL;
		if (p) {
			p->pub.execs = execs;
			return p;
		}
		unknown = r < 0 && !process_says_gone(r);
		p = admission_process(h, s->pid, 0);
	}
	if (!p)
		return NULL;
	p->pub.parent_pid = s->parent_pid;
	p->pub.start_ns = s->start_ns;
	p->pub.execs = execs;
	p->pub.selected = true;
	if (s->flags & SAMPLE_KERNEL_THREAD)
		p->pub.flags |= MSG_PROCESS_KERNEL;
	process_set_comm(&p->pub, s->comm, strnlen(s->comm, sizeof(s->comm)));
	p->scanned_ns = s->time_ns;
	/* The process has already ended, or another one has its pid. */
	if (!(s->flags & SAMPLE_KERNEL_THREAD) && !unknown)
		process_end(h, p, s->time_ns);
	h->resync |= unknown;
	return p;
}

/* Whether the pid still belongs to this process. So what was read before this is of it. */
static bool is_still(const struct host *h, const struct process *p)
{
	struct procfs_stat st;

	return procfs_read_thread_stat(h->proc, p->pub.pid, &st) == 0 &&
	       st.start_ns == p->pub.start_ns;
}

/* Reads what surrounds a sampled process: its cgroup, and its pid in its own namespace. It may move
 * to another cgroup later. The pid may have to wait for a later sample. */
static void read_surroundings(struct host *h, struct process *p, const struct sample *s)
{
	const bool in_namespace = s->owner_container != 0, wants_pid = p->lacks_inner_pid;
	const bool wants_cgroup = !p->cgroup_read_ns ||
				  (s->cgroup != p->cgroup &&
				   s->time_ns > p->cgroup_read_ns + CGROUP_INTERVAL_NS);
	char text[PROCFS_CGROUP_MAX];
	struct procfs_ids ids = { 0 };
	struct str path = { 0 };
	bool unified = false, has_path = false;
	int r = 0;

	if (p->pub.end_ns || p->pub.flags & MSG_PROCESS_KERNEL || (!wants_pid && !wants_cgroup))
		return;
	if (wants_pid && in_namespace)
		r = statuses_read_ids(h, p->pub.owner, p->pub.pid, &ids);
	if (wants_cgroup) {
		has_path = procfs_read_cgroup(h->proc, p->pub.pid, text, &path, &unified) == 0;
		p->cgroup = s->cgroup;
		p->cgroup_read_ns = s->time_ns;
	}
	p->lacks_inner_pid = r == -EBUSY;
	if (!is_still(h, p))
		return;
	if (wants_cgroup)
		process_set_cgroup(h, p, has_path ? &path : NULL, unified ? s->cgroup : 0);
	if (wants_pid && !p->lacks_inner_pid) {
		p->pub.inner_pid = !in_namespace ? p->pub.pid : r == 0 ? ids.inner_pid : 0;
		p->pub.changed |= p->pub.inner_pid != 0;
	}
}

int host_sample(struct host *h, const struct sample *s, struct host_sample_ref *ret)
{
	struct process *p = process_at(h, s);

	if (!p)
		p = process_from(h, s);
	if (!p)
		return -ENOBUFS;
	process_describe(h, p, s->uid);
	process_set_owner(
		h, p, (struct owner_key){ .uid = s->owner_uid, .container = s->owner_container });
	if (s->time_ns > p->sampled_ns)
		p->sampled_ns = s->time_ns;
	if (p->leader_gone)
		process_lacks_leader(h, p, s->time_ns);
	if (!p->sampled) {
		p->sampled = true;
		p->wants_maps |= p->dropped;
		p->dropped = false;
		process_mark_dirty(h, p);
		p->pub.host_pid = s->host_pid;
		p->lacks_inner_pid = true;
		attributes_want(h, p);
	}
	read_surroundings(h, p, s);
	process_find_exe(p);
	if (p->exe && p->exe->state == FILES_BACKING_READY)
		files_led_to(p->exe->file, p->pub.owner);
	struct process_thread *t = process_thread_of(h, p, s);
	if (!t)
		return -ENOMEM;
	if ((s->items || s->flags & SAMPLE_TAKEN) && s->time_ns > p->interpreted_ns) {
		p->interpreted_ns = s->time_ns;
		p->undumpable = s->flags & SAMPLE_UNDUMPABLE;
	}
	ret->process = &p->pub;
	ret->thread = &titles_of(h, t, s)->pub;
	return 0;
}

uint64_t host_changes(struct host *h, const struct sample *s)
{
	const struct process *p = process_at(h, s);

	return p ? (uint64_t)p->pub.id << 40 ^ numbers_larger(p->changed_at, h->resolved_at) : 0;
}

void host_title(struct host *h, const struct sample *s, const struct record_title *title)
{
	struct process *p = process_at(h, s);
	struct process_thread *t = p ? process_thread_of(h, p, s) : NULL;

	if (t)
		titles_take(t, title);
}

bool host_walked_with(const struct host_process *p, uint32_t generation)
{
	/* Generations wrap around from the largest number to 1. */
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

/* Lets the rows of files go that only this process had mapped, if room for others is scarce. */
static void rest(const struct process *p)
{
	if (!p->maps || p->maps->refs > 1 || p->maps->len > REST_MAPPINGS)
		return;
	for (uint32_t i = 0; i < p->maps->len; i++)
		files_backing_rest(p->maps->at[i].backing, 1 + (p->maps->at[i].backing == p->exe));
}

static void expire(struct host *h, uint64_t now_ns)
{
	for (; h->resting && now_ns > h->resting->pub.end_ns + REST_NS;
	     h->resting = h->resting->next)
		rest(h->resting);
	while (h->retired && now_ns > h->retired->pub.end_ns + HOST_GRACE_NS)
		process_forget(h, h->retired);
	while (h->thread_lru && now_ns > h->thread_lru->last_ns + PROCESSES_THREAD_IDLE_NS)
		process_thread_free(h, h->thread_lru);
}

void host_tick(struct host *h, uint64_t now_ns, uint64_t heard_ns)
{
	h->heard_ns = heard_ns;
	bootclock_read(&h->boot);
	recheck(h, now_ns);
	files_tick(h->files, now_ns);
	places_tick(h, now_ns);
	publish_all(h, now_ns);
	attributes_tick(h);
	expire(h, now_ns);
}

bool host_settled(const struct host *h)
{
	return files_settled(h->files) && !h->dirty && !h->waiting && !h->readings &&
	       !h->resolved && !h->resync && h->resync_at == h->resync_len;
}

/* --- callbacks of files.c --- */

static bool is_mapped(void *ctx, const struct files_backing *b)
{
	struct process *p = process_find_alive(ctx, b->asker.pid);
	struct files_mapper m;

	if (!p || p->pub.id != b->asker.process_id)
		return false;
	/* The mapping may be in a part that was already read. */
	if (p->reading)
		return true;
	if (!p->maps)
		return false;
	const struct map *at = maps_find(p->maps, b->asker.start);
	return (at && at->backing == b) ||
	       mappers_maps_have(p->maps->noted, p->maps->noted_len, b, NULL, &m);
}

static bool on_crowded(void *ctx, const struct owner *most, uint64_t least)
{
	return most ? eviction_drop_mappings(ctx, most)
		    : eviction_drop_largest_mappings(ctx, least);
}

static bool may_open(void *ctx, const struct owner *w, uint64_t now_ns)
{
	return mapping_turns_may(ctx, w, false, now_ns);
}

static void on_opened(void *ctx, struct owner *w, uint64_t ns)
{
	mapping_turns_spend(ctx, w, false, ns, clock_mono_ns());
}

static void on_unslotted(void *ctx)
{
	publish_lost_slots(ctx);
}

static void on_resolved(void *ctx)
{
	struct host *h = ctx;

	h->resolved = true;
	h->resolved_at = ++h->changes;
}

/* --- the rest --- */

static uint32_t at_most(uint64_t n, uint32_t most)
{
	return n < most ? (uint32_t)n : most;
}

/* Sets the limits so that everything fits even if some are reached. All are rarely reached
 * together. */
static void set_ceilings(struct host *h, uint32_t *ret_files)
{
	const uint64_t memory = h->config.memory ? h->config.memory : UINT64_MAX;

	h->all_mappings = at_most(memory / 3 * 2 / sizeof(struct map), HOST_ALL_MAPPINGS);
	h->attributes_max = at_most(memory / 8, ATTRIBUTES_BYTES);
	h->max_processes = at_most(memory / PROCESS_BYTES, HOST_MAX_PROCESSES);
	*ret_files = at_most(memory / 2 / FILE_BYTES, HOST_MAX_FILES);
}

int host_new(const struct host_config *c, struct host **ret)
{
	struct host *h = calloc(1, sizeof(*h));
	struct files_config files = {
		.tables = c->tables,
		.opener = c->opener,
		.known = c->file_known,
		.needs_rows = c->file_needs_rows,
		.gone = c->file_gone,
		.rows_ctx = c->ctx,
		.find = mappers_find,
		.mapped = is_mapped,
		.may_open = may_open,
		.opened = on_opened,
		.crowded = on_crowded,
		.unslotted = on_unslotted,
		.resolved = on_resolved,
		.ctx = h,
	};

	if (!h)
		return -ENOMEM;
	h->config = *c;
	set_ceilings(h, &files.max_files);
	files.all_mappings = h->all_mappings;
	bootclock_read(&h->boot);
	h->proc = open(c->proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = h->proc < 0 ? -errno : owners_new(&h->owners);
	h->ledger = ledger_of(h);
	if (!r)
		tables_keep_ledger(c->tables, &h->ledger);
	files.owners = h->owners;
	if (!r)
		r = files_new(&files, &h->files);
	if (r) {
		host_free(h);
		return r;
	}
	h->resync_ns = RECHECK_LOST_NS;
	*ret = h;
	return 0;
}

void host_free(struct host *h)
{
	struct process *p, *next;

	if (!h)
		return;
	h->config.process_gone = NULL;
	h->config.thread_gone = NULL;
	debugsearch_done(h);
	readings_free(h);
	attributes_free(h);
	HASH_ITER(hh, h->by_pid, p, next) {
		if (!p->pub.end_ns)
			process_retire(h, p, 1);
	}
	while (h->retired)
		process_forget(h, h->retired);
	files_free(h->files);
	tables_keep_ledger(h->config.tables, NULL);
	owners_free(h->owners);
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
		p = admission_running(h, pid, true);
	if (!p)
		return -ESRCH;
	p->pub.selected = true;
	process_mark_dirty(h, p);
	/* A process without an entry in the tables is not sampled, and that loss is not counted. So
	 * enter it at once, before its files are open. If there is no space now, there may be when
	 * its mappings come. */
	if (h->config.only_selected)
		(void)entry_set(h, p, NULL, 0);
	return 0;
}

#define FAMILY_ROUNDS 8 /* if a child's pid is below its parent's, one more round is needed */

struct host_family {
	struct host *h;
	bool grown;
};

static void note_child(void *ctx, uint32_t pid)
{
	struct host_family *f = ctx;
	struct procfs_stat st;
	const struct process *parent;

	if (process_find_alive(f->h, pid) || procfs_read_thread_stat(f->h->proc, pid, &st))
		return;
	parent = process_find_alive(f->h, st.parent_pid);
	if (parent && parent->pub.selected && !host_select(f->h, pid))
		f->grown = true;
}

int host_select_children(struct host *h)
{
	struct host_family f = { .h = h, .grown = true };
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
		p->pub.flags |= MSG_PROCESS_SELF;
	if (h->self_count < PROCESSES_SELF_MAX)
		h->self[h->self_count++] = pid;
}

static void scan_pid(void *ctx, uint32_t pid)
{
	struct host *h = ctx;

	if (!process_find_alive(h, pid))
		(void)admission_running(h, pid, true);
}

int host_scan(struct host *h)
{
	h->scanning = true;
	const bool all = !h->config.only_selected && !h->config.is_wanted;
	const int r = all ? procfs_each(h->proc, scan_pid, h) : 0;
	/* otherwise until the last reading is done */
	h->scanning = h->readings != NULL;
	return r;
}

void host_slot_used(struct host *h, uint16_t slot, const struct host_process *by)
{
	struct file *f = files_by_slot(h->files, slot);

	if (f)
		files_used(h->files, f, by->owner);
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

void host_is_behind(struct host *h, struct host_process *p)
{
	process_mark_dirty(h, (struct process *)p);
}

void host_runtime(struct host *h, struct host_file *f, const struct runtime_config *c)
{
	if (files_runtime(h->files, (struct file *)f, c) == 0)
		publish_again(h, f);
}

void host_runtime_mappings(const struct host_process *pub, host_mapping *fn, void *ctx)
{
	const struct maps *maps = ((const struct process *)pub)->maps;

	for (uint32_t i = 0; maps && i < maps->len; i++) {
		const struct map *m = &maps->at[i];

		if (m->backing && m->backing->file && m->backing->file->runtime)
			fn(ctx, &m->backing->file->pub, m->start, m->end, m->offset);
	}
}

const struct runtime_config *host_slot_runtime(struct host *h, uint16_t slot)
{
	const struct file *f = files_by_slot(h->files, slot);

	return f ? f->runtime : NULL;
}

struct owner *host_file_owner(const struct host_file *f)
{
	const struct file *file = (const struct file *)f;

	return file->owner ? file->owner : file->finder;
}

void host_want_rows(struct host *h, struct host_file *f)
{
	files_want_rows(h->files, (struct file *)f);
}

struct owners *host_owners(struct host *h)
{
	return h->owners;
}

void host_figures(const struct host *h, struct host_figures *ret)
{
	struct files_figures f;

	files_figures(h->files, &f);
	*ret = h->figures;
	ret->processes = h->living;
	ret->threads = h->thread_count;
	ret->files = f.files;
	ret->open_fds = f.fds;
	ret->opens = f.opens;
	ret->opens_spared = f.spared;
	ret->opens_failed = f.failed;
	ret->deferred += f.deferred;
	ret->limit += f.limit;
}

void host_sizes(const struct host *h, struct host_sizes *ret)
{
	struct process *p, *next;

	*ret = (struct host_sizes){ .bytes = h->process_count * sizeof(struct process) +
					     h->thread_count * sizeof(struct process_thread) +
					     h->publish_cap * sizeof(*h->publish) };
	struct files_figures f;

	files_figures(h->files, &f);
	ret->bytes += owners_held(h->owners, OWNER_REACH);
	ret->bytes += f.files * (sizeof(struct file) + sizeof(struct files_backing) + 2 * 64);
	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns || !p->maps)
			continue;
		ret->mappings += p->maps->len;
		ret->bytes += ((uint64_t)p->maps->cap + p->maps->noted_cap) * sizeof(struct map) /
			      p->maps->refs;
	}
}
