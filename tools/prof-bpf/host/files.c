// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>
#include "common/base/clock.h"
#include "common/walk/procfs.h"
#include "common/walk/tables.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/files.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/opening.h"

#define CONFIRM_NS 2000000ull /* records of earlier events are drained by then */
#define TRIES 3
#define PAUSE_NS 250000000ull  /* without openings, when no descriptor is left */
#define EXPIRE_NS 500000000ull /* how often old things are removed */

/* A request for a file that must be opened again. */
struct reopen {
	struct files *files;
	struct file *file; /* holds a reference */
	opener_done *done; /* NULL: for its rows */
	void *ctx;
	uint64_t ticket;
	struct mapper asker; /* of the last try */
	uint8_t tries;	     /* of processes that should have it mapped */
	bool by_path;	     /* the last resort was tried */
	struct reopen *prev, *next;
};

struct files {
	struct files_config config;
	struct file *by_key, *by_id, *slots[TABLES_MAX_FILES];
	struct file *idle, *open;
	struct backing *cache; /* by key */
	struct backing *waiting, *confirming;
	uint32_t opening;
	struct reopen *reopens;
	struct backing *vdso;
	uint64_t vdso_size;
	uint32_t next_id;
	uint64_t expire_ns, pause_ns; /* pause_ns: no openings before this time */
	struct files_figures figures;
};

/* --- files --- */

static void fd_drop(struct files *f, struct file *file)
{
	if (file->fd < 0)
		return;
	closing_give(file->fd);
	file->fd = -1;
	f->figures.fds--;
	DL_DELETE2(f->open, file, fd_prev, fd_next);
}

/* Keeps fd (taken) for a while. */
static void fd_keep(struct files *f, struct file *file, int fd, uint64_t now_ns)
{
	fd_drop(f, file);
	struct file *old, *next;
	DL_FOREACH_SAFE2(f->open, old, next, fd_next)
	{
		if (f->figures.fds < HOST_MAX_FDS)
			break;
		if (!old->fd_stays)
			fd_drop(f, old);
	}
	file->fd = fd;
	file->fd_ns = now_ns;
	f->figures.fds++;
	DL_APPEND2(f->open, file, fd_prev, fd_next);
}

static void file_forget(struct files *f, struct file *file)
{
	if (file->refs == 0)
		DL_DELETE(f->idle, file);
	fd_drop(f, file);
	if (file->pub.slot) {
		f->slots[file->pub.slot] = NULL;
		tables_file_free(f->config.tables, file->pub.slot);
	}
	HASH_DEL(f->by_key, file);
	HASH_DELETE(hh_id, f->by_id, file);
	f->figures.files--;
	free(file->pub.path);
	free(file);
}

static struct file *file_get(struct files *f, struct file *file)
{
	if (file->refs++ == 0)
		DL_DELETE(f->idle, file);
	return file;
}

static void file_put(struct files *f, struct file *file)
{
	if (!file || --file->refs)
		return;
	file->idle_ns = clock_mono_ns();
	DL_APPEND(f->idle, file);
}

static bool is_root_only(const struct opener_file *o)
{
	return o->uid == 0 && !(o->mode & 022) && !o->memfd && !o->foreign;
}

static bool make_room(struct files *f)
{
	if (f->figures.files < HOST_MAX_FILES)
		return true;
	if (f->idle) {
		file_forget(f, f->idle);
		return true;
	}
	f->figures.limit++;
	return false;
}

/* The file of this identity, with a reference; made if it is new. NULL: no memory, or too many
 * files. */
static struct file *file_of(struct files *f, const struct opener_file *o, struct str path)
{
	struct file_key key = {
		.dev = o->dev, .inode = o->inode, .ctime_ns = o->ctime_ns, .size = o->size
	};
	struct file *file;

