/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/open/reader.h"

#define THREAD_STACK (128u << 10)

struct job {
	struct job *next;
	reader_done *done;
	void *ctx;
	int fd;
	uint32_t pid, uid, pieces;
	uint64_t since_ns;
	bool given_up; /* its thread hangs, and frees the job */
	int status;
	struct buf bytes;
	uint64_t addresses[READER_PIECES], lengths[READER_PIECES];
};

struct reader {
	pthread_mutex_t lock;
	pthread_cond_t work;
	int event_fd;
	bool active; /* a thread takes jobs */
	bool leaving;
	unsigned users; /* threads and the owner; the last one frees this */
	unsigned waiting;
	struct job *queue, **queue_end;
	struct job *finished, **finished_end;
	struct job *running;
	struct job *hanging[READER_HANGING];
};

/* --- reading, which may hang --- */

/* Reads what exists of each piece, up to its first unreadable page. */
static int read_memory(struct job *j)
{
	struct iovec remote[READER_PIECES];

	for (uint32_t i = 0; i < j->pieces; i++)
		remote[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)j->addresses[i],
					    .iov_len = j->lengths[i] };
	memset(j->lengths, 0, sizeof(j->lengths));
	for (uint32_t i = 0; i < j->pieces;) {
		struct iovec local = { .iov_base = j->bytes.data + j->bytes.len,
				       .iov_len = j->bytes.cap - j->bytes.len };
		ssize_t got = process_vm_readv((pid_t)j->pid, &local, 1, remote + i, j->pieces - i,
					       0);
		size_t left = got > 0 ? (size_t)got : 0;
		bool whole = true;

		if (got < 0 && errno != EFAULT)
			return -errno;
		while (i < j->pieces && whole) {
			j->lengths[i] = left < remote[i].iov_len ? left : remote[i].iov_len;
			whole = j->lengths[i] == remote[i].iov_len;
			left -= j->lengths[i];
			j->bytes.len += j->lengths[i];
			i++;
		}
	}
	return 0;
}

static int read_file(struct job *j)
{
	for (uint32_t i = 0; i < j->pieces; i++) {
		ssize_t got = j->addresses[i] > INT64_MAX
				      ? 0
				      : pread(j->fd, j->bytes.data + j->bytes.len, j->lengths[i],
					      (off_t)j->addresses[i]);

		if (got < 0)
			return -errno;
		j->lengths[i] = (uint64_t)got;
		j->bytes.len += (size_t)got;
	}
	return 0;
}

static int read_job(struct job *j)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < j->pieces; i++)
		bytes += j->lengths[i];
	int r = buf_reserve(&j->bytes, bytes);
	if (r)
		return r;
	return j->fd >= 0 ? read_file(j) : read_memory(j);
}

/* --- threads --- */

static void job_free(struct job *j)
{
	closing_give(j->fd);
	buf_done(&j->bytes);
	free(j);
}

static void jobs_free(struct job *j)
{
	while (j) {
		struct job *next = j->next;

		job_free(j);
		j = next;
	}
}

static void reader_destroy(struct reader *r)
{
	jobs_free(r->queue);
	jobs_free(r->finished);
	if (r->event_fd >= 0)
		close(r->event_fd);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Under the lock, which it releases. */
static void leave(struct reader *r)
{
	bool last = --r->users == 0;

	pthread_mutex_unlock(&r->lock);
	if (last)
		reader_destroy(r);
}

/* Under the lock. */
static void finish(struct reader *r, struct job *j)
{
	uint64_t one = 1;

	j->next = NULL;
	*r->finished_end = j;
	r->finished_end = &j->next;
	(void)!write(r->event_fd, &one, sizeof(one));
}

/* Under the lock: a thread returned from a job that was given up. True if it takes jobs again. */
static bool come_back(struct reader *r, struct job *j)
{
	bool needed = !r->active;

	for (unsigned i = 0; i < READER_HANGING; i++) {
		if (r->hanging[i] == j)
			r->hanging[i] = NULL;
	}
	job_free(j);
	r->active = true;
	return needed;
}

static void *reader_thread(void *arg)
{
	struct reader *r = arg;
	bool goes_on = true;

	pthread_mutex_lock(&r->lock);
	while (goes_on && !r->leaving) {
		struct job *j = r->queue;

		if (!j) {
			pthread_cond_wait(&r->work, &r->lock);
			continue;
		}
		r->queue = j->next;
		if (!r->queue)
			r->queue_end = &r->queue;
		r->waiting--;
		r->running = j;
		j->since_ns = clock_mono_ns();
		pthread_mutex_unlock(&r->lock);

		int status = read_job(j);

		pthread_mutex_lock(&r->lock);
		if (j->given_up) {
			goes_on = come_back(r, j);
			continue;
		}
		j->status = status;
		r->running = NULL;
		finish(r, j);
	}
	leave(r);
	return NULL;
}

/* Under the lock. */
static int start_thread(struct reader *r)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	/* The main thread handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r->users++;
	r->active = true;
	int e = -pthread_create(&thread, &attr, reader_thread, r);
	if (e) {
		r->users--;
		r->active = false;
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return e;
}

/* --- for the caller --- */

int reader_new(struct reader **ret)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	r->queue_end = &r->queue;
	r->finished_end = &r->finished;
	r->users = 1;
	r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int e = r->event_fd < 0 ? -errno : 0;
	if (e) {
		reader_destroy(r);
		return e;
	}
	*ret = r;
	return 0;
}

