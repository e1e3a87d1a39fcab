/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/daemon.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "common/base/bytes/hash.h"
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
#define SENDS_MS 5000	/* how long a prof-send that kept ending must live to count as working */
#define NAMES_MS 5000	/* between two looks at the files for name resolution */
#define HOUR_MS 3600000 /* in this time each tool may log CHILD_LINES_MAX lines */

/* Serves metrics at the address of the settings. */
static int serve(struct daemon *d)
{
	const char *address = d->now->options.metrics;
	const int r = metrics_listen(&d->metrics, address);

	if (r)
		log_error("--metrics: %s: %s; choose another port", address, strerror(-r));
	return r;
}

int daemon_init(struct daemon *d, const struct service *s)
{
	*d = (struct daemon){
		.first = s, .now = s, .seed = probabilistic_seed(), .metrics = METRICS_NONE
	};
	if (notify_open(&d->notify))
		log_warning("NOTIFY_SOCKET: is not a usable socket; the service manager gets no "
			    "notifications");
	log_init("profpipe", s->options.verbose ? LOG_INFO : LOG_WARNING);
	return serve(d);
}

/* --- the service manager --- */

/* Reports the present figures: prof-export knows the samples that were written, prof-bpf those that
 * were taken. */
static void tell_state(struct run *r)
{
	const struct daemon *d = r->daemon;
	const struct status *e = &run_tool(r, DEPLOY_EXPORT)->last;
	unsigned restarts = 0;
	char text[256];

	for (int i = 0; i < DEPLOY_USERS; i++)
		restarts += r->again[i].count;
	snprintf(text, sizeof(text),
		 "%sSTATUS=%s at %u Hz; %" PRIu64 " samples, %" PRIu64 " lost, %u restarts%s",
		 d->ready ? "" : "READY=1\n", d->rests ? "resting, samples" : "sampling",
		 r->o->sampling.hz, e->samples, reason_lost_samples(e->lost), restarts,
		 r->send_failed ? "; nothing is sent, because prof-send keeps ending" : "");
	notify_send(&d->notify, text);
}

/* Sends a watchdog message twice in the period that the manager allows, but only while prof-bpf
 * works. prof-bpf reports every second, even while it takes no samples. */
static void tell_life(struct run *r)
{
	struct daemon *d = r->daemon;
	const unsigned reports = run_tool(r, DEPLOY_BPF)->reports;

	if (!d->notify.watchdog_ns || reports == d->reports ||
	    run_ms_since(d->lived_ns) < d->notify.watchdog_ns / 2000000)
		return;
	d->reports = reports;
	d->lived_ns = clock_mono_ns();
	notify_send(&d->notify, "WATCHDOG=1");
}

/* --- probabilistic profiling --- */

static void throw_coin(struct run *r)
{
	struct daemon *d = r->daemon;
	const uint64_t length_ns = (uint64_t)(r->o->interval_s * 1e9);
	const bool rests = !probabilistic_samples(d->seed, clock_ns(CLOCK_REALTIME), length_ns,
						  r->o->chance);

	if (rests == d->rests)
		return;
	d->rests = rests;
	r->rests = rests;
	child_order(run_tool(r, DEPLOY_BPF), rests ? DEPLOY_PAUSE : DEPLOY_RESUME);
	log_info("sampling %s for this interval", rests ? "pauses" : "runs");
	d->told_ns = 0;
}

/* --- another prof-send --- */

/* Plans to replace prof-send. */
static void renew(struct run *r)
{
	struct daemon *d = r->daemon;

	/* Another change does not postpone it. */
	if (!d->renews)
		d->renews_ns = clock_mono_ns();
	d->renews = true;
	d->made_ns = 0;
	d->requests = run_tool(r, DEPLOY_EXPORT)->last.requests;
}

/* A hash of which files these are, and of when they were changed. A file with the same text may
 * still be another one, which prof-send may not open. */
static uint64_t hash_names(void)
{
	static const char *const paths[] = { "/etc/resolv.conf", "/etc/hosts" };
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct stat st = { 0 };
		const int r = stat(paths[i], &st);
		const uint64_t facts[] = { (uint64_t)r,
					   st.st_dev,
					   st.st_ino,
					   (uint64_t)st.st_size,
					   (uint64_t)st.st_mtim.tv_sec,
					   (uint64_t)st.st_mtim.tv_nsec };

		hash = hash_bytes(hash, facts, sizeof(facts));
	}
	return hash ? hash : 1;
}

/* Replaces prof-send when the files by which it resolves names have changed. Its confinement allows
 * only those that existed when it started. While another program writes them, waits. */
