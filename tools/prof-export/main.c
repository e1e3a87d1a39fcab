/* SPDX-License-Identifier: Apache-2.0 */
/* prof-export turns a stream into a file. By hand it reads standard input. In a deployment it reads
 * from prof-symd and writes to descriptors of the launcher. */
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/files/outfile.h"
#include "common/base/system/heap.h"
#include "tools/prof-export/by_hand.h"
#include "tools/prof-export/deployed.h"

#define MEMORY_MIB 256

int main(int argc, char **argv)
{
	static struct job job = JOB_INIT;
	struct options o = {
		.mode = OUTFILE_MODE, .output_fd = -1, .journal_fd = -1, .next_fd = -1
	};

	stdfds_hold();
	log_init("prof-export", LOG_WARNING);
	const int r = options_parse(argc, argv, &o);

	if (r != EXITS_GO_ON)
		return r;
	heap_setup();
	o.session.many = o.deploy.run_dir != NULL;
	/* The first output of a run has the number 0. */
	o.session.joins = o.file > 0;
	if (!o.deploy.run_dir) {
		if (!o.session.memory_max)
			o.session.memory_max = (size_t)MEMORY_MIB << 20;
		return by_hand_run(&job, &o);
	}
	struct budget budget;

	deploy_budget(&o.deploy, &budget);
	o.session.share_most = budget.export_most;
	o.session.memory_max = budget.model;
	o.session.requests_max = budget.requests;
	return deployed_run(&job, &o);
}
