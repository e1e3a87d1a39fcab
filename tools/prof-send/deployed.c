/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests are taken off the bus at once. If a receiver is slow or gone, they wait in queues here,
 * so prof-export never has to wait.
 */
#include "tools/prof-send/deployed.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "common/cell/dial.h"
#include "common/wire/peer/peer.h"
#include "tools/prof-send/job.h"

#define DRAIN_MS 5000
#define DIAL_MS 60000
#define WAIT_MS 1000
#define STATUS_NS 250000000u
#define BATCHES_AT_ONCE 16
#define MAX_FILES 256
#define THREADS 24 /* threads of nng, and one for each name that is being resolved */
#define COPIES 2   /* libcurl copies a part of each request that it sends */

static struct job job;
static struct status status;
static volatile sig_atomic_t asked;

/* The source of requests: prof-export. */
struct source {
	const struct deploy *deploy;
	struct peer *peer;
	bool over;  /* nothing more comes */
	bool ended; /* with its end message */
	bool left;  /* the launcher is gone */
	uint64_t told_ns;
};

static void on_signal(int number)
{
	asked++;
}

static void tell(const struct deploy *d, enum status_phase phase)
{
	status.requests = status.requests_taken = status.requests_lost = status.samples =
		status.requests_retried = 0;
	for (size_t i = 0; i < job.transfer_count; i++) {
		const struct queue_counts *c = &job.transfers[i].queue.counts;

		status.requests += c->taken;
		status.requests_taken += c->delivered;
		status.requests_lost += queue_lost(c);
		status.requests_retried += c->retried;
		status.samples += c->samples;
	}
	deploy_status(d, &status, phase);
}

static void take_request(const struct msg_export *m)
{
	const struct request_facts facts = { .id = m->id, .samples = m->samples, .size = m->size };
	struct request *r = m->size <= REQUEST_MAX ? request_new(&facts, m->request) : NULL;

	if (r) {
		job_put(&job, r);
		request_drop(r);
		return;
	}
	for (size_t i = 0; i < job.transfer_count; i++) {
		struct queue *q = &job.transfers[i].queue;

		q->counts.taken++;
		queue_lose(q, m->size > REQUEST_MAX ? QUEUE_TOO_LARGE : QUEUE_MEMORY, m->samples);
	}
}

static void take(struct source *s, const struct msg *m)
{
	if (m->id == MSG_EXPORT)
		take_request(&m->export);
	s->over = s->ended = m->id == MSG_END;
}

/* Takes a bounded number of batches, so that a prof-export that floods the bus cannot hide the
 * launcher's messages. */
static void take_some(struct source *s)
{
	struct msg m;

	while (!s->over) {
		const int r = peer_recv(s->peer, &m);

		/* For lack of memory the message waits. */
		if (r == PEER_EMPTY || r == -ENOMEM)
			return;
		if (r == 0)
			take(s, &m);
		else if (r != PEER_CAME)
			s->over = true;
		if (r == PEER_UNRULY || r == PEER_SCHEMA)
			log_warning("prof-export sent %s; earlier requests are still delivered",
				    r == PEER_SCHEMA ? "messages of another build"
						     : "an invalid message");
	}
}

static bool is_left(void *ctx)
{
	struct source *s = ctx;

	s->left |= deploy_life_over(s->deploy->life_fd, NULL);
	if (clock_mono_ns() - s->told_ns >= STATUS_NS) {
		tell(s->deploy, STATUS_RUNNING);
		s->told_ns = clock_mono_ns();
	}
	return s->left || asked > 1;
}

/* Receives until prof-export is done or gone, or the launcher or a signal asks for the end. */
static void receive(struct source *s)
{
	while (!s->over && !asked && !is_left(s)) {
		struct curl_waitfd fds[] = {
			{ .fd = peer_bus_fd(s->peer), .events = CURL_WAIT_POLLIN },
			{ .fd = s->deploy->life_fd, .events = CURL_WAIT_POLLIN },
		};

		sender_wait(&job.sender, fds, s->deploy->life_fd < 0 ? 1 : 2, WAIT_MS);
		take_some(s);
		sender_work(&job.sender);
	}
	/* prof-export waits until the bus is closed, but not until receivers have taken the
	 * requests. */
	if (!s->over)
		take_some(s);
	peer_free(s->peer);
	s->peer = NULL;
}

static int enter(const struct options *o, struct source *s)
{
	struct deploy with_us = o->deploy;
	struct budget budget;

	with_us.extra |= BUDGET_SEND;
	deploy_budget(&with_us, &budget);
	const uint64_t memory = budget.queues;
	struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS,
				   .max_files = MAX_FILES,
				   .max_memory = 8 * memory + (4ull << 30),
				   .max_data = budget_fence(budget.send + (COPIES - 1) * memory,
							    THREADS) };
	const int r = job_open(&job, o, memory);

	if (r != EXITS_GO_ON)
		return r;
	if (deploy_enter(&o->deploy, DEPLOY_SEND, &sandbox) ||
	    confine_enter(&job.confine, o, job.spool.folder))
		return EXITS_FAILED;
	const int begun = job_begin(&job);

	if (begun != EXITS_GO_ON)
		return begun;
	const struct dial to_export = { .deploy = &o->deploy,
					.to = DEPLOY_EXPORT,
					.timeout_ms = DIAL_MS };

	const struct peer_config c = { .route = BUSROUTE_EXPORT,
				       .batches_at_once = BATCHES_AT_ONCE };

	if (dial_peer(&to_export, c, &s->peer))
		return EXITS_AGAIN;
	return confine_seal(&job.confine) ? EXITS_FAILED : EXITS_GO_ON;
}

int deployed_run(const struct options *o)
{
	struct source s = { .deploy = &o->deploy };
	const struct sigaction a = { .sa_handler = on_signal };

	/* The launcher handles Ctrl-C of the terminal. */
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	int r = enter(o, &s);

	if (r == EXITS_GO_ON) {
		sigaction(SIGTERM, &a, NULL);
		tell(&o->deploy, STATUS_READY);
		receive(&s);
		if (!s.left)
			job_drain(&job, o->drain_ms ? o->drain_ms : DRAIN_MS, false, is_left, &s);
		job_end(&job);
		const bool good = job_warn(&job);

		r = good ? EXITS_DONE : EXITS_FAILED;
		if (!s.ended && !s.left && !asked)
			r = EXITS_AGAIN;
		tell(&o->deploy, r == EXITS_FAILED ? STATUS_FAILED : STATUS_DONE);
	} else {
		deploy_status(&o->deploy, &status, STATUS_FAILED);
	}
	peer_free(s.peer);
	job_done(&job);
	return r;
}
