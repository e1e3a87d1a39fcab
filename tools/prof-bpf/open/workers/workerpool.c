/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/workers/workerpool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/wire/bus/scm.h"
#include "tools/prof-bpf/open/workers/openkeeper.h"
#include "tools/prof-bpf/open/workers/workerpool_internal.h"

#define DEATHS 2 /* how many workers may die of one job */
#define EVENTS 16
#define FROM_KEEPER WORKERPOOL_WORKERS
#define FROM_SELF (WORKERPOOL_WORKERS + 1)
#define RETRY_NS 1000000000ull /* wait after the keeper could not start a worker */

/* Ends a job. Its callback may submit others. */
static void finish(struct workerpool *pool, struct workerpool_job *j,
		   const struct workerpool_end *e)
{
	if (pool->owners && j->owner)
		owner_put(pool->owners, j->owner);
	j->done(j, e);
}

static int worker_watch(struct workerpool *pool, unsigned at)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = at };

	return epoll_ctl(pool->epoll, EPOLL_CTL_ADD, pool->workers[at].fd, &e) ? -errno : 0;
}

/* Begins the first of the worker's jobs. */
static void begins(struct workerpool *pool, struct workerpool_worker *w)
{
	const struct workerpool_job *j = w->jobs;

	workerpool_claims_drop(pool, w);
	w->since_ns = pool->now_ns;
	w->part_ns = 0;
	if (!j)
		return;
	w->deadline_ns = j->deadline_ns;
	workerpool_claims_take(pool, w, j);
}

/* Puts a worker's jobs back into the queue. */
static void worker_take_back(struct workerpool *pool, struct workerpool_worker *w, bool died)
{
	struct workerpool_job *list = w->jobs;

	w->jobs = NULL;
	w->count = 0;
	/* Begin with the last one, since each goes to the front. */
	while (list) {
		struct workerpool_job *j = list->prev;

		DL_DELETE(list, j);
		/* The first one is the job that it was working on. */
		if (!list && died && ++j->deaths >= DEATHS)
			workerpool_queue_end(pool, j, -EIO);
		else if (workerpool_queue_put(pool, j, true))
			workerpool_queue_end(pool, j, -ENOMEM);
	}
}

