/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/helpers.h"

#include "common/base/command/log.h"
#include "tools/prof-bpf/run/prof.h"

/* Fails the run if the keeper is gone: only it can start workers, and prof-bpf cannot start a
 * keeper. */
void helpers_run(struct prof *p, uint64_t now_ns)
{
	workerpool_run(p->pool, now_ns);
	if (!workerpool_lost(p->pool) || p->lifecycle.failed)
		return;
	log_error("prof-bpf-keeper ended, and only its workers can open files; "
		  "restart prof-bpf (profpipe does so)");
	lifecycle_fail(&p->lifecycle, p->output.bus != NULL);
}

/* Fails the run if the loader is gone: only it may load programs. */
void helpers_hear_loader(struct prof *p)
{
	const int r = loader_hear_late(p->loader);

	requests_loaded(&p->requests);
	if (!r || p->lifecycle.failed)
		return;
	log_error(
		"prof-bpf-loader ended, and only it can load the programs that read interpreters; "
		"restart prof-bpf (profpipe does so)");
	lifecycle_fail(&p->lifecycle, p->output.bus != NULL);
}
