/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/metrics.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "common/base/command/words.h"
#include "common/base/files/fd.h"
#include "common/base/system/clock.h"
#include "tools/profpipe/options/listen.h"
#include "tools/profpipe/run/run.h"

#define TELL_MS 1000
#define BACKLOG 128
static_assert(DEPLOY_USERS + 1 < DEPLOY_IDS_METRICS, "prof-metrics has a user of its own");

static int listen_at(const char *address)
{
	struct sockaddr_storage at;
	socklen_t len;
	const int on = 1;

	if (!listen_parse(address, &at, &len))
		return -EINVAL;
	const int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0) {
		const int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

int metrics_listen(struct metrics *m, const char *address)
{
	metrics_end(m);
	if (!address)
		return 0;
	const int fd = listen_at(address);

	if (fd < 0)
		return fd;
	m->listener = fd;
	m->again = (struct restarts){ .due_ns = 1 };
	return 0;
}

static void start(struct metrics *m, struct run *r)
{
	const struct child_fd fds[] = { { m->listener, CHILD_FIRST_FD } };
	struct words w = WORDS_NONE;

	words_add(&w, "prof-metrics");
	words_add(&w, "--listen-fd");
	words_print(&w, "%d", CHILD_FIRST_FD);
	words_add(&w, "--life-fd");
	words_add(&w, CHILD_LIFE_FD);
	if (r->o->verbose)
		words_add(&w, "-v");
	int e = words_end(&w);
	const struct child_start how = { .argv = (const char *const *)w.argv,
					 .fds = fds,
					 .count = 1,
					 .drop = r->who.separate,
					 .uid = r->who.gid + DEPLOY_IDS_METRICS,
					 .gid = r->who.gid + DEPLOY_IDS_METRICS };

	m->again.due_ns = 0;
	if (!e)
		e = child_start(&m->child, &how);
	words_done(&w);
	if (e)
		log_error("prof-metrics cannot be started: %s; there are no metrics",
			  child_trouble(e));
}

static void look(struct metrics *m, struct run *r)
{
	const uint64_t now = clock_mono_ns();

	child_read(&m->child, run_show, r);
	if (child_reap(&m->child)) {
		child_show_pending(&m->child, UINT64_MAX, run_show, r);
		if (restarts_plan(&m->again, now, now - m->child.started_ns, RESTARTS_STREAK_MAX))
			log_warning("prof-metrics ended (%s); restarting it",
				    child_how(m->child.wait_status));
		else
			log_error("prof-metrics keeps ending (%s); there are no metrics",
				  child_how(m->child.wait_status));
	}
	if (!m->child.pid && m->again.due_ns && now >= m->again.due_ns)
		start(m, r);
}

/* Adds the figures of one process of prof-export or prof-send. */
static void add(struct metrics_word *w, const struct status *export, const struct status *send)
{
	w->requests += export->requests;
	w->dropped += export->requests_lost;
	w->delivered += send->requests_taken;
	w->undelivered += send->requests_lost;
	w->retries += send->requests_retried;
}

/* A restarted tool counts from 0 again, but a Prometheus counter must never decrease. */
static void keep_former(struct metrics *m, const struct status *export, const struct status *send)
{
	const struct status none = { 0 };

	if (export->requests < m->last_export.requests)
		add(&m->former, &m->last_export, &none);
	if (send->requests < m->last_send.requests)
		add(&m->former, &none, &m->last_send);
	m->last_export = *export;
	m->last_send = *send;
}

static struct metrics_tool figures_of(const struct child *c, const struct restarts *again)
{
	return (struct metrics_tool){ .runs = c->pid != 0,
				      .restarts = again->count,
				      .cpu_ns = c->cpu_ns,
				      .memory_bytes = c->pss };
}

static void fill_tools(struct metrics_word *w, const struct metrics *m, struct run *r)
{
	struct rusage self;

	for (int i = 0; i < DEPLOY_USERS; i++)
		w->tools[i] = figures_of(&r->tools[i], &r->again[i]);
	w->tools[METRICS_SERVER] = figures_of(&m->child, &m->again);
	getrusage(RUSAGE_SELF, &self);
	w->tools[METRICS_LAUNCHER] = (struct metrics_tool){
		.runs = 1,
		.cpu_ns = clock_timeval_ns(self.ru_utime) + clock_timeval_ns(self.ru_stime),
		.memory_bytes = r->launcher_pss,
	};
}

static void tell(struct metrics *m, struct run *r)
{
	const struct status *bpf = &run_tool(r, DEPLOY_BPF)->last,
			    *export = &run_tool(r, DEPLOY_EXPORT)->last,
			    *send = &run_tool(r, DEPLOY_SEND)->last;

	keep_former(m, export, send);
	struct metrics_word w = m->former;

	add(&w, export, send);
	w.magic = METRICS_MAGIC;
	w.sampling = r->phase == RUN_SAMPLING && run_tool(r, DEPLOY_BPF)->ready && !r->rests;
	w.send_failed = r->send_failed;
	w.samples = r->taken + bpf->taken;
	w.written = export->samples;
	memcpy(w.lost, export->lost, sizeof(w.lost));
	w.queued = send->requests - send->requests_taken - send->requests_lost;
	child_measure(&m->child, false);
	fill_tools(&w, m, r);
	child_tell(&m->child, &w, sizeof(w));
}

void metrics_turn(struct metrics *m, struct run *r)
{
	if (m->listener < 0)
		return;
	look(m, r);
	if (!m->child.pid || run_ms_since(m->told_ns) < TELL_MS)
		return;
	m->told_ns = clock_mono_ns();
	tell(m, r);
}

void metrics_end(struct metrics *m)
{
	child_kill(&m->child);
	if (m->child.pid)
		while (!child_reap(&m->child))
			usleep(1000);
	child_close(&m->child);
	fd_close(&m->listener);
}