static void order(struct workerpool *pool, const struct openkeeper_order *o)
{
	(void)!send(pool->keeper_fd, o, sizeof(*o), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void worker_gone(struct workerpool *pool, struct workerpool_worker *w)
{
	(void)epoll_ctl(pool->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	close(w->fd);
	w->fd = -1;
	if (w->hung)
		pool->figures.hanging--;
	w->hung = w->closing = false;
	worker_take_back(pool, w, true);
	workerpool_claims_drop(pool, w);
	pool->figures.workers--;
}

/* Gives a worker up. Its first job ends; the others go to another worker. */
static void give_up(struct workerpool *pool, struct workerpool_worker *w)
{
	struct workerpool_job *j = w->closing ? NULL : w->jobs;

	if (j) {
		DL_DELETE(w->jobs, j);
		w->count--;
		workerpool_queue_end(pool, j, -ETIMEDOUT);
	}
	workerpool_claims_penalize(pool, &w->claim);
	w->penalized = w->hung = true;
	w->closing = false;
	pool->figures.hanging++;
	pool->figures.given_up++;
	worker_take_back(pool, w, false);
	/* The worker's further messages are ignored. It counts as hanging until its end of the
	 * socket is closed. */
	order(pool, &(struct openkeeper_order){ .what = OPENKEEPER_END, .pid = w->pid });
}

/* --- messages from workers --- */

static void close_all(const int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void answered(struct workerpool *pool, struct workerpool_worker *w,
		     const struct workerpool_end *e)
{
	struct workerpool_job *j = w->jobs;

	if (!e->answer->last) {
		w->part_ns = pool->now_ns;
		if (j->part)
			j->part(j, e);
		else
			close_all(e->fds);
		return;
	}
	DL_DELETE(w->jobs, j);
	w->count--;
	w->closing = w->slow;
	if (w->closing)
		w->since_ns = pool->now_ns;
	else
		begins(pool, w);
	finish(pool, j, e);
}

static void hear(struct workerpool *pool, struct workerpool_worker *w)
{
	for (;;) {
		struct workerpool_end e = { .answer = &pool->in.head };
		const ssize_t n = scm_receive(w->fd, &pool->in, sizeof(pool->in), e.fds, 2,
					      MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n < (ssize_t)sizeof(pool->in.head)) {
			close_all(e.fds);
			worker_gone(pool, w);
			return;
		}
		if (w->hung) {
			close_all(e.fds);
			continue;
		}
		if (e.answer->kind == WORK_READY && w->closing) {
			w->closing = false;
			w->since_ns = pool->now_ns;
			workerpool_claims_drop(pool, w);
			continue;
		}
		if (e.answer->kind != WORK_ANSWER || !w->jobs) {
			close_all(e.fds);
			continue;
		}
		e.bytes = (struct span){ .data = pool->in.bytes,
					 .len = (uint32_t)((size_t)n - sizeof(pool->in.head)) };
		answered(pool, w, &e);
	}
}

static void lose_keeper(struct workerpool *pool)
{
	(void)epoll_ctl(pool->epoll, EPOLL_CTL_DEL, pool->keeper_fd, NULL);
	close(pool->keeper_fd);
	pool->keeper_fd = -1;
	pool->starting = false;
}

static void hear_keeper(struct workerpool *pool)
{
	struct openkeeper_answer a;
	unsigned at = 0;
	int fd = -1;
	const ssize_t n = scm_receive(pool->keeper_fd, &a, sizeof(a), &fd, 1, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return;
	if (n != sizeof(a)) {
		if (fd >= 0)
			close(fd);
		lose_keeper(pool);
		return;
	}
	pool->starting = false;
	while (at < WORKERPOOL_WORKERS && pool->workers[at].fd >= 0)
		at++;
	if (fd < 0 || at == WORKERPOOL_WORKERS) {
		if (fd >= 0)
			close(fd);
		pool->retry_ns = pool->now_ns + RETRY_NS;
		return;
	}
	pool->workers[at] = (struct workerpool_worker){
		.fd = fd, .pid = a.pid, .slow = pool->starting_slow, .since_ns = pool->now_ns
	};
	if (worker_watch(pool, at)) {
		close(fd);
		pool->workers[at].fd = -1;
		return;
	}
	pool->figures.workers++;
}

/* --- giving work to workers --- */

static void want_worker(struct workerpool *pool, bool slow)
{
	if (pool->starting || pool->keeper_fd < 0 || pool->now_ns < pool->retry_ns)
		return;
	pool->starting = true;
	pool->starting_slow = slow;
	order(pool, &(struct openkeeper_order){ .what = OPENKEEPER_START });
}

/* Returns the worker with the fewest jobs. *ret_active: how many workers there are. *ret_waits:
 * whether that worker has been busy for a while. */
static struct workerpool_worker *least_busy(struct workerpool *pool, bool slow,
					    unsigned *ret_active, bool *ret_waits)
{
	struct workerpool_worker *best = NULL;

	*ret_active = 0;
	*ret_waits = false;
	for (unsigned i = 0; i < WORKERPOOL_WORKERS; i++) {
		struct workerpool_worker *w = &pool->workers[i];

		if (w->fd < 0 || w->hung || w->slow != slow || workerpool_claims_is_slow(pool, w))
			continue;
		(*ret_active)++;
		if (workerpool_claims_is_busy(w) && pool->now_ns - w->since_ns > WORKERPOOL_MORE_NS)
			*ret_waits = true;
		if (slow ? !workerpool_claims_is_busy(w) : w->count < WORKERPOOL_AHEAD)
			best = !best || w->count < best->count ? w : best;
	}
	return best;
}

static void give(struct workerpool *pool, struct workerpool_worker *w, struct workerpool_job *j)
{
	if (j->prepare && !j->prepare(j)) {
		workerpool_queue_end(pool, j, -ENOBUFS);
		return;
	}
	j->message->slow = w->slow;
	const ssize_t n = scm_send(w->fd, j->message, j->size, &j->fd, j->fd >= 0, MSG_DONTWAIT);

	if (n < 0) {
		/* The socket is full, which is not possible, or the worker has died, which `hear`
		 * will find. */
		if (workerpool_queue_put(pool, j, true))
			workerpool_queue_end(pool, j, -ENOMEM);
		return;
	}
	DL_APPEND(w->jobs, j);
	w->count++;
	if (w->count == 1)
		begins(pool, w);
}

static void serve(struct workerpool *pool, enum workerpool_lane lane)
{
	const bool slow = lane != WORKERPOOL_SAFE;
	const unsigned most = slow ? WORKERPOOL_SLOW_MAX : WORKERPOOL_SAFE_MAX;
	unsigned active;
	bool waits;

	while (!workerpool_queue_is_empty(pool, lane)) {
		struct workerpool_worker *w = least_busy(pool, slow, &active, &waits);

		if (!active || ((!w || waits) && active < most))
			want_worker(pool, slow);
		struct workerpool_job *j = w ? workerpool_queue_take(pool, lane) : NULL;

		if (!j)
			return;
		const unsigned before = pool->waiting;

		give(pool, w, j);
		if (pool->waiting > before)
			return;
	}
}

/* Whether a worker past its deadline has some more time: it has a cpu, or waits for one, or it sent
 * a part of its answer within the last deadline. A hanging worker sleeps in the kernel and sends
 * nothing. */
static bool is_getting_on(const struct workerpool *pool, const struct workerpool_worker *w)
{
	struct procfs_stat st;

	if (pool->now_ns >= w->since_ns + WORKERPOOL_PATIENCE * w->deadline_ns)
		return false;
	if (w->part_ns && pool->now_ns < w->part_ns + w->deadline_ns)
		return true;
	return procfs_read_stat(pool->proc, (uint32_t)w->pid, &st) == 0 && st.state == 'R';
}

static void expire(struct workerpool *pool)
{
	unsigned idle = 0;

	for (unsigned i = 0; i < WORKERPOOL_WORKERS; i++) {
		struct workerpool_worker *w = &pool->workers[i];

		w->penalized &= pool->now_ns < w->since_ns + w->deadline_ns + WORKERPOOL_PENALTY_NS;
		if (w->fd < 0 || w->hung)
			continue;
		const bool late = workerpool_claims_is_busy(w) &&
				  pool->now_ns > w->since_ns + w->deadline_ns;

		if (late && !is_getting_on(pool, w))
			give_up(pool, w);
		else if (!workerpool_claims_is_busy(w) && (w->slow || idle++) &&
			 pool->now_ns > w->since_ns + WORKERPOOL_IDLE_NS)
			worker_gone(pool, w);
	}
}

void workerpool_run(struct workerpool *pool, uint64_t now_ns)
{
	struct epoll_event events[EVENTS];
	uint64_t counted;
	int n;

	pool->now_ns = now_ns;
	n = epoll_wait(pool->epoll, events, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		const uint32_t from = events[i].data.u32;

		if (from == FROM_KEEPER && pool->keeper_fd >= 0)
			hear_keeper(pool);
		else if (from == FROM_SELF)
			(void)!read(pool->event_fd, &counted, sizeof(counted));
		else if (from < WORKERPOOL_WORKERS && pool->workers[from].fd >= 0)
			hear(pool, &pool->workers[from]);
	}
	expire(pool);
	if (pool->keeper_fd < 0 && !pool->figures.workers)
		workerpool_queue_end_all(pool, -EPIPE);
	for (int lane = 0; lane < WORKERPOOL_LANES; lane++)
		serve(pool, (enum workerpool_lane)lane);
	struct workerpool_job *list = pool->ended;

	pool->ended = NULL;
	while (list) {
		struct workerpool_job *j = list;
		const struct workerpool_end e = { .status = j->status, .fds = { -1, -1 } };

		DL_DELETE(list, j);
		finish(pool, j, &e);
	}
}

/* --- the public functions --- */

int workerpool_start(const char *proc, struct workerpool **ret)
{
	struct epoll_event from_keeper = { .events = EPOLLIN, .data.u32 = FROM_KEEPER },
			   from_self = { .events = EPOLLIN, .data.u32 = FROM_SELF };
	struct workerpool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	for (unsigned i = 0; i < WORKERPOOL_WORKERS; i++)
		pool->workers[i].fd = -1;
	pool->keeper_fd = -1;
	pool->proc = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	pool->epoll = epoll_create1(EPOLL_CLOEXEC);
	pool->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = pool->proc < 0 || pool->epoll < 0 || pool->event_fd < 0 ? -errno : 0;

	if (!r)
		r = openkeeper_start(proc, &pool->keeper_fd, &pool->keeper);
	if (!r && (epoll_ctl(pool->epoll, EPOLL_CTL_ADD, pool->keeper_fd, &from_keeper) ||
		   epoll_ctl(pool->epoll, EPOLL_CTL_ADD, pool->event_fd, &from_self)))
		r = -errno;
	if (r) {
		workerpool_free(pool);
		return r;
	}
	pool->now_ns = clock_mono_ns();
	*ret = pool;
	return 0;
}

static void drop_all(struct workerpool_job **list)
{
	while (*list) {
		struct workerpool_job *j = *list;

		DL_DELETE(*list, j);
		j->drop(j);
	}
}

void workerpool_free(struct workerpool *pool)
{
	if (!pool)
		return;
	workerpool_charge(pool, NULL);
	for (unsigned i = 0; i < WORKERPOOL_WORKERS; i++) {
		drop_all(&pool->workers[i].jobs);
		if (pool->workers[i].fd >= 0)
			close(pool->workers[i].fd);
	}
	workerpool_queue_end_all(pool, 0);
	drop_all(&pool->ended);
	if (pool->keeper_fd >= 0)
		close(pool->keeper_fd);
	if (pool->epoll >= 0)
		close(pool->epoll);
	if (pool->event_fd >= 0)
		close(pool->event_fd);
	if (pool->proc >= 0)
		close(pool->proc);
	free(pool);
}

static void disown(struct workerpool *pool, struct workerpool_job *j)
{
	if (pool->owners && j->owner)
		owner_put(pool->owners, j->owner);
	j->owner = NULL;
}

void workerpool_charge(struct workerpool *pool, struct owners *owners)
{
	struct workerpool_job *j, *list = NULL;

	if (owners) {
		pool->owners = owners;
		return;
	}
	/* From now on no job has an owner. */
	for (int lane = 0; lane < WORKERPOOL_LANES; lane++)
		for (int i = 0; i < 2; i++)
			while (pool->lanes[lane].lines[i]) {
				j = pool->lanes[lane].lines[i]->jobs;
				workerpool_queue_remove(pool, j);
				DL_APPEND(list, j);
			}
	for (unsigned i = 0; i < WORKERPOOL_WORKERS; i++) {
		if (pool->workers[i].fd < 0)
			continue;
		struct workerpool_claim *claim = &pool->workers[i].claim;

		if (pool->workers[i].charged)
			workerpool_claims_release(pool, claim->owner, OWNER_OPENERS);
		pool->workers[i].charged = false;
		if (pool->owners && claim->owner)
			owner_put(pool->owners, claim->owner);
		claim->owner = NULL;
		DL_FOREACH(pool->workers[i].jobs, j)
			disown(pool, j);
	}
	for (unsigned i = 0; i < WORKERPOOL_PENALTIES; i++)
		workerpool_claims_forgive(pool, &pool->penalties[i]);
	DL_FOREACH(pool->ended, j)
		disown(pool, j);
	DL_FOREACH(list, j)
		disown(pool, j);
	pool->owners = NULL;
	while (list) {
		j = list;
		DL_DELETE(list, j);
		if (workerpool_queue_put(pool, j, false))
			workerpool_queue_end(pool, j, -ENOMEM);
	}
}

int workerpool_fd(const struct workerpool *pool)
{
	return pool->epoll;
}

bool workerpool_lost(const struct workerpool *pool)
{
	return pool->keeper_fd < 0;
}

pid_t workerpool_keeper(const struct workerpool *pool)
{
	return pool->keeper;
}

void workerpool_figures(const struct workerpool *pool, struct workerpool_figures *ret)
{
	*ret = pool->figures;
}
