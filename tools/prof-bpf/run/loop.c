/* SPDX-License-Identifier: Apache-2.0 */
/* The stream is flushed once a second, or at the next timer tick if prof-symd will have to open
 * something. */
#include "tools/prof-bpf/run/loop.h"

#include <sys/epoll.h>
#include "tools/prof-bpf/run/ending.h"
#include "tools/prof-bpf/run/figures.h"
#include "tools/prof-bpf/run/helpers.h"
#include "tools/prof-bpf/run/newcpus.h"
#include "tools/prof-bpf/run/orders.h"
#include "tools/prof-bpf/run/prof.h"
#include "tools/prof-bpf/run/routes.h"
#include "tools/prof-bpf/run/starting.h"

#define FIGURES_NS 1000000000ull
#define FLUSH_NS 1000000000ull
#define CLOCK_NS 60000000000ull
#define COMMAND_NS 200000000ull /* time for the command to exec; not needed by hand */
#define EVENTS 16		/* events that the loop takes at once */

int loop_open(struct prof *p)
{
	const struct {
		int fd; /* -1: there is none */
		enum wakeups_source from;
		enum wakeups_how how;
	} sources[] = {
		/* The first record wakes the loop, which takes all records some time later
		 * (gathering.h). */
		{ sideband_fd(p->sideband), WAKEUPS_SIDEBAND, WAKEUPS_ONCE },
		{ workerpool_fd(p->pool), WAKEUPS_HELPERS, WAKEUPS_ALWAYS },
		{ row_server_bus_fd(p->row_server), WAKEUPS_ROWS, WAKEUPS_ALWAYS },
		{ row_server_lane_fd(p->row_server), WAKEUPS_ROWS_LANE, WAKEUPS_ALWAYS },
		{ p->output.bus ? bus_fd(p->output.bus) : -1, WAKEUPS_STREAM, WAKEUPS_ALWAYS },
		{ p->file_server ? file_server_bus_fd(p->file_server) : -1, WAKEUPS_FILES,
		  WAKEUPS_ALWAYS },
		{ p->file_server ? file_server_lane_fd(p->file_server) : -1, WAKEUPS_FILES_LANE,
		  WAKEUPS_ALWAYS },
		/* Events that cannot be taken now stay in the socket, so do not wake the loop for
		 * them again. */
		{ p->cpus.fd, WAKEUPS_CPUS, WAKEUPS_EDGE },
		{ loader_late_fd(p->loader), WAKEUPS_LATE_LOADER, WAKEUPS_ALWAYS },
		{ loader_samples_fd(p->loader), WAKEUPS_SAMPLES, WAKEUPS_EDGE },
		{ loader_deferred_fd(p->loader), WAKEUPS_SAMPLES, WAKEUPS_EDGE },
		{ p->options.deploy.life_fd, WAKEUPS_LIFE, WAKEUPS_ALWAYS },
	};
	int r = wakeups_open(&p->wakeups, p->options.sampling.hz);

	for (size_t i = 0; r == 0 && i < sizeof(sources) / sizeof(sources[0]); i++)
		r = wakeups_add(&p->wakeups, sources[i].fd, sources[i].from, sources[i].how);
	return r;
}

/* --- the timer --- */

/* Whether a periodic task is due. Timers fire a little late, and never early. */
static bool is_due(const struct prof *p, uint64_t *last_ns, uint64_t every_ns, uint64_t now)
{
	if (now + p->wakeups.drain_ms * 500000ull < *last_ns + every_ns)
		return false;
	*last_ns = now;
	return true;
}

/* Makes the timer fire no later than the end of the run. */
static void set_end(struct prof *p, uint64_t now)
{
	const double seconds = p->options.sampling.seconds;
	const uint64_t end = p->lifecycle.since_ns + (uint64_t)(seconds * 1e9);

	if (seconds > 0 && end > now && end - now < p->wakeups.drain_ms * 1000000ull)
		wakeups_tick_after(&p->wakeups, end - now);
}

/* Makes the next tick come after one sampling period, if that is allowed. */
static void hasten(struct prof *p, uint64_t now)
{
	const uint64_t soon = 1200000000ull / p->options.sampling.hz;

	if (early_ticks_may(&p->early_ticks, now, wakeups_next_ns(&p->wakeups), soon))
		wakeups_tick_after(&p->wakeups, soon);
}

/* Whether to flush the stream now. Not before the command runs, since a command that cannot be run
 * must leave no output. */
static bool is_urgent(const struct prof *p, uint64_t now)
{
	return emit_urgent(p->output.emit) && (!p->options.follow || p->samples.command_runs ||
					       now - p->lifecycle.since_ns > COMMAND_NS);
}

/* Runs once a second. */
static void report(struct prof *p)
{
	if (output_has_receiver(&p->output)) {
		losses_send(&p->losses);
		figures_send(p);
	}
	p->status.taken = figures_taken(p);
	witness_report_tell(&p->witness_report, &p->losses, p->status.taken, false);
	deploy_status(&p->options.deploy, &p->status, STATUS_RUNNING);
	if (p->cpus.waits)
		newcpus_take(p);
}

