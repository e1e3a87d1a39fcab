/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/files/files_internal.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/opening/opening.h"
#include "tools/prof-bpf/owners/owners.h"

/* Owners who hold more than their share leave this many files free. */
#define FILES_FAIR 512
#define CONFIRM_NS 2000000ull /* records of earlier events are drained after this time */
#define PAUSE_NS 250000000ull /* no openings for this long after descriptors ran out */
#define OPENING_MAX 1024      /* files opened at the same time: requests take memory */
#define OPENING_LEAST 8	      /* for each owner */
/* Time is charged when an opening is done. So of one owner, only as many are under way as take this
 * long, by its latest ones; and before the first is done, this many. */
#define OPENING_AHEAD_NS 50000000u
#define OPENING_FIRST 64
#define DROPPED_AT_ONCE 4 /* processes whose mappings are dropped before files are looked at */
#define IDLE_NS 5000000u  /* time for making one file idle */

static void backing_uncache(struct files_backing *b)
{
	if (!b->cached)
		return;
	HASH_DEL(b->files->cache, b);
	b->cached = false;
	files_backing_put(b);
}

struct files_backing *files_backing_get(struct files_backing *b)
{
	if (b)
		b->refs++;
	return b;
}

static void backing_leave_lists(struct files_backing *b)
{
	struct files *f = b->files;

	if (b->state == FILES_BACKING_WAITING) {
		DL_DELETE(f->waiting[b->owner->number], b);
		f->waits--;
	} else if (b->state == FILES_BACKING_CONFIRM) {
		DL_DELETE(f->confirming, b);
	} else if (b->state == FILES_BACKING_OPENING) {
		f->opening--;
		f->opening_of[b->owner->number]--;
	}
	closing_give(b->fd);
	b->fd = -1;
}

/* Whether memory for mappings is short. */
static bool is_crowded(const struct files *f)
{
	return owners_held(f->config.owners, OWNER_MAPPINGS) > f->config.all_mappings / 4 * 3;
}

void files_backing_rest(struct files_backing *b, uint32_t refs)
{
	/* The cache holds it too, in case another process maps the file. */
	if (b && b->refs == refs + 1 && b->cached && b->file && b->file->refs == 1 &&
	    b->file->pub.slot)
		tables_file_unmapped(b->files->config.tables, b->file->pub.slot);
}

void files_backing_put(struct files_backing *b)
{
	if (!b)
		return;
	struct files *f = b->files;

	if (--b->refs) {
		files_backing_rest(b, 0);
		if (b->refs == 1 && b->cached && is_crowded(f))
			backing_uncache(b);
		return;
	}
	if (b->state == FILES_BACKING_OPENING)
		opener_cancel(f->config.opener, b->ticket);
	backing_leave_lists(b);
	if (b->file)
		file_put(f, b->file);
	if (b->owner)
		owner_release(f->config.owners, b->owner, OWNER_MAPPINGS, FILES_BACKING_COST);
	owner_put(f->config.owners, b->owner);
	free(b->path);
	free(b);
}

static void backing_ends(struct files_backing *b, enum files_backing_state state)
{
	struct files *f = b->files;

	backing_leave_lists(b);
	b->state = state;
	if (state == FILES_BACKING_FAILED) {
		f->figures.failed++;
		if (b->file)
			file_put(f, b->file);
		b->file = NULL;
	}
	f->config.resolved(f->config.ctx);
	if (state == FILES_BACKING_FAILED)
		backing_uncache(b);
}

static void backing_enqueue(struct files_backing *b)
{
	struct files *f = b->files;

	b->state = FILES_BACKING_WAITING;
	DL_APPEND(f->waiting[b->owner->number], b);
	f->waits++;
}

static void backing_waits(struct files_backing *b)
{
	backing_leave_lists(b);
	backing_enqueue(b);
}

/* Whether an open descriptor proves the file's identity. While it is open, its inode cannot be
 * reused, and the file is unchanged as long as size and times are. This does not work if the
 * record's device or inode differ from those of fstat (overlayfs, btrfs). */
static bool is_held(const struct files_backing *b)
{
	const struct file *file = b->file;

	return b->state == FILES_BACKING_READY && file->fd >= 0 && !file->foreign && b->key.inode &&
	       file->key.dev == b->key.dev && file->key.inode == b->key.inode;
}

static bool is_unchanged(struct files *f, struct files_backing *b, uint64_t now_ns)
{
	const struct file *file = b->file;
	struct opener_file o;

	if (!is_held(b) || opening_stat(file->fd, &o) || o.dev != file->key.dev ||
	    o.inode != file->key.inode || o.ctime_ns != file->key.ctime_ns ||
	    o.size != file->key.size)
		return false;
	file_use_fd(f, b->file, now_ns);
	b->checked_ns = now_ns;
	return true;
}

