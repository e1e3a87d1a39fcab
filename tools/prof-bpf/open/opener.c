// SPDX-License-Identifier: Apache-2.0
/*
 * A few threads take requests from one queue. If a thread hangs, its request is answered with a
 * timeout. The thread keeps its place until the kernel releases it, and then closes what it opened.
 *
 * One dead mount (FUSE, NFS) must not take all threads. So each says which device it is about to
 * ask. At most two ask one device, and other requests for it wait. While a thread hangs in a
 * device, nobody asks it anything more.
 *
 * The state is shared with hanging threads and may outlive the opener: the last one to leave frees
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>
#include "common/base/clock.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/open/opening.h"

#define THREAD_STACK (128u << 10)
#define BUSY_NS 10000000 /* delay of a request whose device is busy */

struct job {
	struct opener_request q; /* strings are stored behind the struct */
	uint64_t ticket;
	opener_done *done;
	void *ctx;
	bool cancelled;
	struct opener_result result;
	struct job *next;
	UT_hash_handle hh; /* by ticket, until the callback */
	char text[];
};

struct worker {
	struct opener *opener;
	struct job *job; /* in progress, or NULL */
	uint64_t since_ns;
	uint64_t dev; /* that it asks; 0: none */
	bool hangs;   /* its job was given up */
	bool busy;    /* its job must wait for the device */
};

struct opener {
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct worker workers[OPENER_THREADS];
	unsigned alive; /* threads */
	bool leaving;
	int proc, event_fd;
	struct job *queue, **queue_end;
	struct job *finished, **finished_end;
	struct job *jobs; /* by ticket */
	size_t waiting;
	uint64_t ticket;
	unsigned hanging;
};

/* --- requests --- */

/* Copies a request, with NUL-terminated strings. NULL: no memory. */
static struct job *job_new(const struct opener_request *q)
{
	struct job *j = calloc(1, sizeof(*j) + q->path.len + 1 + q->name.len + 1 + q->build_id.len);

	if (!j)
		return NULL;
	j->q = *q;
	char *at = j->text;
	if (q->path.len)
		memcpy(at, q->path.data, q->path.len);
	j->q.path.data = at;
	at += q->path.len + 1;
	if (q->name.len)
		memcpy(at, q->name.data, q->name.len);
	j->q.name.data = at;
	at += q->name.len + 1;
	if (q->build_id.len)
		memcpy(at, q->build_id.data, q->build_id.len);
	j->q.build_id.data = (const uint8_t *)at;
	j->result.fd = -1;
	if (q->kind == OPENER_IN_FOLDER) {
		j->q.folder = fcntl(q->folder, F_DUPFD_CLOEXEC, 3);
		if (j->q.folder < 0) {
			free(j);
			return NULL;
		}
	}
	return j;
}

static void job_free(struct job *j)
{
	if (!j)
		return;
	closing_give(j->result.fd);
	if (j->q.kind == OPENER_IN_FOLDER)
		closing_give(j->q.folder);
	free(j);
}

/* --- threads --- */