	HASH_FIND(hh, f->by_key, &key, sizeof(key), file);
	if (file)
		return file_get(f, file);
	if (!make_room(f))
		return NULL;
	file = calloc(1, sizeof(*file));
	char *copy = strndup(path.len ? path.data : "", path.len);
	if (!file || !copy) {
		free(file);
		free(copy);
		return NULL;
	}
	file->key = key;
	file->fd = -1;
	file->refs = 1;
	file->foreign = o->foreign || o->memfd || o->partial;
	file->pub = (struct host_file){
		.id = ++f->next_id,
		.dev = o->dev,
		.inode = o->inode,
		.ctime_ns = o->ctime_ns,
		.size = o->size,
		.uid = o->uid,
		.foreign_owner = o->foreign,
		.mode = o->mode,
		.path = copy,
		.path_len = (uint32_t)strlen(copy),
	};
	if (o->memfd)
		file->pub.flags |= FILE_MEMFD;
	else if (o->links == 0)
		file->pub.flags |= FILE_DELETED;
	if (is_root_only(o))
		file->pub.flags |= FILE_ROOT_ONLY;
	if (tables_file_new(f->config.tables, &file->pub.slot) == 0) {
		f->slots[file->pub.slot] = file;
	} else {
		file->pub.slot = 0;
		f->figures.limit++;
	}
	HASH_ADD(hh, f->by_key, key, sizeof(file->key), file);
	HASH_ADD(hh_id, f->by_id, pub.id, sizeof(file->pub.id), file);
	f->figures.files++;
	return file;
}

struct file *files_by_slot(struct files *f, uint16_t slot)
{
	return slot < TABLES_MAX_FILES ? f->slots[slot] : NULL;
}

struct file *files_by_id(struct files *f, uint32_t id)
{
	struct file *file;

	HASH_FIND(hh_id, f->by_id, &id, sizeof(id), file);
	return file;
}

/* --- backings --- */

static void backing_uncache(struct backing *b)
{
	if (!b->cached)
		return;
	HASH_DEL(b->files->cache, b);
	b->cached = false;
	backing_put(b);
}

struct backing *backing_get(struct backing *b)
{
	if (b)
		b->refs++;
	return b;
}

static void backing_leave_lists(struct backing *b)
{
	struct files *f = b->files;

	if (b->state == BACKING_WAITING)
		DL_DELETE(f->waiting, b);
	else if (b->state == BACKING_CONFIRM)
		DL_DELETE(f->confirming, b);
	else if (b->state == BACKING_OPENING)
		f->opening--;
	closing_give(b->fd);
	b->fd = -1;
}

void backing_put(struct backing *b)
{
	if (!b)
		return;
	struct files *f = b->files;

	if (--b->refs) {
		/* Only the cache still holds it, for the next process. */
		if (b->refs == 1 && b->cached && b->file && b->file->refs == 1 && b->file->pub.slot)
			tables_file_unmapped(f->config.tables, b->file->pub.slot);
		return;
	}
	if (b->state == BACKING_OPENING)
		opener_cancel(f->config.opener, b->ticket);
	backing_leave_lists(b);
	if (b->file)
		file_put(f, b->file);
	free(b->path);
	free(b);
}

static void backing_ends(struct backing *b, enum backing_state state)
{
	struct files *f = b->files;

	backing_leave_lists(b);
	b->state = state;
	if (state == BACKING_FAILED) {
		f->figures.failed++;
		if (b->file)
			file_put(f, b->file);
		b->file = NULL;
	}
	f->config.resolved(f->config.ctx);
	if (state == BACKING_FAILED)
		backing_uncache(b);
}

static void backing_waits(struct backing *b)
{
	struct files *f = b->files;

	backing_leave_lists(b);
	b->state = BACKING_WAITING;
	DL_APPEND(f->waiting, b);
}

/* Whether an open descriptor proves the file's identity. While it is open, its inode cannot be
 * reused, and the file is unchanged as long as size and times are. This does not work if the
 * record's device or inode differ from those of fstat (overlayfs, btrfs). */
static bool is_held(const struct backing *b)
{
	const struct file *file = b->file;

	return b->state == BACKING_READY && file->fd >= 0 && !file->foreign && b->key.inode &&
	       file->key.dev == b->key.dev && file->key.inode == b->key.inode;
}

static void fd_used(struct files *f, struct file *file, uint64_t now_ns)
{
	file->fd_ns = now_ns;
	DL_DELETE2(f->open, file, fd_prev, fd_next);
	DL_APPEND2(f->open, file, fd_prev, fd_next);
}

static bool is_unchanged(struct files *f, struct backing *b, uint64_t now_ns)
{
	const struct file *file = b->file;
	struct opener_file o;

	if (!is_held(b) || opening_stat(file->fd, &o) || o.dev != file->key.dev ||
	    o.inode != file->key.inode || o.ctime_ns != file->key.ctime_ns ||
	    o.size != file->key.size)
		return false;
	fd_used(f, b->file, now_ns);
	b->checked_ns = now_ns;
	return true;
}

struct backing *files_backing(struct files *f, struct backing_key key, struct mapper asker,
			      struct str path, bool deleted, uint64_t now_ns)
{
	struct backing *b;

