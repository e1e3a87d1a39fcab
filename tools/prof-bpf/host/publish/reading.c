/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/publish/reading.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/eviction.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/open/readers/mapreader.h"

#define CHARGED_AT_ONCE 256 /* mappings that are charged at once */

static void reading_free(struct process_reading *r)
{
	struct host *h = r->host;

	if (r->process)
		r->process->reading = NULL;
	if (r->process && h)
		r->process->changed_at = ++h->changes;
	process_drop_reading(r);
	if (h) {
		DL_DELETE(h->readings, r);
		h->scanning &= h->readings != NULL;
	}
	free(r->exe);
	free(r);
}

void reading_heard(struct process *p, const struct map *m, uint64_t time_ns)
{
	struct process_reading *r = p->reading;
	struct map copy = *m;

	if (!r || time_ns < r->began_ns)
		return;
	if (!r->since)
		r->since = maps_new();
	if (!r->since) {
		r->incomplete = true;
		return;
	}
	files_backing_get(copy.backing);
	r->incomplete |= r->since->noted_len > HOST_MAX_MAPPINGS || maps_add(&r->since, &copy);
}

/* Returns how many more mappings of an owner may be kept. large: for a large process. */
static uint64_t owners_left(const struct host *h, const struct owner *w, bool large)
{
	const uint64_t all = eviction_all_mappings(h, large),
		       share = owners_share(h->owners, w, OWNER_MAPPINGS, all);

	return numbers_larger(numbers_less(all, owners_held(h->owners, OWNER_MAPPINGS)),
			      numbers_less(share, w->held[OWNER_MAPPINGS]));
}

/* Returns how many mappings of the process may be kept. */
static size_t mappings_left(struct host *h, struct process *p)
{
	const struct owner *w = p->pub.owner;
	const uint64_t mine = p->maps && p->maps->refs == 1 ? p->maps->charged : 0,
		       small = numbers_smaller(owners_left(h, w, false) + mine,
					       MAPPING_TURNS_LARGE),
		       most = numbers_larger(owners_left(h, w, true) + mine, small);

	return numbers_smaller(most, HOST_MAX_MAPPINGS);
}

/* Charges what a current reading holds: several processes are read at the same time. */
static void charge(struct process_reading *r)
{
	struct host *h = r->host;
	struct owner *w = r->process->pub.owner;

	maps_charge(r->maps, h->owners, w);
	const uint64_t all = eviction_all_mappings(h, r->count > MAPPING_TURNS_LARGE);

	r->full = owners_held(h->owners, OWNER_MAPPINGS) > all &&
		  w->held[OWNER_MAPPINGS] > owners_share(h->owners, w, OWNER_MAPPINGS, all);
}

static bool is_exe(const struct process_reading *r, struct str path)
{
	return r->exe && str_eq(path, (struct str){ .data = r->exe, .len = strlen(r->exe) });
}

static void on_mapping(void *ctx, const struct procfs_mapping *from)
{
	struct process_reading *r = ctx;
	struct process *p = r->process;
	struct map m = { .start = from->start, .end = from->end, .offset = from->offset };
	struct files_backing_key key = { .dev = (uint64_t)from->dev_major << 32 | from->dev_minor,
					 .inode = from->inode };
	const struct map *known;

	if (!p || r->full)
		return;
	r->count++;
	if (from->kind == PROCFS_VSYSCALL)
		return;
	if (from->kind == PROCFS_VDSO)
		m.offset = 0;
	known = p->maps ? maps_find(p->maps, from->start) : NULL;
	if (known && known->backing && known->start == m.start && known->end == m.end &&
	    known->offset == m.offset && known->backing->key.dev == key.dev &&
	    known->backing->key.inode == key.inode && from->kind == PROCFS_FILE &&
	    known->backing->state != FILES_BACKING_FAILED)
		m.backing = files_backing_get(known->backing);
	else
		m.backing = process_backing(r->host, p, &m, from->kind, key, from->name,
					    from->deleted, r->began_ns);
	if (from->kind == PROCFS_FILE && !p->exe && is_exe(r, from->name))
		p->exe = files_backing_get(m.backing);
	r->failed |= maps_add(&r->maps, &m) != 0;
	if (r->count % CHARGED_AT_ONCE == 0)
		charge(r);
}

