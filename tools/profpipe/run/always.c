/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/always.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "common/wire/reason.h"
#include "tools/profpipe/run/run.h"
#include "tools/profpipe/run/service/probabilistic.h"

#define STATE_MS 10000	     /* between two reports to the service manager */
#define HANDED_NS 200000000u /* time for a request to reach prof-send */
#define RENEW_MS 30000	     /* how long a prof-send may go on delivering before it is replaced */
#define HOUR_MS 3600000	     /* in this time each tool may log CHILD_LINES_MAX lines */

/* Serves metrics at the address of the settings. */
static int serve(struct always *a)
{
	const char *address = a->now->options.metrics;
	const int r = metrics_listen(&a->metrics, address);

	if (r)
		log_error("--metrics: %s: %s; choose another port", address, strerror(-r));
	return r;
}

int always_init(struct always *a, const struct service *s)
{
	*a = (struct always){
		.first = s, .now = s, .seed = probabilistic_seed(), .metrics = METRICS_NONE
	};
	if (notify_open(&a->notify))
		log_warning("NOTIFY_SOCKET: is not a usable socket; the service manager gets no "
			    "notifications");
	log_init("profpipe", s->options.verbose ? LOG_INFO : LOG_WARNING);
	return serve(a);
}

/* --- the service manager --- */

/* Reports the present figures: prof-export knows the samples that were written, prof-bpf those that
 * were taken. */
static void tell_state(struct run *r)
{
	const struct always *a = r->always;
	const struct status *e = &run_tool(r, DEPLOY_EXPORT)->last;
	unsigned restarts = 0;
	char text[256];

	for (int i = 0; i < DEPLOY_USERS; i++)
		restarts += r->again[i].count;
	snprintf(text, sizeof(text),
		 "%sSTATUS=%s at %u Hz; %" PRIu64 " samples, %" PRIu64 " lost, %u restarts",
		 a->ready ? "" : "READY=1\n", a->rests ? "resting, samples" : "sampling",
		 r->o->sampling.hz, e->samples, reason_lost_samples(e->lost), restarts);
	notify_send(&a->notify, text);
}

/* Sends a watchdog message twice in the period that the manager allows, but only while prof-bpf
 * works. prof-bpf reports every second, even while it takes no samples. */
static void tell_life(struct run *r)
{
	struct always *a = r->always;
	const unsigned reports = run_tool(r, DEPLOY_BPF)->reports;

	if (!a->notify.watchdog_ns || reports == a->reports ||
	    run_ms_since(a->lived_ns) < a->notify.watchdog_ns / 2000000)
		return;
	a->reports = reports;
	a->lived_ns = clock_mono_ns();
	notify_send(&a->notify, "WATCHDOG=1");
}

/* --- probabilistic profiling --- */

static void throw_coin(struct run *r)
{
	struct always *a = r->always;
	const uint64_t length_ns = (uint64_t)(r->o->interval_s * 1e9);
	const bool rests = !probabilistic_samples(a->seed, clock_ns(CLOCK_REALTIME), length_ns,
						  r->o->chance);

	if (rests == a->rests)
		return;
	a->rests = rests;
	r->rests = rests;
	child_order(run_tool(r, DEPLOY_BPF), rests ? DEPLOY_PAUSE : DEPLOY_RESUME);
	log_info("sampling %s for this interval", rests ? "pauses" : "runs");
	a->told_ns = 0;
}

/* --- reloading --- */

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Tells the tools about changed settings. */
static void follow(struct run *r, const struct options *before)
{
	const unsigned limit = r->o->sampling.cpu_limit;

	log_init("profpipe", r->o->verbose ? LOG_INFO : LOG_WARNING);
	if (limit != before->sampling.cpu_limit)
		child_order(run_tool(r, DEPLOY_BPF), (uint8_t)(DEPLOY_CPU_LIMIT + limit));
	/* Try again if another program had the port before. */
	if (!same(r->o->metrics, before->metrics) ||
	    (r->o->metrics && !metrics_listens(&r->always->metrics)))
		(void)serve(r->always);
	if (!otlp_equal(&r->o->otlp, &before->otlp)) {
		r->always->renews = true;
		r->always->renews_ns = clock_mono_ns();
		r->always->made_ns = 0;
		r->always->requests = run_tool(r, DEPLOY_EXPORT)->last.requests;
	}
}