	HASH_FIND(hh, f->cache, &key, sizeof(key), b);
	if (b) {
		bool under_way = b->state != BACKING_READY && b->state != BACKING_FAILED;
		bool fresh = b->root_only && now_ns < b->checked_ns + HOST_RECHECK_NS &&
			     b->deleted == deleted;

		if (under_way || fresh || (b->deleted == deleted && is_unchanged(f, b, now_ns))) {
			f->figures.spared++;
			return backing_get(b);
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
	b->parent_pid = asker.parent_pid;
	b->deleted = deleted;
	b->state = BACKING_WAITING;
	DL_APPEND(f->waiting, b);
	/* One reference for the caller, one for the cache. */
	b->refs = 2;
	b->cached = true;
	HASH_ADD(hh, f->cache, key, sizeof(b->key), b);
	return b;
}

bool files_retry(struct backing *b)
{
	if (b->state != BACKING_FAILED || !b->unmapped || b->by_name || b->deleted ||
	    b->path[0] != '/')
		return false;
	b->by_name = true;
	backing_waits(b);
	return true;
}

/* The open file belongs to the mapping: hands it to those who want it. fd is taken. */
static void backing_ready(struct backing *b, int fd, uint64_t now_ns)
{
	struct files *f = b->files;
	struct file *file = b->file;

	if (!file->asked && file->pub.slot) {
		int rows_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);

		file->asked = true;
		if (rows_fd >= 0)
			f->config.needs_rows(f->config.rows_ctx, &file->pub, rows_fd);
		else
			tables_file_none(f->config.tables, file->pub.slot);
	}
	if (file->fd < 0)
		fd_keep(f, file, fd, now_ns);
	else
		closing_give(fd);
	b->root_only = file->pub.flags & FILE_ROOT_ONLY;
	b->checked_ns = now_ns;
	backing_ends(b, BACKING_READY);
}

static void backing_opened(void *ctx, const struct opener_result *r)
{
	struct backing *b = ctx;
	struct files *f = b->files;
	uint64_t now_ns = clock_mono_ns();

	/* The calls below may drop the last reference. */
	backing_get(b);
	b->ticket = 0;
	f->figures.opens++;
	if (opener_lacks_descriptors(r->status)) {
		/* Neither another way nor another process can help now. */
		f->pause_ns = now_ns + PAUSE_NS;
		f->figures.put_off++;
		backing_waits(b);
		backing_put(b);
		return;
	}
	if (r->status) {
		/* Another process may still have it mapped. */
		if (++b->tries < TRIES && r->status != OPENER_NOT_REGULAR &&
		    r->status != OPENER_TOO_LARGE && r->status != OPENER_NO_PROGRAM &&
		    r->status != OPENER_TIMEOUT) {
			struct mapper other = f->config.find(f->config.ctx, b, NULL,
							     b->asker.process_id);

			b->asker = other;
			b->unmapped = !other.pid;
			if (other.pid) {
				backing_waits(b);
				backing_put(b);
				return;
			}
		}
		backing_ends(b, BACKING_FAILED);
		backing_put(b);
		return;
	}
	struct str path = { .data = b->path, .len = b->path_len };
	b->file = file_of(f, &r->file, path);
	if (!b->file) {
		closing_give(r->fd);
		backing_ends(b, BACKING_FAILED);
	} else if (r->file.dev == b->key.dev && r->file.inode == b->key.inode) {
		backing_ready(b, r->fd, now_ns);
	} else {
		/* Overlayfs and btrfs report another device or inode by fstat than in the record.
		 * To be sure that this is not another process's file, confirm later that the asker
		 * still has it mapped. By then all records before this opening have been seen. */
		backing_leave_lists(b);
		b->state = BACKING_CONFIRM;
		b->confirm_ns = now_ns + CONFIRM_NS;
		DL_APPEND(f->confirming, b);
		b->fd = r->fd;
	}
	backing_put(b);
}

static void confirm(struct files *f, uint64_t now_ns)
{
	struct backing *b, *next;

	DL_FOREACH_SAFE(f->confirming, b, next) {
		if (b->confirm_ns > now_ns)
			break;
		if (f->config.mapped(f->config.ctx, b)) {
			int fd = b->fd;

			b->fd = -1;
			backing_ready(b, fd, now_ns);
		} else {
			backing_ends(b, BACKING_FAILED);
		}
	}
}

static void submit(struct files *f)
{
	struct backing *b, *next;

	DL_FOREACH_SAFE(f->waiting, b, next) {
		if (!f->config.mapped(f->config.ctx, b))
			b->asker = f->config.find(f->config.ctx, b, NULL, 0);
		if (!b->asker.pid && !b->by_name) {
			b->unmapped = true;
			backing_ends(b, BACKING_FAILED);
			continue;
		}
		struct opener_request q = {
			.kind = b->asker.pid ? OPENER_MAPPING : OPENER_PATH,
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
		if (r == -ENOBUFS)
			return;
		if (r) {
			backing_ends(b, BACKING_FAILED);
			continue;
		}
		DL_DELETE(f->waiting, b);
		b->state = BACKING_OPENING;
		f->opening++;
	}
}

/* --- opening again --- */

static void reopen_end(struct reopen *q, const struct opener_result *r)
{
	struct files *f = q->files;

	DL_DELETE(f->reopens, q);
	if (q->done) {
		q->done(q->ctx, r);
	} else if (r->status == 0) {
		f->config.needs_rows(f->config.rows_ctx, &q->file->pub, r->fd);
	} else {
		q->file->unwanted = true;
		if (q->file->pub.slot)
			tables_file_none(f->config.tables, q->file->pub.slot);
	}
	file_put(f, q->file);
	free(q);
}

static int reopen_submit(struct reopen *q);

static void reopened(void *ctx, const struct opener_result *r)
{
	struct reopen *q = ctx;
	struct files *f = q->files;
	struct opener_result result = *r;
	const struct file_key *key = &q->file->key;

	q->ticket = 0;
	f->figures.opens++;
	if (!result.status &&
	    (result.file.dev != key->dev || result.file.inode != key->inode ||
	     result.file.ctime_ns != key->ctime_ns || result.file.size != key->size)) {
		closing_give(result.fd);
		result.fd = -1;
		result.status = OPENER_OTHER;
	}
	if (result.status && result.status != OPENER_TIMEOUT && !q->by_path &&
	    reopen_submit(q) == 0)
		return;
	if (!result.status) {
		int keep = fcntl(result.fd, F_DUPFD_CLOEXEC, 3);

		if (keep >= 0)
			fd_keep(f, q->file, keep, clock_mono_ns());
	}
	reopen_end(q, &result);
}

static int reopen_submit(struct reopen *q)
{
	struct files *f = q->files;
	const struct host_file *pub = &q->file->pub;
	struct mapper m = { 0 };

	/* Limited tries: the kernel never reports an unmapping, so two processes might be tried by
	 * turns for ever. */
	if (q->tries++ < TRIES)
		m = f->config.find(f->config.ctx, NULL, q->file, q->asker.process_id);
	struct opener_request o = {
		.kind = OPENER_MAPPING,
		.pid = m.pid,
		.start = m.start,
		.end = m.end,
		.path = { .data = pub->path, .len = pub->path_len },
	};

	if (!m.pid) {
		q->by_path = true;
		o.kind = OPENER_PATH;
		o.pid = q->asker.pid;
	} else {
		q->asker = m;
	}
	return opener_submit(f->config.opener, &o, reopened, q, &q->ticket);
}

static int reopen(struct files *f, struct file *file, opener_done *done, void *ctx)
{
	struct reopen *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	*q = (struct reopen){ .files = f, .file = file_get(f, file), .done = done, .ctx = ctx };
	int r = reopen_submit(q);
	if (r) {
		file_put(f, file);
		free(q);
		return r;
	}
	DL_APPEND(f->reopens, q);
	return 0;
}

/* A duplicate of the descriptor that is still open, or -1. */
static int kept_fd(struct files *f, struct file *file)
{
	int fd = file->fd >= 0 ? fcntl(file->fd, F_DUPFD_CLOEXEC, 3) : -1;

	if (fd >= 0)
		fd_used(f, file, clock_mono_ns());
	return fd;
}

int files_open(struct files *f, struct file *file, opener_done *done, void *ctx)
{
	int fd = kept_fd(f, file);

	if (fd < 0)
		return reopen(f, file, done, ctx);
	struct opener_result r = {
		.fd = fd,
		.file = { .dev = file->key.dev,
			  .inode = file->key.inode,
			  .ctime_ns = file->key.ctime_ns,
			  .size = file->key.size,
			  .uid = file->pub.uid,
			  .mode = file->pub.mode,
			  .memfd = file->pub.flags & FILE_MEMFD },
	};
	done(ctx, &r);
	return 0;
}

void files_want_rows(struct files *f, struct file *file)
{
	if (!file->pub.slot || file->unwanted)
		return;
	tables_file_pending(f->config.tables, file->pub.slot);
	int fd = kept_fd(f, file);
	if (fd >= 0)
		f->config.needs_rows(f->config.rows_ctx, &file->pub, fd);
	else if (reopen(f, file, NULL, NULL))
		tables_file_none(f->config.tables, file->pub.slot);
}

/* --- the vDSO --- */

static void vdso_size(void *ctx, const struct procfs_mapping *m)
{
	uint64_t *size = ctx;

	if (m->kind == PROCFS_VDSO)
		*size = m->end - m->start;
}

/* Makes a file of the vDSO, which the kernel maps into every process, from our own copy. */
static int vdso_new(struct files *f)
{
	const void *at = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint64_t size = 0;

	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return -errno;
	ssize_t n = procfs_read_maps(proc, (uint32_t)getpid(), HOST_MAX_MAPPINGS, vdso_size, &size);
	close(proc);
	if (n < 0 || !at || !size)
		return n < 0 ? (int)n : -ENOENT;
	int copy = memfd_create("vdso", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return -errno;
	char path[40];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	bool whole = write(copy, at, size) == (ssize_t)size &&
		     fcntl(copy, F_ADD_SEALS,
			   F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0;
	int fd = whole ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	close(copy);
	if (fd < 0)
		return -EIO;

	struct opener_file o = { .size = size, .links = 1, .mode = 0444 };
	struct backing *b = calloc(1, sizeof(*b));
	struct file *file = b ? file_of(f, &o, STR_LIT("[vdso]")) : NULL;
	if (!file) {
		free(b);
		close(fd);
		return -ENOMEM;
	}
	file->pub.flags = FILE_VDSO | FILE_ROOT_ONLY;
	fd_keep(f, file, fd, clock_mono_ns());
	file->fd_stays = file->asked = true;
	*b = (struct backing){
		.files = f, .refs = 1, .state = BACKING_READY, .file = file, .fd = -1
	};
	f->vdso = b;
	f->vdso_size = size;
	int rows_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (rows_fd >= 0 && file->pub.slot)
		f->config.needs_rows(f->config.rows_ctx, &file->pub, rows_fd);
	else if (rows_fd >= 0)
		close(rows_fd);
	return 0;
}

struct backing *files_vdso(struct files *f, uint64_t start, uint64_t end)
{
	/* A 32-bit process has another vDSO. */
	if (!f->vdso || end - start != f->vdso_size || end <= UINT32_MAX)
		return NULL;
	return backing_get(f->vdso);
}

/* --- the whole --- */

int files_new(const struct files_config *c, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->config = *c;
	int r = vdso_new(f);
	if (r == -ENOMEM) {
		files_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void files_free(struct files *f)
{
	struct backing *b, *next_b;
	struct reopen *q, *next_q;
	struct file *file, *next_f;

	if (!f)
		return;
	DL_FOREACH_SAFE(f->reopens, q, next_q) {
		opener_cancel(f->config.opener, q->ticket);
		file_put(f, q->file);
		free(q);
	}
	HASH_ITER(hh, f->cache, b, next_b)
		backing_uncache(b);
	backing_put(f->vdso);
	HASH_ITER(hh, f->by_key, file, next_f)
		file_forget(f, file);
	free(f);
}

void files_tick(struct files *f, uint64_t now_ns)
{
	struct backing *b, *next;
	struct file *file, *next_file;

	confirm(f, now_ns);
	if (now_ns >= f->pause_ns)
		submit(f);
	if (now_ns < f->expire_ns)
		return;
	f->expire_ns = now_ns + EXPIRE_NS;
	HASH_ITER(hh, f->cache, b, next) {
		if (b->state == BACKING_READY && now_ns > b->checked_ns + HOST_RECHECK_NS &&
		    !is_held(b))
			backing_uncache(b);
		else if (b->refs == 1 && b->state != BACKING_READY)
			backing_uncache(b);
	}
	while (f->idle && now_ns > f->idle->idle_ns + HOST_IDLE_FILE_NS)
		file_forget(f, f->idle);
	DL_FOREACH_SAFE2(f->open, file, next_file, fd_next)
	{
		if (file->fd_stays)
			continue;
		if (now_ns <= file->fd_ns + HOST_FD_IDLE_NS)
			break;
		fd_drop(f, file);
	}
}

bool files_settled(const struct files *f)
{
	return !f->waiting && !f->confirming && !f->opening && !f->reopens;
}

void files_figures(const struct files *f, struct files_figures *ret)
{
	*ret = f->figures;
}
