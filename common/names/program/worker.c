/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/worker.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/wire/bus/scm.h"
#include "common/wire/peer/lastword.h"

#define STALLED_NS 8000000000ull   /* a worker without progress for this long is lost */
#define MOVED_NS 1000000ull	   /* this much cpu time counts as progress */
#define LOOK_NS FILEKEEPER_LOOK_NS /* interval between looks during a request */
#define UNSEEN_NS 500000000ull	   /* after requests of this length without a look, there is one */
#define SLACK_NS 20000000ull	   /* tolerance: a worker may report this much too little */
/* After this many looks without cpu time, a request that cannot be continued later is given up. */
#define STILL_MOST (2 * FILEKEEPER_STILL)

static struct {
	uint64_t until_ns;
	uint64_t number; /* number of the last worker */
	uint8_t bytes[PROGRAMWIRE_MAX];
} own;

void worker_until(uint64_t until_ns)
{
	own.until_ns = until_ns;
}

int worker_start(struct worker *w, uint64_t heap)
{
	worker_drop(w);
	const int r = filekeeper_worker(w->kind, heap, &w->killed);

	if (r < 0)
		return r;
	w->socket = r;
	w->number = ++own.number;
	w->worked_ns = w->cpu_ns = w->base_ns = w->request_ns = w->said_ns = w->passed_ns = 0;
	w->lies = false;
	return 0;
}

void worker_drop(struct worker *w)
{
	if (w->socket >= 0)
		close(w->socket);
	w->socket = -1;
	w->busy = false;
}

bool worker_is_gone(const struct worker *w)
{
	struct pollfd p = { .fd = w->socket };

	return !w->busy && poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* --- requests --- */

int worker_send(struct worker *w, const struct programwire_ask *a, const int *fds, size_t count)
{
	/* The queue only holds requests that the worker has not read. If it is full, the worker
	 * hangs. */
	const ssize_t n = scm_send(w->socket, a, sizeof(*a), fds, count, MSG_DONTWAIT);

	w->hung_up = n == -EPIPE || n == -ECONNRESET;
	if (n < 0)
		return (int)n;
	if (a->kind == PROGRAMWIRE_CLOSE)
		return 0;
	w->busy = true;
	w->still = 0;
	w->blocked = false;
	w->begun_ns = w->looked_ns = w->moved_ns = clock_mono_ns();
	w->base_ns = w->cpu_ns;
	w->request_ns = 0;
	return 0;
}

/* Looks at the worker's clock, and checks what the worker has reported. */
static void look(struct worker *w, uint64_t now_ns)
{
	const bool first = w->looked_ns == w->begun_ns;
	const uint64_t since_ns = now_ns - w->begun_ns, cpu_ns = filekeeper_clock(w->kind);

	w->looked_ns = now_ns;
	if (cpu_ns <= w->cpu_ns)
		return;
	if (cpu_ns > w->cpu_ns + MOVED_NS)
		w->moved_ns = now_ns;
	/* This request took no more cpu time than the time since it began. */
	if (first)
		w->base_ns = w->cpu_ns + w->said_ns;
	if (first && cpu_ns > since_ns && cpu_ns - since_ns > w->base_ns) {
		w->base_ns = cpu_ns - since_ns;
		w->lies |= w->base_ns - w->cpu_ns > w->said_ns + w->said_ns / 4 + SLACK_NS;
	}
	w->request_ns = cpu_ns > w->base_ns ? cpu_ns - w->base_ns : 0;
	w->cpu_ns = cpu_ns;
	w->said_ns = w->passed_ns = 0;
}

static int take(struct worker *w, struct programwire_answer *ret, struct names *ret_names)
{
	const uint64_t now_ns = clock_mono_ns(), passed_ns = now_ns - w->begun_ns;
	const ssize_t n = recv(w->socket, own.bytes, sizeof(own.bytes), MSG_DONTWAIT | MSG_TRUNC);
	const bool fits = n > 0 && (size_t)n <= sizeof(own.bytes) &&
			  programwire_take((struct span){ .data = own.bytes, .len = (size_t)n },
					   ret, ret_names);
	const uint64_t said_ns = fits && !w->lies ? ret->head.cpu_us * 1000ull : passed_ns;

	if (w->looked_ns != w->begun_ns || passed_ns >= LOOK_NS) {
		look(w, now_ns);
	} else {
		w->request_ns = numbers_smaller(said_ns, passed_ns);
		w->said_ns += w->request_ns;
		w->passed_ns += passed_ns;
		if (w->passed_ns >= UNSEEN_NS) {
			/* Look as if the next request had just begun. */
			const uint64_t request_ns = w->request_ns;

			w->begun_ns = w->looked_ns = now_ns;
			look(w, now_ns);
			w->request_ns = request_ns;
		}
	}
	w->busy = false;
	w->hung_up = n == 0 || (n < 0 && errno == ECONNRESET);
	w->worked_ns += w->request_ns;
	if (!own.until_ns)
		lastword_rest_for(w->request_ns);
	return fits ? 0 : VERDICT_LOST;
}

/* Looks at a worker that has not answered until next_ns. Returns VERDICT_LOST, VERDICT_LATER, or 0:
 * go on waiting. */
static int look_again(struct worker *w, uint64_t next_ns, uint64_t now_ns, uint64_t slice_ns,
		      unsigned limit_s, bool may_wait)
{
	const uint64_t cpu_ns = w->cpu_ns;

	look(w, now_ns);
	if (w->cpu_ns != cpu_ns)
		w->still = 0;
	else if (now_ns - next_ns < FILEKEEPER_PUNCTUAL_NS)
		w->still++;
	if (w->request_ns >= limit_s * 1000000000ull || now_ns - w->moved_ns >= STALLED_NS)
		return VERDICT_LOST;
	if (w->request_ns >= slice_ns)
		return VERDICT_LATER;
	if (!may_wait || w->still < (slice_ns < UINT64_MAX ? FILEKEEPER_STILL : STILL_MOST))
		return 0;
	w->blocked = true;
	w->request_ns = now_ns - w->begun_ns;
	return slice_ns < UINT64_MAX ? VERDICT_LATER : VERDICT_LOST;
}

int worker_wait(struct worker *w, uint64_t slice_ns, uint64_t wait_ns, unsigned limit_s,
		struct programwire_answer *ret, struct names *ret_names)
{
	const uint64_t begun_ns = clock_mono_ns();
	uint64_t until_ns = wait_ns < UINT64_MAX - begun_ns ? begun_ns + wait_ns : UINT64_MAX;

	if (own.until_ns && own.until_ns < until_ns)
		until_ns = own.until_ns;
	for (;;) {
		const uint64_t next_ns = w->looked_ns + numbers_smaller(slice_ns, LOOK_NS);
		const int r = filekeeper_wait(w->socket, POLLIN,
					      numbers_smaller(next_ns, until_ns));

		if (r == 0)
			return take(w, ret, ret_names);
		if (r != -ETIMEDOUT)
			return VERDICT_LOST;
		const uint64_t now_ns = clock_mono_ns();

		/* A worker that reads a slow disk may take longer than the launcher allows
		 * prof-symd to be silent. */
		lastword_beat();
		if (now_ns >= next_ns) {
			const int looked = look_again(w, next_ns, now_ns, slice_ns, limit_s,
						      wait_ns == UINT64_MAX);

			if (looked)
				return looked;
		}
		if (now_ns >= until_ns)
			return VERDICT_LATER;
	}
}