/* Replaces the known mappings by those that were read. Returns 0 or -ENOMEM. */
static int apply(struct process_reading *r)
{
	struct host *h = r->host;
	struct process *p = r->process;
	struct maps *was;

	for (uint32_t i = 0; r->since && i < r->since->noted_len; i++) {
		const struct map *m = &r->since->noted[i];

		files_backing_get(m->backing);
		r->failed |= maps_add(&r->maps, m) != 0;
	}
	if (r->failed)
		return -ENOMEM;
	process_settle(h, p);
	was = p->maps;
	p->maps = r->maps;
	r->maps = NULL;
	process_settle(h, p);
	/* Records from before the beginning, which tell since when these mappings existed, will be
	 * ignored now. */
	for (uint32_t i = 0; was && i < p->maps->len; i++)
		process_note_displaced(p, was, &p->maps->at[i], r->heard_ns, r->began_ns);
	maps_put(was);
	p->scanned_ns = r->began_ns;
	p->scanned_len = p->maps->len;
	p->rescan_ns = r->began_ns + PROCESSES_RESCAN_NS +
		       (uint64_t)p->scanned_len * PROCESSES_RESCAN_NS_PER_MAPPING;
	p->read_failures = 0;
	p->wants_maps |= r->incomplete;
	h->figures.rescans++;
	process_mark_dirty(h, p);
	(void)eviction_keep_mappings(h, p, 0);
	return 0;
}

/* Whether another reading may succeed. If the process is gone or forbids it, none will. */
static bool may_retry(int status)
{
	return status == -ENOMEM || status == -ETIMEDOUT || status == -EBUSY || status == -EIO ||
	       status == -EPIPE || status == -ENOBUFS || opener_lacks_descriptors(status);
}

void reading_later(struct host *h, struct process *p, uint64_t now_ns)
{
	p->wants_maps = true;
	p->rescan_ns = now_ns + mapping_turns_delay(&p->read_failures, PROCESSES_RESCAN_NS);
	process_mark_dirty(h, p);
}

static void on_done(void *ctx, int status, uint64_t cpu_ns)
{
	struct process_reading *r = ctx;
	struct process *p = r->process;
	const uint64_t now_ns = clock_mono_ns();

	if (!p) {
		reading_free(r);
		return;
	}
	mapping_turns_spend(r->host, p->pub.owner, r->count > MAPPING_TURNS_LARGE,
			    cpu_ns + r->count * MAPPING_TURNS_RECORD_NS, now_ns);
	if (!status && (r->full || r->count == r->most)) {
		r->host->figures.limit++;
		owner_refuse(p->pub.owner, OWNER_MAPPINGS, 1);
	}
	if (!status)
		status = apply(r);
	if (opener_lacks_descriptors(status))
		r->host->figures.deferred++;
	if (may_retry(status))
		reading_later(r->host, p, now_ns);
	reading_free(r);
}

static void on_drop(void *ctx)
{
	reading_free(ctx);
}

static char *path_of_exe(const struct host *h, uint32_t pid)
{
	char path[PATH_MAX];
	const ssize_t n = procfs_read_link(h->proc, pid, "exe", path);

	return n > 0 ? strndup(path, (size_t)n) : NULL;
}

/* Begins a reading. Returns 0, -ENOMEM or -ENOBUFS. */
static int begin(struct host *h, struct process *p, size_t most, uint64_t now_ns)
{
	struct process_reading *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->maps = maps_new();
	if (!r->maps) {
		free(r);
		return -ENOMEM;
	}
	r->host = h;
	r->process = p;
	r->most = most;
	r->began_ns = now_ns;
	r->heard_ns = h->heard_ns;
	r->exe = p->exe ? NULL : path_of_exe(h, p->pub.pid);
	p->reading = r;
	DL_APPEND(h->readings, r);
	const int e = mapreader_submit(h->config.pool,
				       &(struct mapreader_request){ .pid = p->pub.pid,
								    .payer = p->pub.owner,
								    .sampled = p->sampled,
								    .most = (uint32_t)most,
								    .mapping = on_mapping,
								    .done = on_done,
								    .drop = on_drop,
								    .ctx = r });

	if (e)
		reading_free(r);
	return e;
}

void reading_begin(struct host *h, struct process *p)
{
	if (p->reading)
		return;
	const uint64_t now_ns = clock_mono_ns();

	eviction_make_room(h, p, MAPPING_TURNS_LARGE);
	const size_t most = mappings_left(h, p);

	p->wants_maps = false;
	if (!most) {
		h->figures.limit++;
		owner_refuse(p->pub.owner, OWNER_MAPPINGS, 1);
	}
	if (!most || begin(h, p, most, now_ns))
		reading_later(h, p, now_ns);
}

void readings_free(struct host *h)
{
	struct process_reading *r, *next;

	DL_FOREACH_SAFE(h->readings, r, next) {
		if (r->process)
			process_cancel_reading(r->process);
		DL_DELETE(h->readings, r);
		r->host = NULL;
	}
}
