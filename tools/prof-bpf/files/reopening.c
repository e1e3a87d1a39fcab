/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <utlist.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/files/files_internal.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/opening/opening.h"

/* Wait before the next try, if a resource was missing for now; doubles each time. */
#define AGAIN_NS 2000000000ull
#define AGAIN_MOST_NS 64000000000ull

/* A request for a file that must be opened again. */
struct reopen {
	struct files *files;
	struct file *file; /* holds a reference */
	opener_done *done; /* NULL: it is opened for its rows */
	void *ctx;
	uint64_t ticket;
	struct files_mapper first; /* a process that is known to have it mapped; pid 0: none */
	struct files_mapper tried[FILES_TRIES + 1]; /* processes that were tried */
	uint8_t tries;
	bool waited;  /* the owner of the last one makes workers wait, or has no space for copies */
	bool by_path; /* the last resort, the path, was tried */
	struct reopen *prev, *next;
};

/* The file cannot be opened for its rows. If a resource is only missing for now, tries again
 * later. */
static void rows_failed(struct files *f, struct file *file, int status)
{
	const bool passes = status == OPENER_NO_ROOM || status == OPENER_TIMEOUT ||
			    status == -ENOBUFS || opener_lacks_descriptors(status);

	file->unwanted = true;
	if (passes) {
		file->pause_ns = !file->pause_ns		  ? AGAIN_NS
				 : file->pause_ns < AGAIN_MOST_NS ? 2 * file->pause_ns
								  : AGAIN_MOST_NS;
		f->agains += !file->again_ns;
		file->again_ns = clock_mono_ns() + file->pause_ns;
	}
	if (file->pub.slot)
		tables_file_none(f->config.tables, file->pub.slot);
}

static void again_drop(struct files *f, struct file *file)
{
	f->agains -= file->again_ns != 0;
	file->again_ns = 0;
}

void reopening_try_again(struct files *f, uint64_t now_ns)
{
	for (struct file *file = f->agains ? f->by_key : NULL; file; file = file->hh.next) {
		if (!file->again_ns || now_ns < file->again_ns)
			continue;
		again_drop(f, file);
		file->unwanted = false;
		files_want_rows(f, file);
	}
}

static void reopen_end(struct reopen *q, const struct opener_result *r)
{
	struct files *f = q->files;

	DL_DELETE(f->reopens, q);
	if (q->done) {
		q->done(q->ctx, r);
	} else if (r->status == 0) {
		f->config.needs_rows(f->config.rows_ctx, &q->file->pub, r->fd);
	} else if (opener_lacks_descriptors(r->status)) {
		q->file->rows_later = f->rows_later = true;
	} else {
		rows_failed(f, q->file, r->status);
	}
	file_put(f, q->file);
	free(q);
}

static int reopen_submit(struct reopen *q);

/* If a file is readable only through its mappings, its times are unknown, so compare device and
 * inode. */
static bool is_same_file(const struct file *file, const struct opener_file *o)
{
	const struct file_key *key = &file->key;

	return o->dev == key->dev && o->inode == key->inode &&
	       ((o->partial && file->foreign) ||
		(o->ctime_ns == key->ctime_ns && o->size == key->size));
}

static void reopened(void *ctx, const struct opener_result *r)
{
	struct reopen *q = ctx;
	struct files *f = q->files;
	struct opener_result result = *r;

	q->ticket = 0;
	f->figures.opens++;
	if (!result.status && !is_same_file(q->file, &result.file)) {
		closing_give(result.fd);
		result.fd = -1;
		result.status = OPENER_OTHER;
	}
	/* Meanwhile another request for the file was answered. It may have been the last one that
	 * the file's server allows. */
	if (result.status && q->file->copied && q->file->fd >= 0) {
		result = (struct opener_result){ .fd = file_dup_fd(f, q->file) };
		result.status = result.fd < 0 ? -EMFILE : opening_stat(result.fd, &result.file);
		reopen_end(q, &result);
		return;
	}
	q->waited = result.status == OPENER_TIMEOUT || result.status == OPENER_NO_ROOM;
	if (result.status && !q->by_path && reopen_submit(q) == 0)
		return;
	if (!result.status) {
		int keep = fcntl(result.fd, F_DUPFD_CLOEXEC, 3);

		if (keep >= 0)
			file_keep_fd(f, q->file, keep, clock_mono_ns());
	}
	reopen_end(q, &result);
}