static void opener_destroy(struct opener *o)
{
	if (o->proc >= 0)
		close(o->proc);
	if (o->event_fd >= 0)
		close(o->event_fd);
	pthread_cond_destroy(&o->work);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Under the lock. */
static void finish(struct opener *o, struct job *j)
{
	uint64_t one = 1;

	j->next = NULL;
	*o->finished_end = j;
	o->finished_end = &j->next;
	if (o->finished == j)
		(void)!write(o->event_fd, &one, sizeof(one));
}

/* Whether this thread may ask the device: nobody hangs in it, and not too many ask it. If so, notes
 * that it does. */
static bool worker_may_ask(void *ctx, uint64_t dev)
{
	struct worker *w = ctx;
	struct opener *o = w->opener;
	unsigned others = 0;
	bool hangs = closing_owes(dev);

	pthread_mutex_lock(&o->lock);
	for (unsigned i = 0; i < OPENER_THREADS; i++) {
		const struct worker *other = &o->workers[i];

		if (other != w && other->dev == dev) {
			others++;
			hangs |= other->hangs;
		}
	}
	w->busy = !hangs && others >= OPENER_THREADS_DEVICE;
	w->dev = hangs || w->busy ? 0 : dev;
	pthread_mutex_unlock(&o->lock);
	return !hangs && !w->busy;
}

/* Under the lock: puts a job at the end of the queue, since its device is busy. */
static void put_back(struct opener *o, struct job *j)
{
	struct timespec until;

	j->next = NULL;
	*o->queue_end = j;
	o->queue_end = &j->next;
	o->waiting++;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += BUSY_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&o->work, &o->lock, &until);
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	struct opener *o = w->opener;
	struct opening how = { .proc = o->proc, .may_ask = worker_may_ask, .ctx = w };

	pthread_mutex_lock(&o->lock);
	while (!o->leaving) {
		struct job *j = o->queue;

		if (!j) {
			pthread_cond_wait(&o->work, &o->lock);
			continue;
		}
		o->queue = j->next;
		if (!o->queue)
			o->queue_end = &o->queue;
		o->waiting--;
		if (j->cancelled) {
			finish(o, j);
			continue;
		}
		w->job = j;
		w->since_ns = clock_mono_ns();
		w->busy = false;
		pthread_mutex_unlock(&o->lock);

		struct opener_result result;
		opening_run(&how, &j->q, &result);

		pthread_mutex_lock(&o->lock);
		w->dev = 0;
		if (w->job != j) {
			/* Given up meanwhile: this thread frees the job. */
			j->result = result;
			job_free(j);
			o->hanging--;
			w->hangs = false;
			continue;
		}
		w->job = NULL;
		if (w->busy && result.status == OPENER_TIMEOUT && !o->leaving) {
			put_back(o, j);
			continue;
		}
		j->result = result;
		finish(o, j);
	}
	bool last = --o->alive == 0;
	pthread_mutex_unlock(&o->lock);
	if (last)
		opener_destroy(o);
	return NULL;
}

int opener_new(const char *proc, struct opener **ret)
{
	struct opener *o = calloc(1, sizeof(*o));
	pthread_condattr_t clock;
	pthread_attr_t attr;
	sigset_t all, old;
	int r = 0;

	if (!o)
		return -ENOMEM;
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&o->work, &clock);
	pthread_condattr_destroy(&clock);
	o->queue_end = &o->queue;
	o->finished_end = &o->finished;
	o->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	o->proc = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->event_fd < 0 || o->proc < 0) {
		r = -errno;
		opener_destroy(o);
		return r;
	}
	/* The main thread handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	o->alive = OPENER_THREADS;
	for (unsigned i = 0; i < OPENER_THREADS && !r; i++) {
		pthread_t thread;

		o->workers[i].opener = o;
		r = -pthread_create(&thread, &attr, worker_run, &o->workers[i]);
		if (r) {
			pthread_mutex_lock(&o->lock);
			o->alive -= OPENER_THREADS - i;
			pthread_mutex_unlock(&o->lock);
			if (i == 0)
				opener_destroy(o);
			else
				opener_free(o);
		}
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return r;
	*ret = o;
	return 0;
}

void opener_free(struct opener *o)
{
	struct job *j, *next;

	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->leaving = true;
	HASH_CLEAR(hh, o->jobs);
	for (j = o->queue; j; j = next) {
		next = j->next;
		job_free(j);
	}
	o->queue = NULL;
	for (j = o->finished; j; j = next) {
		next = j->next;
		job_free(j);
	}
	o->finished = NULL;
	/* From here on the thread owns the job in progress. */
	for (unsigned i = 0; i < OPENER_THREADS; i++)
		o->workers[i].job = NULL;
	pthread_cond_broadcast(&o->work);
	pthread_mutex_unlock(&o->lock);
}

