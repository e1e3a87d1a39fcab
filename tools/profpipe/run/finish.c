/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/finish.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "common/wire/reason.h"
#include "tools/profpipe/run/summary/summary.h"

/* The figures of prof-export, which are final. If prof-export failed and knows less than prof-bpf,
 * those of prof-bpf. */
static struct status figures(struct run *r)
{
	const struct status *b = &run_tool(r, DEPLOY_BPF)->last,
			    *e = &run_tool(r, DEPLOY_EXPORT)->last;
	struct status s = run_tool(r, DEPLOY_EXPORT)->done || e->samples >= b->samples ? *e : *b;

	if (!s.bpf_runs) {
		s.bpf_runs = b->bpf_runs;
		s.bpf_ns = b->bpf_ns;
	}
	if (!s.map_bytes)
		s.map_bytes = b->map_bytes;
	if (!s.first_complete_ns)
		s.first_complete_ns = b->first_complete_ns;
	if (!s.duration_ns)
		s.duration_ns = r->sampled_ns;
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		s.restarts[i] = r->again[i].count;
	return s;
}

static void say_written(const char *path)
{
	struct buf b = BUF_INIT(0);

	if (log_escape(&b, str_from(strcmp(path, "-") ? path : "standard output"), 4096) == 0)
		fprintf(stderr, "written: %.*s\n", (int)b.len, (const char *)b.data);
	buf_done(&b);
}

/* Explains an empty profile. It is no failure if the targets were idle while the kernel sampled
 * other processes, or if the host was idle for a few seconds. */
static void say_empty(struct run *r, const struct status *f)
{
	const struct sampling *s = &r->o->sampling;
	const double seconds = (double)r->sampled_ns / 1e9;
	const uint64_t lost = reason_lost_samples(f->lost);
	const uint64_t ticks = run_tool(r, DEPLOY_BPF)->last.ticks;

	const bool chosen = s->pid_count || targets_any(&s->targets) ||
			    !cpulist_empty(&s->targets.cpus);
	unsigned restarts = 0;

	for (int i = 0; i < DEPLOY_USERS; i++)
		restarts += r->again[i].count;
	if (lost)
		run_fail(r, "no samples: all %lu that prof-bpf took were lost", lost);
	else if (restarts)
		run_fail(r, "no samples: tools were restarted %u times; see above", restarts);
	else if (r->o->command || chosen ? ticks || seconds < 1 : seconds < 3)
		log_warning("no samples: %s %s at any sampling time (every %.1f ms, for %.1f s); "
			    "raise -F",
			    r->o->command ? r->o->command[0]
			    : chosen	  ? "the chosen processes"
					  : "no process",
			    r->o->command || chosen ? "did not run" : "ran", 1000.0 / (double)s->hz,
			    seconds);
	else
		run_fail(r, "no samples: %s in %.1f s; `profpipe doctor` checks this host",
			 ticks ? "no process ran" : "the kernel's sampling event never came",
			 seconds);
}

static struct summary_cost cost_of(const struct child *c, const char *tool)
{
	return (struct summary_cost){ .tool = tool,
				      .cpu_s = (double)c->cpu_ns / 1e9,
				      .start_cpu_s = (double)c->ready_cpu_ns / 1e9,
				      .pss_peak = c->pss_peak };
}

static void settle_delivery(struct run *r, const struct status *f, struct delivery *ret)
{
	const struct status *last = &run_tool(r, DEPLOY_SEND)->last;
	const uint64_t known = last->requests_taken + last->requests_lost;
	const bool waits = otlp_spools(&r->o->otlp) && last->requests > known;

	const uint64_t handed = run_handed(r);

	delivery_add(&r->made, &run_tool(r, DEPLOY_EXPORT)->last);
	delivery_add(&r->sent, last);
	delivery_settle(f->samples, &r->made, &r->sent, r->o->otlp.endpoints, handed,
			waits ? last->requests - known : 0, ret);
	ret->restarts = r->again[DEPLOY_SEND].count;
}

static void check_delivery(struct run *r, const struct delivery *d)
{
	const struct child *send = run_tool(r, DEPLOY_SEND);
	const uint64_t missing = delivery_missing(d);

	if (!d->endpoints)
		return;
	/* In weeks of operation a receiver may be unavailable for a while; the service does not
	 * fail for it. */
	if (missing && r->daemon)
		log_warning("OTLP: %" PRIu64 " of %" PRIu64 " requests were not delivered", missing,
			    d->wanted);
	else if (missing)
		run_fail(r, "OTLP: %" PRIu64 " of %" PRIu64 " requests were not delivered", missing,
			 d->wanted);
	else if (!r->daemon && WIFEXITED(send->wait_status) &&
		 WEXITSTATUS(send->wait_status) == EXITS_FAILED)
		run_fail(r, "OTLP: a receiver rejected a part of what it got; see above");
}

void finish_run(struct run *r)
{
	/* The time between the two readings can only make the result smaller. */
	const uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME);
	const int64_t asleep_ns = (int64_t)(boot_ns - clock_mono_ns() - r->asleep_ns);
	struct summary_cost costs[DEPLOY_USERS + 2];
	int tools = run_tools(r);
	struct delivery delivery;
	struct rusage self;

	for (int i = 0; i < tools; i++)
		costs[i] = cost_of(&r->tools[i], account_tool(i));
	if (r->metrics && r->metrics->started_ns)
		costs[tools++] = cost_of(r->metrics, "prof-metrics");
	getrusage(RUSAGE_SELF, &self);
	costs[tools] = (struct summary_cost){
		.tool = "profpipe",
		.cpu_s = (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
			 (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1e6,
		.pss_peak = child_pss(getpid()),
	};
	struct summary s = {
		.figures = figures(r),
		.hz = r->o->sampling.hz,
		.format = format_names[r->o->format],
		.output = r->o->output,
		.delivery = &delivery,
		.costs = costs,
		.cost_count = (unsigned)tools + 1,
		.first_complete_s = -1,
		.pss_peak = r->pss_peak + costs[tools].pss_peak,
		.suspended_s = asleep_ns > 0 ? (double)asleep_ns / 1e9 : 0,
	};
	settle_delivery(r, &s.figures, &delivery);
	if (s.figures.first_complete_ns > r->start_ns)
		s.first_complete_s = (double)(s.figures.first_complete_ns - r->start_ns) / 1e9;
	/* A service may be stopped at any time, and may have been pausing all the time. */
	if (!s.figures.samples && !r->failed && !r->daemon)
		say_empty(r, &s.figures);
	if (account_falsified(&s.figures))
		run_fail(
			r,
			"%s: the samples differ from those that prof-bpf sent; prof-symd was taken "
			"over, or this is a bug: do not trust the profile",
			run_output(r));
	check_delivery(r, &delivery);
	if (!r->o->quiet)
		summary_print(stderr, &s);
	if (r->summary.fd >= 0) {
		const int e = summary_json(r->summary.fd, &s);

		r->summary_lost = e != 0;
		if (e)
			run_fail(r, "%s: %s; the summary was not written", r->o->summary,
				 strerror(-e));
	}
}

void finish_outputs(struct run *r)
{
	if (!r->sampling_ns || r->status) {
		output_drop(&r->output);
		output_drop(&r->summary);
		return;
	}
	run_clear_line(r);
	if (r->output.fd >= 0)
		r->failed |= !output_conclude(&r->output, run_tool(r, DEPLOY_EXPORT)->done);
	r->failed |= !output_conclude(&r->summary, !r->summary_lost);
	if (!r->o->quiet && !r->failed && r->o->output)
		say_written(r->o->output);
}
