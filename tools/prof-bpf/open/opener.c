/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request goes to the safe lane first. If it leads to a foreign file system, the worker reports
 * that before it asks that file system anything. The request then goes to the lane for foreign file
 * systems, with permission for this one device. The opener remembers such devices, so that requests
 * for mapped files there go to that lane directly.
 *
 * A file that has to be copied is opened twice: the first time shows what it is.
 */
#include "tools/prof-bpf/open/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/tables/hashtable.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/copies.h"
#include "tools/prof-bpf/open/opening/opening.h"
#include "tools/prof-bpf/open/workers/workerpool.h"

#define FOREIGN_KNOWN 64 /* devices */

struct opener_job {
	struct workerpool_job pub;
	struct opener *opener;
	struct opener_request q; /* without its strings */
	uint64_t ticket;
	opener_done *done;
	void *ctx;
	bool cancelled;
	uint64_t reserved;
	UT_hash_handle hh; /* by ticket, until the callback */
	/* The message, followed by its strings. */
	struct work work;
	char text[];
};

struct opener {
	struct workerpool *pool;
	struct copies copies;
	struct opener_job *jobs; /* by ticket */
	uint64_t ticket;
	uint64_t foreign[FOREIGN_KNOWN]; /* devices; the oldest is replaced */
	unsigned next_foreign;
	uint64_t no_room;
};

/* --- requests --- */

/* Copies a request, with NUL-terminated strings. NULL: no memory, or no descriptor. */
static struct opener_job *job_new(struct opener *o, const struct opener_request *q)
{
	const size_t text = (size_t)q->path.len + 1 + q->name.len + 1 + q->build_id.len;
	struct opener_job *j = calloc(1, sizeof(*j) + text);

	if (!j)
		return NULL;
	j->opener = o;
	j->q = *q;
	char *at = j->text;
	if (q->path.len)
		memcpy(at, q->path.data, q->path.len);
	at += q->path.len + 1;
	if (q->name.len)
		memcpy(at, q->name.data, q->name.len);
	at += q->name.len + 1;
	if (q->build_id.len)
		memcpy(at, q->build_id.data, q->build_id.len);
	j->work = (struct work){ .kind = WORK_OPEN, .q = *q };
	j->pub = (struct workerpool_job){ .sampled = q->sampled,
					  .owner = q->payer,
					  .pid = q->pid,
					  .deadline_ns = OPENER_DEADLINE_NS,
					  .message = &j->work,
					  .size = sizeof(j->work) + text,
					  .fd = -1 };
	if (q->kind == OPENER_IN_FOLDER) {
		j->pub.fd = fcntl(q->folder, F_DUPFD_CLOEXEC, 3);
		if (j->pub.fd < 0) {
			free(j);
			return NULL;
		}
	}
	return j;
}

static void job_free(struct opener_job *j)
{
	closing_give(j->pub.fd);
	free(j);
}

/* --- foreign devices --- */

static bool is_known_foreign(const struct opener *o, uint64_t dev)
{
	for (unsigned i = 0; dev && i < FOREIGN_KNOWN; i++)
		if (o->foreign[i] == dev)
			return true;
	return false;
}

static void note_foreign(struct opener *o, uint64_t dev)
{
	if (dev && !is_known_foreign(o, dev))
		o->foreign[o->next_foreign++ % FOREIGN_KNOWN] = dev;
}

/* Allows waiting for one more device. Device 0 stands for pages of the process, which are not on a
 * foreign file system. Returns false if the job has too many devices. */
static bool grant(struct opener_job *j, uint64_t dev)
{
	if (j->work.grants == OPENING_GRANTS)
		return false;
	j->work.granted[j->work.grants++] = dev;
	if (j->pub.lane == WORKERPOOL_SAFE)
		j->pub.dev_count = 0;
	if (dev)
		j->pub.devs[j->pub.dev_count++] = dev;
	j->pub.lane = j->pub.dev_count ? WORKERPOOL_FOREIGN : WORKERPOOL_MEMORY;
	return true;
}

/* --- answers --- */

static bool prepare(struct workerpool_job *pub)
{
	struct opener_job *j = (struct opener_job *)pub;
	struct opener *o = j->opener;

	if (!j->work.may_copy)
		return true;
	const uint64_t room = copies_room(&o->copies, pub->owner);

	if (!room) {
		o->no_room++;
		return false;
	}
	j->reserved = room < OPENER_COPY_MAX ? room : OPENER_COPY_MAX;
	o->copies.reserved += j->reserved;
	j->work.copy_max = j->reserved;
	return true;
}

static void finish(struct opener_job *j, const struct opener_result *r)
{
	HASH_DEL(j->opener->jobs, j);
	if (!j->cancelled)
		j->done(j->ctx, r);
	else
		closing_give(r->fd);
	job_free(j);
}