/* Does the tasks of a tick that are only for sampling. */
static void keep_sampling(struct prof *p, uint64_t now)
{
	if (is_due(p, &p->last.figures_ns, FIGURES_NS, now))
		report(p);
	if (is_due(p, &p->last.clock_ns, CLOCK_NS, now)) {
		output_emitted(&p->output, emit_clock(p->output.emit));
		(void)subids_read(&p->subids);
	}
	if (is_urgent(p, now))
		p->last.flushed_ns = 0;
	if (is_due(p, &p->last.flushed_ns, FLUSH_NS, now))
		output_emitted(&p->output, emit_flush(p->output.emit));
	if (early_ticks_next(&p->early_ticks))
		hasten(p, now);
	set_end(p, now);
	if (ending_is_due(p, now))
		ending_begin(p, MSG_END_DONE);
}

static void on_timer(struct prof *p)
{
	const bool sampling = p->lifecycle.phase == LIFECYCLE_SAMPLING;
	const uint64_t now = clock_mono_ns();

	if (!wakeups_ticked(&p->wakeups))
		return;
	helpers_run(p, now);
	opener_tick(p->opener, now);
	if (p->jitfiles)
		jitfiles_tick(p->jitfiles, now);
	requests_tick(&p->requests, now);
	if (sampling)
		routes_ask_again(p, now);
	limit_run(&p->limit, now);
	if (sampling)
		throttle_run(&p->throttle, &p->limit.meter, now);
	extractor_watch_look(&p->extractor_watch, p->limit.meter.proc, p->row_server, now);
	kernel_names_tick(&p->names, now);
	samples_drain(&p->samples);
	ending_tick(p, now);
	if (!p->witness_report.told || (p->lifecycle.phase == LIFECYCLE_FINISHING &&
					is_due(p, &p->last.witness_report_ns, FIGURES_NS, now)))
		witness_report_repeat(&p->witness_report);
	if (p->lifecycle.phase == LIFECYCLE_SAMPLING)
		keep_sampling(p, now);
}

/* --- records and signals --- */

/* Makes records wake the loop again: after the first one they do not. */
static void listen_to_records(struct prof *p)
{
	wakeups_listen_again(&p->wakeups, sideband_fd(p->sideband), WAKEUPS_SIDEBAND);
}

static void take_records(struct prof *p)
{
	struct gathering *g = &p->gathering;
	const uint64_t began = clock_mono_ns();

	if (!gathering_is_due(g, began, sideband_fills(p->sideband)))
		return;
	sideband_heard(p->sideband);
	samples_drain(&p->samples);
	const uint64_t now = clock_mono_ns();

	gathering_end(g, began, now);
	if (!g->rests)
		listen_to_records(p);
	if (is_urgent(p, now))
		output_emitted(&p->output, emit_flush(p->output.emit));
}

static void on_signal(struct prof *p)
{
	if (!wakeups_signalled(&p->wakeups))
		return;
	if (p->lifecycle.phase == LIFECYCLE_CONNECTING)
		p->lifecycle.exit_now = true;
	ending_begin(p, MSG_END_KILLED);
}

/* --- the loop --- */

static void handle(struct prof *p, enum wakeups_source from)
{
	struct gathering *g = &p->gathering;

	routes_wake(p, from);
	switch (from) {
	case WAKEUPS_TIMER:
		on_timer(p);
		if (gathering_rested(g, clock_mono_ns()))
			listen_to_records(p);
		break;
	case WAKEUPS_SIDEBAND:
		gathering_begin(g, clock_mono_ns(),
				p->lifecycle.phase == LIFECYCLE_SAMPLING ? p->options.sampling.hz
									 : 0);
		break;
	case WAKEUPS_SIGNAL:
		on_signal(p);
		break;
	case WAKEUPS_LIFE:
		orders_take(p);
		break;
	case WAKEUPS_STREAM:
		routes_take_peers(p);
		break;
	case WAKEUPS_HELPERS:
		helpers_run(p, clock_mono_ns());
		host_tick(p->host, clock_mono_ns(), p->samples.drained_ns);
		break;
	case WAKEUPS_LATE_LOADER:
		helpers_hear_loader(p);
		break;
	case WAKEUPS_SAMPLES:
		samples_drain(&p->samples);
		break;
	case WAKEUPS_CPUS:
		if (p->lifecycle.phase < LIFECYCLE_DRAINING)
			newcpus_take(p);
		else
			cpus_stop(&p->cpus);
		break;
	case WAKEUPS_ROWS:
	case WAKEUPS_ROWS_LANE:
	case WAKEUPS_FILES:
	case WAKEUPS_FILES_LANE:
		break; /* routes_run takes these */
	}
}

void loop_run(struct prof *p)
{
	struct epoll_event events[EVENTS];

	/* Read the kernel's names before the first sample, which needs them. */
	kernel_names_start(&p->names);
	while (!p->lifecycle.exit_now && !p->output.failed) {
		const bool gathers = p->gathering.due_ns;
		int n = epoll_wait(p->wakeups.epoll, events, EVENTS,
				   gathering_patience_ms(&p->gathering, clock_mono_ns()));

		kernel_names_take(&p->names, false);
		if (gathers)
			take_records(p);
		for (int i = 0; i < n; i++)
			handle(p, (enum wakeups_source)events[i].data.u32);
		routes_run(p);
		if (p->lifecycle.phase == LIFECYCLE_CONNECTING)
			starting_try(p);
		if (early_ticks_begin(&p->early_ticks)) {
			gathering_new_file(&p->gathering, clock_mono_ns());
			if (p->lifecycle.phase == LIFECYCLE_SAMPLING)
				hasten(p, clock_mono_ns());
		}
		if (ending_is_over(p))
			p->lifecycle.exit_now = true;
	}
}
