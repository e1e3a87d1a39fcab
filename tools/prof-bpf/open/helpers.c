/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>
#include "common/base/clock.h"
#include "common/walk/procfs.h"
#include "common/wire/scm.h"
#include "tools/prof-bpf/open/helpers_internal.h"
#include "tools/prof-bpf/open/openkeeper.h"

#define DEATHS 2 /* workers that may die of one job */
#define EVENTS 16
#define FROM_KEEPER HELPERS_WORKERS
#define FROM_SELF (HELPERS_WORKERS + 1)
#define RETRY_NS 1000000000ull /* after the keeper could not start a worker */

/* This may submit others. */
static void finish(struct helpers *h, struct helpers_job *j, const struct helpers_end *e)
{
	if (h->owners && j->owner)
		owner_put(h->owners, j->owner);
	j->done(j, e);
}

static int worker_watch(struct helpers *h, unsigned at)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = at };

	return epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->workers[at].fd, &e) ? -errno : 0;
}

/* The first of its jobs is the one that it does. */
static void begins(struct helpers *h, struct helpers_worker *w)
{
	const struct helpers_job *j = w->jobs;

	claims_drop(h, w);
	w->since_ns = h->now_ns;
	if (!j)
		return;
	w->deadline_ns = j->deadline_ns;
	claims_take(h, w, j);
}

/* Its jobs wait again. */
static void worker_take_back(struct helpers *h, struct helpers_worker *w, bool died)
{
	struct helpers_job *list = w->jobs;

	w->jobs = NULL;
	w->count = 0;
	/* The last one first, since each goes to the front. */
	while (list) {
		struct helpers_job *j = list->prev;

		DL_DELETE(list, j);
		/* The first one is what it was doing. */
		if (!list && died && ++j->deaths >= DEATHS)
			queue_end(h, j, -EIO);
		else if (queue_put(h, j, true))
			queue_end(h, j, -ENOMEM);
	}
}