static void follow_names(struct run *r)
{
	struct daemon *d = r->daemon;

	if (!r->o->otlp.endpoints || (d->names_ns && run_ms_since(d->names_ns) < NAMES_MS))
		return;
	const uint64_t names = hash_names();
	const bool settled = names == d->names;

	d->names_ns = clock_mono_ns();
	d->names = names;
	if (!d->used_names)
		d->used_names = names;
	if (names == d->used_names || !settled)
		return;
	d->used_names = names;
	log_info("/etc/resolv.conf or /etc/hosts has changed: prof-send will be restarted");
	renew(r);
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
	    (r->o->metrics && !metrics_listens(&r->daemon->metrics)))
		(void)serve(r->daemon);
	if (!otlp_equal(&r->o->otlp, &before->otlp) || r->send_failed)
		renew(r);
}

/* Replaces prof-send if that is planned. Requests that prof-export makes meanwhile are dropped. So
 * the old prof-send is stopped right after it has delivered a request, because the next request is
 * then seconds away. It must have reported that delivery itself, a moment after the request was
 * made. */
static void renew_sender(struct run *r)
{
	struct daemon *d = r->daemon;
	const struct child *send = run_tool(r, DEPLOY_SEND);
	const struct status *s = &send->last;
	const uint64_t made = run_tool(r, DEPLOY_EXPORT)->last.requests;

	if (r->send_failed && send->ready && run_ms_since(send->started_ns) > SENDS_MS) {
		r->send_failed = false;
		d->told_ns = 0;
		log_warning("prof-send works again");
	}
	if (!d->renews)
		return;
	/* Without one, the next one starts at once. */
	if (!send->pid) {
		d->renews = false;
		r->again[DEPLOY_SEND] = (struct restarts){ .count = r->again[DEPLOY_SEND].count,
							   .due_ns = clock_mono_ns() };
		return;
	}
	if (made != d->requests) {
		d->requests = made;
		d->made_ns = clock_mono_ns();
	}
	const bool idle = d->made_ns && send->heard_ns > d->made_ns + HANDED_NS &&
			  s->requests == s->requests_taken + s->requests_lost;

	if (!idle && run_ms_since(d->renews_ns) < RENEW_MS)
		return;
	d->renews = false;
	r->replaces = true;
	kill(send->pid, SIGTERM);
}

void daemon_reload(struct run *r)
{
	struct daemon *d = r->daemon;
	struct service *new = &d->services[d->now == &d->services[0]];
	char text[96];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 clock_mono_ns() / 1000);
	notify_send(&d->notify, text);
	if (!d->now->path) {
		log_warning("there is no settings file to read again; name one with --settings");
	} else if (service_reload(d->now, new) == EXITS_GO_ON) {
		struct service *old = d->now == d->first ? NULL : &d->services[new == d->services];
		const struct options before = *r->o;

		d->now = new;
		r->o = &new->options;
		follow(r, &before);
		if (old)
			service_done(old);
		log_info("%s: reloaded", new->path);
	} else {
		log_error("%s: the settings stay as they were", d->now->path);
	}
	notify_send(&d->notify, "READY=1");
}

/* --- the run --- */

void daemon_turn(struct run *r)
{
	struct daemon *d = r->daemon;

	if (!d)
		return;
	/* Do this even before sampling begins, so that no samples are taken in an interval without
	 * sampling. */
	if (r->phase <= RUN_SAMPLING)
		throw_coin(r);
	if (r->phase == RUN_SAMPLING) {
		tell_life(r);
		follow_names(r);
		renew_sender(r);
	}
	if (r->phase == RUN_SAMPLING && (!d->told_ns || run_ms_since(d->told_ns) >= STATE_MS)) {
		d->told_ns = clock_mono_ns();
		tell_state(r);
		d->ready = true;
	}
	if (r->phase > RUN_SAMPLING && !d->ending) {
		d->ending = true;
		notify_send(&d->notify, "STOPPING=1\nSTATUS=writing the last samples");
	}
	folder_turn(&r->folder, r->phase == RUN_SAMPLING, run_tool(r, DEPLOY_EXPORT),
		    run_tool(r, DEPLOY_SYMD));
	metrics_turn(&d->metrics, r);
	/* A service has no end, so a limit of log lines for the whole run would hide all later
	 * ones. */
	if (run_ms_since(d->logged_ns) >= HOUR_MS) {
		d->logged_ns = clock_mono_ns();
		for (int i = 0; i < DEPLOY_USERS; i++)
			r->tools[i].lines = 0;
		d->metrics.child.lines = 0;
	}
}

void daemon_done(struct run *r)
{
	struct daemon *d = r->daemon;

	if (!d)
		return;
	notify_close(&d->notify);
	metrics_end(&d->metrics);
	if (d->now != d->first)
		service_done(&d->services[d->now == &d->services[1]]);
}