/* Charges the backing to another owner from now on. It must be in no list. */
static void backing_charge(struct files_backing *b, struct owner *owner)
{
	struct owners *o = b->files->config.owners;

	owner_release(o, b->owner, OWNER_MAPPINGS, FILES_BACKING_COST);
	owner_put(o, b->owner);
	b->owner = owner_get(owner);
	owner_hold(o, b->owner, OWNER_MAPPINGS, FILES_BACKING_COST);
}

/* Another process has mapped a file that is not open yet. Charges the file to the owner with fewer
 * pending files. Otherwise a user with a long queue would delay a file that others also map. */
static void backing_change_owner(struct files_backing *b, struct files_mapper asker)
{
	struct files *f = b->files;

	if (b->state == FILES_BACKING_CONFIRM || asker.owner == b->owner ||
	    asker.owner->held[OWNER_QUEUE] >= b->owner->held[OWNER_QUEUE])
		return;
	if (b->state == FILES_BACKING_OPENING)
		opener_cancel(f->config.opener, b->ticket);
	backing_leave_lists(b);
	backing_charge(b, asker.owner);
	b->asker = asker;
	b->parent_pid = asker.parent_pid;
	b->ticket = 0;
	backing_enqueue(b);
}

struct files_backing *files_backing(struct files *f, struct files_backing_key key,
				    struct files_mapper asker, struct str path, bool deleted,
				    uint64_t now_ns)
{
	struct files_backing *b;

	HASH_FIND(hh, f->cache, &key, sizeof(key), b);
	if (b) {
		bool under_way = b->state != FILES_BACKING_READY &&
				 b->state != FILES_BACKING_FAILED;
		bool fresh = b->roots && now_ns < b->checked_ns + HOST_RECHECK_NS &&
			     b->deleted == deleted;

		if (under_way)
			backing_change_owner(b, asker);
		if (under_way || fresh || (b->deleted == deleted && is_unchanged(f, b, now_ns))) {
			f->figures.spared++;
			return files_backing_get(b);
		}
		backing_uncache(b);
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	if (path.len > HOST_PATH_MAX)
		path.len = HOST_PATH_MAX;
	b->path = strndup(path.len ? path.data : "", path.len);
	if (!b->path) {
		free(b);
		return NULL;
	}
	b->path_len = (uint32_t)strlen(b->path);
	b->files = f;
	b->fd = -1;
	b->key = key;
	b->asker = asker;
	b->owner = owner_get(asker.owner);
	owner_hold(f->config.owners, b->owner, OWNER_MAPPINGS, FILES_BACKING_COST);
	b->parent_pid = asker.parent_pid;
	b->deleted = deleted;
	backing_enqueue(b);
	/* One reference for the caller, one for the cache. */
	b->refs = 2;
	b->cached = true;
	HASH_ADD(hh, f->cache, key, sizeof(b->key), b);
	return b;
}

bool files_retry(struct files_backing *b)
{
	if (b->state != FILES_BACKING_FAILED || !b->unmapped || b->by_name || b->deleted ||
	    b->path[0] != '/')
		return false;
	b->by_name = true;
	backing_waits(b);
	return true;
}

/* --- opening --- */

/* Forgets backings that only the cache holds. */
static void sweep(struct files *f)
{
	struct files_backing *b, *next;

	HASH_ITER(hh, f->cache, b, next) {
		if (b->refs == 1)
			backing_uncache(b);
	}
}

/* Drops the mappings of some processes. Returns false if there are no more of them. */
static bool drop_some(struct files *f, const struct owner *most, uint64_t least)
{
	unsigned n = 0;

	while (n < DROPPED_AT_ONCE && f->config.crowded(f->config.ctx, most, least))
		n++;
	/* The file of a mapping may become idle only here. */
	sweep(f);
	return n == DROPPED_AT_ONCE;
}

/* Drops mappings until a file is idle: first those of the owner who found most files, then those of
 * owners who have more mapped than the finder, since they may have mapped the same files. An owner
 * with fewer mappings than its share of files is not among those. Each step visits all processes
 * and files, so this may end too early; the finder then tries again. */
static void make_idle(struct files *f, const struct owner *finder, uint64_t share)
{
	const uint64_t least = numbers_larger(finder->held[OWNER_MAPPINGS], share);
	const struct owner *most = owners_largest(f->config.owners, OWNER_FILES);
	const uint64_t until_ns = clock_mono_ns() + IDLE_NS;
	bool more = most != finder;

	while (!f->idle && more && clock_mono_ns() < until_ns)
		more = drop_some(f, most, 0);
	for (more = true; !f->idle && more && clock_mono_ns() < until_ns;)
		more = drop_some(f, NULL, least);
}

/* Whether one more file may be known, charged to `finder`. If the finder holds less than its share,
 * others lose files. */
static bool make_room(struct files *f, const struct owner *finder)
{
	struct owners *o = f->config.owners;

	if (f->figures.files < f->config.max_files - FILES_FAIR)
		return true;
	const uint64_t share = owners_share(o, finder, OWNER_FILES,
					    f->config.max_files - FILES_FAIR);

	if (finder->held[OWNER_FILES] < share) {
		if (f->figures.files < f->config.max_files)
			return true;
		make_idle(f, finder, share);
	}
	if (f->idle) {
		file_forget(f, f->idle);
		return true;
	}
	f->figures.limit++;
	return false;
}

/* Returns the file of this identity, with a reference, and makes it if it is new, charged to
 * `finder`. NULL: no memory, or too many files. */
static struct file *file_of(struct files *f, const struct opener_file *o, struct str path,
			    struct owner *finder)
{
	struct file *file = file_find(f, o);

	if (file)
		return file_get(f, file);
	if (!make_room(f, finder)) {
		owner_refuse(finder, OWNER_FILES, 1);
		return NULL;
	}
	return file_new(f, o, path, finder);
}

static struct files_mapper asker_of(const struct files_backing *b)
{
	struct files_mapper m = b->asker;

	m.owner = b->owner;
	return m;
}

/* The open file is known to be the mapping's: passes it on. fd is owned by this function; -1: a
 * copy is made when one is needed. */
static void backing_ready(struct files_backing *b, int fd, uint64_t now_ns)
{
	struct files *f = b->files;
	struct file *file = b->file;

	if (file->fd < 0 && fd >= 0)
		file_keep_fd(f, file, fd, now_ns);
	else
		closing_give(fd);
	if (!file->known) {
		file->known = true;
		if (f->config.known && f->config.known(f->config.rows_ctx, &file->pub))
			(void)files_sampled(f, file, asker_of(b), now_ns);
	}
	b->roots = file->pub.roots;
	b->checked_ns = now_ns;
	backing_ends(b, FILES_BACKING_READY);
}

/* Finds a mapper. The search goes through the mappings of all processes, so the owner who needs it
 * is charged for its time. */
static struct files_mapper find_mapper(struct files *f, const struct files_mapper_search *s)
{
	const uint64_t began_ns = clock_mono_ns();
	const struct files_mapper ret = f->config.find(f->config.ctx, s);

	f->config.opened(f->config.ctx, s->backing->owner, clock_mono_ns() - began_ns);
	return ret;
}

/* Notes the cpu time of an opening, in the mean of the owner's latest ones. */
static void learn_cost(struct files *f, const struct owner *w, uint64_t ns)
{
	uint32_t *mean = &f->opening_ns[w->number];
	const uint32_t last = (uint32_t)numbers_smaller(ns, OPENING_AHEAD_NS);

	*mean = (*mean ? *mean - *mean / 4 + last / 4 : last) | 1;
}

static void backing_opened(void *ctx, const struct opener_result *r)
{
	struct files_backing *b = ctx;
	struct files *f = b->files;
	uint64_t now_ns = clock_mono_ns();

	/* The calls below may drop the last reference. */
	files_backing_get(b);
	b->ticket = 0;
	f->figures.opens++;
	learn_cost(f, b->owner, r->cpu_ns);
	/* prof-bpf spends about as much time on it as its worker. */
	f->config.opened(f->config.ctx, b->owner, 2 * r->cpu_ns);
	if (opener_lacks_descriptors(r->status)) {
		/* Another way or another process cannot help now. */
		f->pause_ns = now_ns + PAUSE_NS;
		f->figures.deferred++;
		backing_waits(b);
		files_backing_put(b);
		return;
	}
	if (r->status) {
		/* Another process may still have the file mapped. If this one's owner makes workers
		 * wait, try a process of another owner. */
		if (++b->tries < FILES_TRIES && r->status != OPENER_NOT_REGULAR &&
		    r->status != OPENER_TOO_LARGE && r->status != OPENER_NO_PROGRAM) {
			const struct files_mapper tried = asker_of(b);
			const struct files_mapper_search search = { .backing = b,
								    .tried = &tried,
								    .tried_count = 1,
								    .other_owner = r->status ==
										   OPENER_TIMEOUT };
			const struct files_mapper other = find_mapper(f, &search);

			b->unmapped = !other.pid && r->status != OPENER_TIMEOUT;
			b->asker = other;
			if (other.pid) {
				backing_leave_lists(b);
				if (search.other_owner)
					backing_charge(b, other.owner);
				backing_enqueue(b);
				files_backing_put(b);
				return;
			}
		}
		backing_ends(b, FILES_BACKING_FAILED);
		files_backing_put(b);
		return;
	}
	struct str path = { .data = b->path, .len = b->path_len };
	b->file = file_of(f, &r->file, path, b->owner);
	if (!b->file) {
		closing_give(r->fd);
		backing_ends(b, FILES_BACKING_FAILED);
	} else if (r->file.dev == b->key.dev && r->file.inode == b->key.inode) {
		backing_ready(b, r->fd, now_ns);
	} else {
		/* On overlayfs and btrfs, fstat reports another device or inode than the record. To
		 * be sure that this is not another process's file, confirm later that the asker
		 * still has it mapped. By then all records before this opening have been seen. */
		backing_leave_lists(b);
		b->state = FILES_BACKING_CONFIRM;
		b->confirm_ns = now_ns + CONFIRM_NS;
		DL_APPEND(f->confirming, b);
		b->fd = r->fd;
	}
	files_backing_put(b);
}

void backings_confirm(struct files *f, uint64_t now_ns)
{
	struct files_backing *b, *next;

	DL_FOREACH_SAFE(f->confirming, b, next) {
		if (b->confirm_ns > now_ns)
			break;
		if (f->config.mapped(f->config.ctx, b)) {
			int fd = b->fd;

			b->fd = -1;
			backing_ready(b, fd, now_ns);
		} else {
			backing_ends(b, FILES_BACKING_FAILED);
		}
	}
}

/* Submits openings for files of an owner, at most `most` at the same time. */
static void submit_of(struct files *f, uint32_t owner, uint32_t most, uint64_t now_ns)
{
	struct files_backing *b, *next;

	DL_FOREACH_SAFE(f->waiting[owner], b, next) {
		if (f->opening_of[owner] >= most ||
		    !f->config.may_open(f->config.ctx, b->owner, now_ns))
			return;
		if (!f->config.mapped(f->config.ctx, b))
			b->asker = find_mapper(f, &(struct files_mapper_search){ .backing = b });
		if (!b->asker.pid && !b->by_name) {
			b->unmapped = true;
			backing_ends(b, FILES_BACKING_FAILED);
			continue;
		}
		struct opener_request q = {
			.kind = b->asker.pid ? OPENER_MAPPING : OPENER_PATH,
			.payer = b->owner,
			.look_only = true,
			.pid = b->asker.pid,
			.parent_pid = b->parent_pid,
			.expect_inode = true,
			.start = b->asker.start,
			.end = b->asker.end,
			.path = { .data = b->path, .len = b->path_len },
			.dev = b->key.dev,
			.inode = b->key.inode,
		};
		int r = opener_submit(f->config.opener, &q, backing_opened, b, &b->ticket);
		/* This owner has too many open requests; others may not. */
		if (r == -ENOBUFS)
			return;
		if (r) {
			backing_ends(b, FILES_BACKING_FAILED);
			continue;
		}
		backing_leave_lists(b);
		b->state = FILES_BACKING_OPENING;
		f->opening++;
		f->opening_of[owner]++;
	}
}

/* Returns how many files of an owner may be opened at the same time. owners: number of owners with
 * such files. */
static uint32_t may_be_opening(const struct files *f, uint32_t owner, uint32_t owners)
{
	const uint32_t cost = f->opening_ns[owner],
		       most = cost ? OPENING_AHEAD_NS / cost : OPENING_FIRST;

	return (uint32_t)numbers_larger(numbers_smaller(most, OPENING_MAX / owners), OPENING_LEAST);
}

void backings_submit(struct files *f, uint64_t now_ns)
{
	uint32_t owners = 0;

	for (uint32_t i = 0; f->waits && i < OWNERS_MAX; i++)
		owners += f->waiting[i] || f->opening_of[i];
	for (uint32_t i = 0; f->waits && i < OWNERS_MAX; i++)
		if (f->waiting[i])
			submit_of(f, i, may_be_opening(f, i, owners), now_ns);
}

/* --- the end of backings --- */

void backings_expire(struct files *f, uint64_t now_ns)
{
	struct files_backing *b, *next;

	HASH_ITER(hh, f->cache, b, next) {
		if (b->state == FILES_BACKING_READY && now_ns > b->checked_ns + HOST_RECHECK_NS &&
		    !is_held(b))
			backing_uncache(b);
		else if (b->refs == 1 && b->state != FILES_BACKING_READY)
			backing_uncache(b);
	}
}

void backings_done(struct files *f)
{
	struct files_backing *b, *next;

	HASH_ITER(hh, f->cache, b, next)
		backing_uncache(b);
}