static void order(struct helpers *h, const struct openkeeper_order *o)
{
	(void)!send(h->keeper_fd, o, sizeof(*o), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void worker_gone(struct helpers *h, struct helpers_worker *w)
{
	(void)epoll_ctl(h->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	close(w->fd);
	w->fd = -1;
	if (w->hung)
		h->figures.hanging--;
	w->hung = w->closing = false;
	worker_take_back(h, w, true);
	claims_drop(h, w);
	h->figures.workers--;
}

/* Gives a worker up. Its first job ends; the others go to another worker. */
static void give_up(struct helpers *h, struct helpers_worker *w)
{
	struct helpers_job *j = w->closing ? NULL : w->jobs;

	if (j) {
		DL_DELETE(w->jobs, j);
		w->count--;
		queue_end(h, j, -ETIMEDOUT);
	}
	claims_penalize(h, &w->claim);
	w->penalized = w->hung = true;
	w->closing = false;
	h->figures.hanging++;
	h->figures.given_up++;
	worker_take_back(h, w, false);
	/* Whatever it still says is ignored. It counts until its end of the socket is closed. */
	order(h, &(struct openkeeper_order){ .what = OPENKEEPER_END, .pid = w->pid });
}

/* --- what workers say --- */

static void close_all(const int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void answered(struct helpers *h, struct helpers_worker *w, const struct helpers_end *e)
{
	struct helpers_job *j = w->jobs;

	if (!e->answer->last) {
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
		w->since_ns = h->now_ns;
	else
		begins(h, w);
	finish(h, j, e);
}

static void hear(struct helpers *h, struct helpers_worker *w)
{
	for (;;) {
		struct helpers_end e = { .answer = &h->in.head };
		const ssize_t n = scm_receive(w->fd, &h->in, sizeof(h->in), e.fds, 2, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n < (ssize_t)sizeof(h->in.head)) {
			close_all(e.fds);
			worker_gone(h, w);
			return;
		}
		if (w->hung) {
			close_all(e.fds);
			continue;
		}
		if (e.answer->kind == WORK_READY && w->closing) {
			w->closing = false;
			w->since_ns = h->now_ns;
			claims_drop(h, w);
			continue;
		}
		if (e.answer->kind != WORK_ANSWER || !w->jobs) {
			close_all(e.fds);
			continue;
		}
		e.bytes = (struct span){ .data = h->in.bytes,
					 .len = (uint32_t)((size_t)n - sizeof(h->in.head)) };
		answered(h, w, &e);
	}
}

static void lose_keeper(struct helpers *h)
{
	(void)epoll_ctl(h->epoll, EPOLL_CTL_DEL, h->keeper_fd, NULL);
	close(h->keeper_fd);
	h->keeper_fd = -1;
	h->starting = false;
}

static void hear_keeper(struct helpers *h)
{
	struct openkeeper_answer a;
	unsigned at = 0;
	int fd = -1;
	const ssize_t n = scm_receive(h->keeper_fd, &a, sizeof(a), &fd, 1, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return;
	if (n != sizeof(a)) {
		if (fd >= 0)
			close(fd);
		lose_keeper(h);
		return;
	}
	h->starting = false;
	while (at < HELPERS_WORKERS && h->workers[at].fd >= 0)
		at++;
	if (fd < 0 || at == HELPERS_WORKERS) {
		if (fd >= 0)
			close(fd);
		h->retry_ns = h->now_ns + RETRY_NS;
		return;
	}
	h->workers[at] = (struct helpers_worker){
		.fd = fd, .pid = a.pid, .slow = h->starting_slow, .since_ns = h->now_ns
	};
	if (worker_watch(h, at)) {
		close(fd);
		h->workers[at].fd = -1;
		return;
	}
	h->figures.workers++;
}

/* --- what workers do --- */

static void want_worker(struct helpers *h, bool slow)
{
	if (h->starting || h->keeper_fd < 0 || h->now_ns < h->retry_ns)
		return;
	h->starting = true;
	h->starting_slow = slow;
	order(h, &(struct openkeeper_order){ .what = OPENKEEPER_START });
}

/* The worker that has least to do. *ret_active: how many there are. *ret_waits: whether the one is
 * busy for a while. */
static struct helpers_worker *least_busy(struct helpers *h, bool slow, unsigned *ret_active,
					 bool *ret_waits)
{
	struct helpers_worker *best = NULL;

	*ret_active = 0;
	*ret_waits = false;
	for (unsigned i = 0; i < HELPERS_WORKERS; i++) {
		struct helpers_worker *w = &h->workers[i];

		if (w->fd < 0 || w->hung || w->slow != slow)
			continue;
		(*ret_active)++;
		if (claims_is_busy(w) && h->now_ns - w->since_ns > HELPERS_MORE_NS)
			*ret_waits = true;
		if (slow ? !claims_is_busy(w) : w->count < HELPERS_AHEAD)
			best = !best || w->count < best->count ? w : best;
	}
	return best;
}

static void give(struct helpers *h, struct helpers_worker *w, struct helpers_job *j)
{
	if (j->prepare && !j->prepare(j)) {
		queue_end(h, j, -ENOBUFS);
		return;
	}
	j->message->slow = w->slow;
	const ssize_t n = scm_send(w->fd, j->message, j->size, &j->fd, j->fd >= 0, MSG_DONTWAIT);

	if (n < 0) {
		/* It is full, which it cannot be, or has died, which hear will find. */
		if (queue_put(h, j, true))
			queue_end(h, j, -ENOMEM);
		return;
	}
	DL_APPEND(w->jobs, j);
	w->count++;
	if (w->count == 1)
		begins(h, w);
}

static void serve(struct helpers *h, enum helpers_lane lane)
{
	const bool slow = lane != HELPERS_SAFE;
	const unsigned most = slow ? HELPERS_SLOW_MAX : HELPERS_SAFE_MAX;
	unsigned active;
	bool waits;

	while (!queue_is_empty(h, lane)) {
		struct helpers_worker *w = least_busy(h, slow, &active, &waits);

		if (!active || ((!w || waits) && active < most))
			want_worker(h, slow);
		struct helpers_job *j = w ? queue_take(h, lane) : NULL;

		if (!j)
			return;
		const unsigned before = h->waiting;

		give(h, w, j);
		if (h->waiting > before)
			return;
	}
}

/* Whether a worker past its deadline waits for a cpu, or has one. What hangs sleeps in the
 * kernel. */
static bool is_starved(const struct helpers *h, const struct helpers_worker *w)
{
	struct procfs_stat st;

	return h->now_ns < w->since_ns + HELPERS_PATIENCE * w->deadline_ns &&
	       procfs_read_stat(h->proc, (uint32_t)w->pid, &st) == 0 && st.state == 'R';
}

static void expire(struct helpers *h)
{
	unsigned idle = 0;

	for (unsigned i = 0; i < HELPERS_WORKERS; i++) {
		struct helpers_worker *w = &h->workers[i];

		w->penalized &= h->now_ns < w->since_ns + w->deadline_ns + HELPERS_PENALTY_NS;
		if (w->fd < 0 || w->hung)
			continue;
		const bool late = claims_is_busy(w) && h->now_ns > w->since_ns + w->deadline_ns;

		if (late && !is_starved(h, w))
			give_up(h, w);
		else if (!claims_is_busy(w) && (w->slow || idle++) &&
			 h->now_ns > w->since_ns + HELPERS_IDLE_NS)
			worker_gone(h, w);
	}
}

void helpers_run(struct helpers *h, uint64_t now_ns)
{
	struct epoll_event events[EVENTS];
	uint64_t counted;
	int n;

	h->now_ns = now_ns;
	n = epoll_wait(h->epoll, events, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		const uint32_t from = events[i].data.u32;

		if (from == FROM_KEEPER && h->keeper_fd >= 0)
			hear_keeper(h);
		else if (from == FROM_SELF)
			(void)!read(h->event_fd, &counted, sizeof(counted));
		else if (from < HELPERS_WORKERS && h->workers[from].fd >= 0)
			hear(h, &h->workers[from]);
	}
	expire(h);
	if (h->keeper_fd < 0 && !h->figures.workers)
		queue_end_all(h, -EPIPE);
	for (int lane = 0; lane < HELPERS_LANES; lane++)
		serve(h, (enum helpers_lane)lane);
	struct helpers_job *list = h->ended;

	h->ended = NULL;
	while (list) {
		struct helpers_job *j = list;
		const struct helpers_end e = { .status = j->status, .fds = { -1, -1 } };

		DL_DELETE(list, j);
		finish(h, j, &e);
	}
}

/* --- the whole --- */

int helpers_start(const char *proc, struct helpers **ret)
{
	struct epoll_event from_keeper = { .events = EPOLLIN, .data.u32 = FROM_KEEPER },
			   from_self = { .events = EPOLLIN, .data.u32 = FROM_SELF };
	struct helpers *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	for (unsigned i = 0; i < HELPERS_WORKERS; i++)
		h->workers[i].fd = -1;
	h->keeper_fd = -1;
	h->proc = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	h->epoll = epoll_create1(EPOLL_CLOEXEC);
	h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = h->proc < 0 || h->epoll < 0 || h->event_fd < 0 ? -errno : 0;

	if (!r)
		r = openkeeper_start(proc, &h->keeper_fd, &h->keeper);
	if (!r && (epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->keeper_fd, &from_keeper) ||
		   epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->event_fd, &from_self)))
		r = -errno;
	if (r) {
		helpers_free(h);
		return r;
	}
	h->now_ns = clock_mono_ns();
	*ret = h;
	return 0;
}

static void drop_all(struct helpers_job **list)
{
	while (*list) {
		struct helpers_job *j = *list;

		DL_DELETE(*list, j);
		j->drop(j);
	}
}

void helpers_free(struct helpers *h)
{
	if (!h)
		return;
	helpers_charge(h, NULL);
	for (unsigned i = 0; i < HELPERS_WORKERS; i++) {
		drop_all(&h->workers[i].jobs);
		if (h->workers[i].fd >= 0)
			close(h->workers[i].fd);
	}
	queue_end_all(h, 0);
	drop_all(&h->ended);
	if (h->keeper_fd >= 0)
		close(h->keeper_fd);
	if (h->epoll >= 0)
		close(h->epoll);
	if (h->event_fd >= 0)
		close(h->event_fd);
	if (h->proc >= 0)
		close(h->proc);
	free(h);
}

static void disown(struct helpers *h, struct helpers_job *j)
{
	if (h->owners && j->owner)
		owner_put(h->owners, j->owner);
	j->owner = NULL;
}

void helpers_charge(struct helpers *h, struct owners *owners)
{
	struct helpers_job *j, *list = NULL;

	if (owners) {
		h->owners = owners;
		return;
	}
	/* All jobs become nobody's. */
	for (int lane = 0; lane < HELPERS_LANES; lane++)
		for (int i = 0; i < 2; i++)
			while (h->lanes[lane].lines[i]) {
				j = h->lanes[lane].lines[i]->jobs;
				queue_remove(h, j);
				DL_APPEND(list, j);
			}
	for (unsigned i = 0; i < HELPERS_WORKERS; i++) {
		if (h->workers[i].fd < 0)
			continue;
		struct helpers_claim *claim = &h->workers[i].claim;

		if (h->workers[i].charged)
			claims_release(h, claim->owner, OWNER_OPENERS);
		h->workers[i].charged = false;
		if (h->owners && claim->owner)
			owner_put(h->owners, claim->owner);
		claim->owner = NULL;
		DL_FOREACH(h->workers[i].jobs, j)
			disown(h, j);
	}
	for (unsigned i = 0; i < HELPERS_PENALTIES; i++)
		claims_forgive(h, &h->penalties[i]);
	DL_FOREACH(h->ended, j)
		disown(h, j);
	DL_FOREACH(list, j)
		disown(h, j);
	h->owners = NULL;
	while (list) {
		j = list;
		DL_DELETE(list, j);
		if (queue_put(h, j, false))
			queue_end(h, j, -ENOMEM);
	}
}

int helpers_fd(const struct helpers *h)
{
	return h->epoll;
}

bool helpers_lost(const struct helpers *h)
{
	return h->keeper_fd < 0;
}

pid_t helpers_keeper(const struct helpers *h)
{
	return h->keeper;
}

void helpers_figures(const struct helpers *h, struct helpers_figures *ret)
{
	*ret = h->figures;
}
