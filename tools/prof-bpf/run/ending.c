/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/ending.h"

#include "common/base/command/log.h"
#include "tools/prof-bpf/run/figures.h"
#include "tools/prof-bpf/run/prof.h"
#include "tools/prof-bpf/stream/definitions.h"

#define FINISH_NS 60000000000ull /* how long a finished run serves prof-symd */

static void send_process(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;
	struct emit_file exe;
	struct emit_process changed = definition_of_process(h, &exe);

	output_emitted(&p->output, emit_process(p->output.emit, &changed));
}

/* Sends the end. If the output is full or there is no memory, it is sent at a later tick. */
static void put_end(struct prof *p)
{
	p->ending.breaks = p->output.breaks;
	p->ending.due = emit_end(p->output.emit, p->ending.reason) != 0;
}

/* Sends the losses, the figures and the end of the stream. */
static void send_end(struct prof *p)
{
	/* Without a receiver, the losses are kept for the next one. */
	if (output_has_receiver(&p->output))
		losses_send(&p->losses);
	figures_send(p);
	witness_report_tell(&p->witness_report, &p->losses, figures_taken(p), true);
	put_end(p);
}

/* Ends the draining phase: everything was drained, or the time is over. */
static void conclude(struct prof *p)
{
	deferred_run(p->deferred, clock_mono_ns(), true);
	/* Send processes again that changed after they were sent. */
	host_each_process(p->host, send_process, p);
	lifecycle_enter(&p->lifecycle, LIFECYCLE_FINISHING);
	p->samples.ended = true;
	send_end(p);
	if (p->ending.due && !p->output.bus)
		log_warning("the recording has no end: out of memory; it is usable, but called cut "
			    "short; leave prof-bpf more memory");
	/* There is no receiver for the end. With a launcher, another prof-symd may connect until
	 * the launcher ends the run. */
	if (!p->output.bus || (!p->output.has_peer && p->options.deploy.life_fd < 0))
		p->lifecycle.exit_now = true;
}

static bool followed_are_gone(const struct prof *p)
{
	struct host_figures h;

	if (!p->options.follow && !p->options.sampling.pid_count)
		return false;
	host_figures(p->host, &h);
	return h.processes == 0;
}

bool ending_is_due(const struct prof *p, uint64_t now_ns)
{
	const double seconds = p->options.sampling.seconds;

	return (seconds > 0 && (double)(now_ns - p->lifecycle.since_ns) >= seconds * 1e9) ||
	       followed_are_gone(p);
}

void ending_begin(struct prof *p, enum msg_end_reason reason)
{
	if (p->lifecycle.phase >= LIFECYCLE_DRAINING)
		return;
	p->ending.reason = reason;
	throttle_end(&p->throttle);
	if (p->lifecycle.phase == LIFECYCLE_SAMPLING) {
		loader_stop(p->loader);
		p->lifecycle.sampled_ns = clock_mono_ns();
		kernel_names_take(&p->names, true);
		samples_drain(&p->samples);
	}
	lifecycle_enter(&p->lifecycle, LIFECYCLE_DRAINING);
	if (deferred_empty(p->deferred))
		conclude(p);
}

void ending_tick(struct prof *p, uint64_t now_ns)
{
	const struct prof_ending *e = &p->ending;

	if (p->lifecycle.phase == LIFECYCLE_DRAINING &&
	    (deferred_empty(p->deferred) || now_ns - p->lifecycle.since_ns > DEFERRED_END_NS))
		conclude(p);
	if (p->lifecycle.phase != LIFECYCLE_FINISHING || !p->output.has_peer)
		return;
	if (e->breaks != p->output.breaks)
		send_end(p);
	else if (e->due)
		put_end(p);
}

void ending_peer_came(struct prof *p)
{
	if (p->lifecycle.phase == LIFECYCLE_FINISHING)
		send_end(p);
}

void ending_peer_went(struct prof *p)
{
	/* prof-symd has taken the end of the stream and everything before. If not, only the
	 * launcher knows. */
	if (p->lifecycle.phase == LIFECYCLE_FINISHING && p->options.deploy.life_fd < 0)
		p->lifecycle.exit_now = true;
}

bool ending_is_over(const struct prof *p)
{
	/* With a launcher, the launcher decides. */
	return p->lifecycle.phase == LIFECYCLE_FINISHING && p->options.deploy.life_fd < 0 &&
	       clock_mono_ns() - p->lifecycle.since_ns > FINISH_NS;
}