void reader_free(struct reader *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->leaving = true;
	/* From here on the thread owns the job in progress. */
	if (r->running)
		r->running->given_up = true;
	r->running = NULL;
	pthread_cond_broadcast(&r->work);
	leave(r);
}

int reader_fd(const struct reader *r)
{
	return r->event_fd;
}

/* Under the lock. */
static int admit(struct reader *r, const struct reader_request *q)
{
	unsigned of_user = 0;

	for (unsigned i = 0; i < READER_HANGING; i++) {
		const struct job *j = r->hanging[i];

		if (j && q->pid && j->pid == q->pid)
			return -EACCES;
		of_user += j && j->uid == q->uid;
	}
	if (of_user >= READER_HANGING_OF_USER)
		return -EACCES;
	if (r->waiting >= READER_QUEUE_MAX)
		return -EAGAIN;
	if (r->active)
		return 0;
	for (unsigned i = 0; i < READER_HANGING; i++) {
		if (!r->hanging[i])
			return start_thread(r) ? -EAGAIN : 0;
	}
	return -EAGAIN;
}

int reader_submit(struct reader *r, const struct reader_request *q, reader_done *done, void *ctx)
{
	struct job *j;

	if (q->pieces > READER_PIECES || (q->fd < 0) != (q->pid != 0))
		return -EINVAL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct job){ .done = done,
			   .ctx = ctx,
			   .fd = q->fd,
			   .pid = q->pid,
			   .uid = q->uid,
			   .pieces = q->pieces };
	if (q->pieces) {
		memcpy(j->addresses, q->addresses, q->pieces * sizeof(*j->addresses));
		memcpy(j->lengths, q->lengths, q->pieces * sizeof(*j->lengths));
	}
	pthread_mutex_lock(&r->lock);
	int e = admit(r, q);
	if (!e) {
		*r->queue_end = j;
		r->queue_end = &j->next;
		r->waiting++;
		pthread_cond_signal(&r->work);
	}
	pthread_mutex_unlock(&r->lock);
	if (e)
		free(j);
	return e;
}

/* Under the lock: gives up a job that runs too long. A stand-in is returned instead of it. */
static void expire(struct reader *r, uint64_t now_ns)
{
	struct job *j = r->running, *stand_in;
	unsigned at = 0;

	if (!j || now_ns < j->since_ns || now_ns - j->since_ns < READER_DEADLINE_NS)
		return;
	stand_in = calloc(1, sizeof(*stand_in));
	if (!stand_in)
		return;
	while (at < READER_HANGING && r->hanging[at])
		at++;
	if (at < READER_HANGING)
		r->hanging[at] = j;
	*stand_in = (struct job){
		.done = j->done, .ctx = j->ctx, .fd = -1, .pieces = j->pieces, .status = -ETIMEDOUT
	};
	j->given_up = true;
	r->running = NULL;
	r->active = false;
	finish(r, stand_in);
	for (at = 0; at < READER_HANGING && r->hanging[at]; at++)
		;
	if (at < READER_HANGING && start_thread(r) == 0)
		return;
	/* No thread is left to read the waiting jobs. */
	while (r->queue) {
		j = r->queue;
		r->queue = j->next;
		r->waiting--;
		j->status = -EAGAIN;
		memset(j->lengths, 0, sizeof(j->lengths));
		finish(r, j);
	}
	r->queue_end = &r->queue;
}

void reader_run(struct reader *r, uint64_t now_ns)
{
	uint64_t n;

	pthread_mutex_lock(&r->lock);
	expire(r, now_ns);
	struct job *j = r->finished;
	r->finished = NULL;
	r->finished_end = &r->finished;
	(void)!read(r->event_fd, &n, sizeof(n));
	pthread_mutex_unlock(&r->lock);

	while (j) {
		struct job *next = j->next;
		struct reader_result result = { .status = j->status,
						.bytes = j->bytes,
						.pieces = j->pieces,
						.lengths = j->lengths };

		j->done(j->ctx, &result);
		j->bytes = result.bytes;
		job_free(j);
		j = next;
	}
}

unsigned reader_hanging(struct reader *r)
{
	unsigned n = 0;

	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < READER_HANGING; i++)
		n += r->hanging[i] != NULL;
	pthread_mutex_unlock(&r->lock);
	return n;
}