int opener_fd(const struct opener *o)
{
	return o->event_fd;
}

int opener_submit(struct opener *o, const struct opener_request *q, opener_done *done, void *ctx,
		  uint64_t *ret_ticket)
{
	int r = opening_check(q);

	if (r)
		return r;
	struct job *j = job_new(q);
	if (!j)
		return -ENOMEM;
	j->done = done;
	j->ctx = ctx;
	pthread_mutex_lock(&o->lock);
	if (o->waiting >= OPENER_QUEUE_MAX) {
		pthread_mutex_unlock(&o->lock);
		job_free(j);
		return -ENOBUFS;
	}
	j->ticket = ++o->ticket;
	HASH_ADD(hh, o->jobs, ticket, sizeof(j->ticket), j);
	*o->queue_end = j;
	o->queue_end = &j->next;
	o->waiting++;
	*ret_ticket = j->ticket;
	pthread_cond_signal(&o->work);
	pthread_mutex_unlock(&o->lock);
	return 0;
}

void opener_cancel(struct opener *o, uint64_t ticket)
{
	struct job *j;

	pthread_mutex_lock(&o->lock);
	HASH_FIND(hh, o->jobs, &ticket, sizeof(ticket), j);
	if (j)
		j->cancelled = true;
	pthread_mutex_unlock(&o->lock);
}

/* Under the lock: answers a request of a hanging thread, or one that finds all threads hanging. */
static void give_up(struct opener *o, struct job *j, const struct job *hung)
{
	j->ticket = hung->ticket;
	j->done = hung->done;
	j->ctx = hung->ctx;
	j->cancelled = hung->cancelled;
	j->result.status = OPENER_TIMEOUT;
	finish(o, j);
}

/* Under the lock. */
static void expire(struct opener *o, uint64_t now_ns)
{
	for (unsigned i = 0; i < OPENER_THREADS; i++) {
		struct worker *w = &o->workers[i];

		if (!w->job || now_ns < w->since_ns || now_ns - w->since_ns < OPENER_DEADLINE_NS)
			continue;
		/* The hanging thread keeps its job; a stand-in is returned instead. */
		struct job *stand_in = calloc(1, sizeof(*stand_in) + 1);
		if (!stand_in)
			return;
		stand_in->result.fd = -1;
		struct job *hung = w->job;
		HASH_DEL(o->jobs, hung);
		w->job = NULL;
		w->hangs = true;
		o->hanging++;
		give_up(o, stand_in, hung);
		HASH_ADD(hh, o->jobs, ticket, sizeof(stand_in->ticket), stand_in);
	}
	if (o->hanging < o->alive)
		return;
	while (o->queue) {
		struct job *j = o->queue;

		o->queue = j->next;
		o->waiting--;
		give_up(o, j, j);
	}
	o->queue_end = &o->queue;
}

size_t opener_run(struct opener *o, uint64_t now_ns)
{
	uint64_t n;
	size_t called = 0;

	pthread_mutex_lock(&o->lock);
	expire(o, now_ns);
	struct job *list = o->finished;
	o->finished = NULL;
	o->finished_end = &o->finished;
	(void)!read(o->event_fd, &n, sizeof(n));
	pthread_mutex_unlock(&o->lock);

	while (list) {
		struct job *j = list;

		list = j->next;
		/* A previous callback may have cancelled it. */
		pthread_mutex_lock(&o->lock);
		HASH_DEL(o->jobs, j);
		pthread_mutex_unlock(&o->lock);
		if (!j->cancelled) {
			j->done(j->ctx, &j->result);
			j->result.fd = -1;
			called++;
		}
		job_free(j);
	}
	return called;
}

unsigned opener_hanging(struct opener *o)
{
	pthread_mutex_lock(&o->lock);
	const unsigned n = o->hanging;
	pthread_mutex_unlock(&o->lock);
	return n;
}