static void drop(struct workerpool_job *pub)
{
	struct opener_job *j = (struct opener_job *)pub;

	HASH_DEL(j->opener->jobs, j);
	job_free(j);
}

static void again(struct opener_job *j)
{
	const int r = workerpool_submit(j->opener->pool, &j->pub);

	if (r)
		finish(j, &(struct opener_result){ .status = r, .fd = -1 });
}

static int status_of(const struct workerpool_end *e)
{
	return e->status == -ETIMEDOUT || e->status == -EBUSY ? OPENER_TIMEOUT
	       : e->status == -ENOBUFS			      ? OPENER_NO_ROOM
							      : e->status;
}

static void done(struct workerpool_job *pub, const struct workerpool_end *e)
{
	struct opener_job *j = (struct opener_job *)pub;
	struct opener *o = j->opener;
	struct opener_result r = { .status = status_of(e), .fd = e->fds[0] };

	o->copies.reserved -= j->reserved;
	j->reserved = 0;
	if (!e->status) {
		r.status = e->answer->status;
		r.file = e->answer->file;
		r.place = e->answer->place;
		r.cpu_ns = e->answer->cpu_ns;
	}
	if (e->fds[1] >= 0)
		copies_add(&o->copies, e->fds[1], e->answer->copy_bytes, pub->owner);
	/* The kernel drops received descriptors if this process has none free. */
	const bool lost = !e->status && !r.status && r.fd < 0 &&
			  (!r.file.copied || j->work.may_copy);

	if (r.status == OPENER_FOREIGN)
		note_foreign(o, r.file.dev);
	/* Everything below a foreign file system is foreign. */
	if (r.status == OPENER_FOREIGN && j->q.by_users)
		r.status = OPENER_REFUSED;
	if (j->cancelled)
		finish(j, &r);
	else if (lost)
		finish(j, &(struct opener_result){ .status = -EMFILE, .fd = -1 });
	else if (r.status == OPENER_FOREIGN && grant(j, r.file.dev))
		again(j);
	else if (r.status == OPENER_FOREIGN)
		finish(j, &(struct opener_result){ .status = OPENER_TIMEOUT, .fd = -1 });
	else if (!r.status && r.fd < 0 && !j->q.look_only) {
		j->work.may_copy = true;
		again(j);
	} else {
		o->no_room += r.status == OPENER_NO_ROOM && !e->status;
		finish(j, &r);
	}
}

/* --- the public functions --- */

int opener_new(struct workerpool *pool, uint64_t copies_max, struct opener **ret)
{
	struct opener *o = calloc(1, sizeof(*o));

	if (!o || copies_init(&o->copies, copies_max)) {
		free(o);
		return -ENOMEM;
	}
	o->pool = pool;
	*ret = o;
	return 0;
}

void opener_free(struct opener *o)
{
	if (!o)
		return;
	copies_done(&o->copies);
	free(o);
}

void opener_charge(struct opener *o, struct owners *owners)
{
	copies_charge(&o->copies, owners);
}

int opener_submit(struct opener *o, const struct opener_request *q, opener_done *on_done, void *ctx,
		  uint64_t *ret_ticket)
{
	int r = opening_check(q);

	if (r)
		return r;
	struct opener_job *j = job_new(o, q);
	if (!j)
		return -ENOMEM;
	j->pub.prepare = prepare;
	j->pub.done = done;
	j->pub.drop = drop;
	j->done = on_done;
	j->ctx = ctx;
	j->pub.devs[0] = q->dev;
	j->pub.dev_count = 1;
	/* Examining a mapped file asks nothing of its file system, so it need not go to that
	 * lane. */
	if (q->kind == OPENER_MAPPING && !q->look_only && is_known_foreign(o, q->dev)) {
		j->work.may_copy = true;
		(void)grant(j, q->dev);
	}
	r = workerpool_submit(o->pool, &j->pub);
	if (r) {
		job_free(j);
		return r;
	}
	j->ticket = ++o->ticket;
	HASH_ADD(hh, o->jobs, ticket, sizeof(j->ticket), j);
	*ret_ticket = j->ticket;
	return 0;
}

void opener_cancel(struct opener *o, uint64_t ticket)
{
	struct opener_job *j;

	HASH_FIND(hh, o->jobs, &ticket, sizeof(ticket), j);
	if (!j)
		return;
	j->cancelled = true;
	/* Otherwise it would keep its memory while other owners' requests go first. */
	workerpool_withdraw(o->pool, &j->pub);
}

void opener_tick(struct opener *o, uint64_t now_ns)
{
	copies_look(&o->copies, now_ns);
}

void opener_figures(const struct opener *o, struct opener_figures *ret)
{
	*ret = (struct opener_figures){
		.copies = o->copies.count,
		.copy_bytes = o->copies.bytes,
		.no_room = o->no_room,
	};
}
