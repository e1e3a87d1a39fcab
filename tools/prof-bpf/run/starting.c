/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/starting.h"

#include <string.h>
#include "common/base/command/log.h"
#include "tools/prof-bpf/kernel/runtimes.h"
#include "tools/prof-bpf/run/prof.h"

#define CONNECT_NS 20000000000ull /* how long the start waits for the peers */
/* How long the start then waits for files that are already mapped. Later rows still help deferred
 * samples. Until interpreters are described, their frames appear as native ones. */
#define ROWS_WAIT_NS 200000000ull
#define OFFERS_WAIT_NS 1000000000ull
/* Likewise, for files of the selected programs. Without their rows, each sample is deferred. */
#define CHOSEN_ROWS_WAIT_NS 2000000000ull
#define CHOSEN_WAIT_NS 5000000000ull
/* How long to wait until prof-export has the key (witness_report.h). */
#define HEARD_WAIT_NS 5000000000ull
#define CHOSEN_FILES 512

static bool has_chosen(const struct prof *p)
{
	return p->options.follow || p->options.sampling.pid_count;
}

bool starting_is_chosen(const struct prof *p)
{
	return p->lifecycle.phase == LIFECYCLE_CONNECTING && has_chosen(p);
}

void starting_load_early(struct prof *p, const struct host_file *f)
{
	const enum runtime early = has_chosen(p) && f->path ? runtimes_early(f->path)
							    : RUNTIME_NONE;

	if (early != RUNTIME_NONE && p->options.deploy.run_dir)
		(void)loader_runtime(p->loader, early);
}

bool starting_takes_file(struct prof *p)
{
	const bool takes = starting_is_chosen(p) && p->starting.chosen_files < CHOSEN_FILES;

	p->starting.chosen_files += takes;
	return takes;
}

static void start_sampling(struct prof *p)
{
	int r = p->lifecycle.paused ? 0 : loader_start(p->loader);

	if (r) {
		log_error("sampling cannot begin: %s; this needs CAP_PERFMON and CAP_BPF",
			  strerror(-r));
		lifecycle_fail(&p->lifecycle, false);
		return;
	}
	witness_report_begin(&p->witness_report);
	lifecycle_enter(&p->lifecycle, LIFECYCLE_SAMPLING);
	p->last.flushed_ns = p->lifecycle.sampling_ns = p->lifecycle.since_ns;
	output_emitted(&p->output,
		       emit_figure(p->output.emit, "sampling_since", p->lifecycle.sampling_ns));
	deploy_status(&p->options.deploy, &p->status, STATUS_READY);
}

/* Whether all peers have what they need, `waited_ns` after they were connected. */
static bool is_ready(const struct prof *p, uint64_t waited_ns)
{
	const bool chosen = starting_is_chosen(p),
		   rows = host_settled(p->host) && row_server_idle(p->row_server),
		   offers = offers_idle(&p->offers) && !(chosen && loader_is_loading(p->loader));

	return (witness_report_ready(&p->witness_report) || waited_ns > HEARD_WAIT_NS) &&
	       (rows || waited_ns > (chosen ? CHOSEN_ROWS_WAIT_NS : ROWS_WAIT_NS)) &&
	       (offers || waited_ns > (chosen ? CHOSEN_WAIT_NS : OFFERS_WAIT_NS));
}

void starting_try(struct prof *p)
{
	struct prof_starting *s = &p->starting;
	const uint64_t now = clock_mono_ns();
	const bool connected = row_server_connected(p->row_server) &&
			       output_has_receiver(&p->output);

	if (!connected)
		s->connected_ns = 0;
	else if (!s->connected_ns)
		s->connected_ns = now;
	if (!witness_report_ready(&p->witness_report))
		witness_report_repeat(&p->witness_report);
	if (connected) {
		if (is_ready(p, now - s->connected_ns))
			start_sampling(p);
	} else if (now - p->lifecycle.since_ns > CONNECT_NS) {
		log_error("%s did not connect within %d s; see its own messages",
			  row_server_connected(p->row_server) ? "prof-symd" : "prof-deltas",
			  (int)(CONNECT_NS / 1000000000));
		lifecycle_fail(&p->lifecycle, p->output.bus != NULL);
	}
}