/* Replaces prof-send so that it delivers to other receivers. Requests that prof-export makes
 * meanwhile are dropped. So the old prof-send is stopped right after it has delivered a request,
 * because the next request is then seconds away. It must have reported that delivery itself, a
 * moment after the request was made. */
static void renew_sender(struct run *r)
{
	struct always *a = r->always;
	const struct child *send = run_tool(r, DEPLOY_SEND);
	const struct status *s = &send->last;
	const uint64_t made = run_tool(r, DEPLOY_EXPORT)->last.requests;

	if (!a->renews)
		return;
	if (made != a->requests) {
		a->requests = made;
		a->made_ns = clock_mono_ns();
	}
	const bool idle = a->made_ns && send->heard_ns > a->made_ns + HANDED_NS &&
			  s->requests == s->requests_taken + s->requests_lost;

	if (!idle && run_ms_since(a->renews_ns) < RENEW_MS)
		return;
	a->renews = false;
	if (send->pid)
		kill(send->pid, SIGTERM);
}

void always_reload(struct run *r)
{
	struct always *a = r->always;
	struct service *new = &a->services[a->now == &a->services[0]];
	char text[96];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 clock_mono_ns() / 1000);
	notify_send(&a->notify, text);
	if (!a->now->path) {
		log_warning("there is no settings file to read again; name one with --settings");
	} else if (service_reload(a->now, new) == EXITS_GO_ON) {
		struct service *old = a->now == a->first ? NULL : &a->services[new == a->services];
		const struct options before = *r->o;

		a->now = new;
		r->o = &new->options;
		follow(r, &before);
		if (old)
			service_done(old);
		log_info("%s: reloaded", new->path);
	} else {
		log_error("%s: the settings stay as they were", a->now->path);
	}
	notify_send(&a->notify, "READY=1");
}

/* --- the run --- */

void always_turn(struct run *r)
{
	struct always *a = r->always;

	if (!a)
		return;
	/* Do this even before sampling begins, so that no samples are taken in an interval without
	 * sampling. */
	if (r->phase <= RUN_SAMPLING)
		throw_coin(r);
	if (r->phase == RUN_SAMPLING) {
		tell_life(r);
		renew_sender(r);
	}
	if (r->phase == RUN_SAMPLING && (!a->told_ns || run_ms_since(a->told_ns) >= STATE_MS)) {
		a->told_ns = clock_mono_ns();
		tell_state(r);
		a->ready = true;
	}
	if (r->phase > RUN_SAMPLING && !a->ending) {
		a->ending = true;
		notify_send(&a->notify, "STOPPING=1\nSTATUS=writing the last samples");
	}
	folder_turn(&r->folder, r->phase == RUN_SAMPLING, run_tool(r, DEPLOY_EXPORT),
		    run_tool(r, DEPLOY_SYMD));
	metrics_turn(&a->metrics, r);
	/* A service has no end, so a limit of log lines for the whole run would hide all later
	 * ones. */
	if (run_ms_since(a->logged_ns) >= HOUR_MS) {
		a->logged_ns = clock_mono_ns();
		for (int i = 0; i < DEPLOY_USERS; i++)
			r->tools[i].lines = 0;
		a->metrics.child.lines = 0;
	}
}

void always_done(struct run *r)
{
	struct always *a = r->always;

	if (!a)
		return;
	notify_close(&a->notify);
	metrics_end(&a->metrics);
	if (a->now != a->first)
		service_done(&a->services[a->now == &a->services[1]]);
}