static int reopen_submit(struct reopen *q)
{
	struct files *f = q->files;
	const struct host_file *pub = &q->file->pub;
	const struct files_mapper_search search = { .file = q->file,
						    .tried = q->tried,
						    .tried_count = q->tries,
						    .other_owner = q->waited };
	struct files_mapper m = { 0 };

	if (q->tries == 0 && q->first.pid)
		m = q->first;
	else if (q->tries < FILES_TRIES + 1)
		m = f->config.find(f->config.ctx, &search);
	/* Another way to the same file would also have to wait. */
	if (!m.pid && q->waited)
		return -EBUSY;
	struct opener_request o = {
		.kind = OPENER_MAPPING,
		.payer = m.pid		  ? m.owner
			 : q->file->owner ? q->file->owner
					  : q->file->finder,
		.sampled = true,
		.pid = m.pid,
		.start = m.start,
		.end = m.end,
		.path = { .data = pub->path, .len = pub->path_len },
		.dev = pub->dev,
		.inode = pub->inode,
	};

	if (!m.pid) {
		q->by_path = true;
		o.kind = OPENER_PATH;
		o.pid = q->tries ? q->tried[q->tries - 1].pid : 0;
	} else {
		q->tried[q->tries++] = m;
	}
	return opener_submit(f->config.opener, &o, reopened, q, &q->ticket);
}

/* first: where it is mapped, if known. */
static int reopen(struct files *f, struct file *file, struct files_mapper first, opener_done *done,
		  void *ctx)
{
	struct reopen *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	*q = (struct reopen){
		.files = f, .file = file_get(f, file), .first = first, .done = done, .ctx = ctx
	};
	int r = reopen_submit(q);
	if (r) {
		file_put(f, file);
		free(q);
		return r;
	}
	DL_APPEND(f->reopens, q);
	return 0;
}

int files_open(struct files *f, struct file *file, opener_done *done, void *ctx)
{
	int fd = file_dup_fd(f, file);

	if (fd < 0)
		return reopen(f, file, (struct files_mapper){ 0 }, done, ctx);
	struct opener_result r = {
		.fd = fd,
		.file = { .dev = file->key.dev,
			  .inode = file->key.inode,
			  .ctime_ns = file->key.ctime_ns,
			  .size = file->key.size,
			  .uid = file->pub.uid,
			  .mode = file->pub.mode,
			  .memfd = file->pub.flags & MSG_FILE_MEMFD },
	};
	struct opener_file now;

	/* Use the size of the copy if the size of the file is unknown. */
	if (file->copied && opening_stat(fd, &now) == 0)
		r.file.size = now.size;
	done(ctx, &r);
	return 0;
}

void reopening_want_rows(struct files *f, struct file *file, struct files_mapper at)
{
	const int fd = file_dup_fd(f, file);
	const int r = fd < 0 ? reopen(f, file, at, NULL, NULL) : 0;

	if (fd >= 0)
		f->config.needs_rows(f->config.rows_ctx, &file->pub, fd);
	else if (r)
		rows_failed(f, file, r);
}

void files_want_rows(struct files *f, struct file *file)
{
	if (!file->pub.slot || file->unwanted)
		return;
	tables_file_pending(f->config.tables, file->pub.slot);
	reopening_want_rows(f, file, (struct files_mapper){ 0 });
}

void reopening_done(struct files *f)
{
	struct reopen *q, *next;

	DL_FOREACH_SAFE(f->reopens, q, next) {
		opener_cancel(f->config.opener, q->ticket);
		file_put(f, q->file);
		free(q);
	}
}
