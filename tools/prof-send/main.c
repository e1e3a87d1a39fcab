/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-send delivers finished requests to receivers of OTLP. It is the only tool with access to the
 * network, and never sees the stream of samples: it does not parse requests. By hand, requests come
 * on standard input; in a deployment, they come from prof-export.
 */
#include <nss.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/system/heap.h"
#include "tools/prof-send/by_hand.h"
#include "tools/prof-send/deployed.h"
#include "tools/prof-send/job.h"
#include "tools/prof-send/options.h"

int main(int argc, char **argv)
{
	static struct options o;

	stdfds_hold();
	log_init("prof-send", LOG_WARNING);
	const int r = options_parse(argc, argv, &o);

	if (r != EXITS_GO_ON)
		return r;
	heap_setup();
	/* Other services are modules, which libc would try to load after the sandbox is closed. */
	__nss_configure_lookup("hosts", "files dns");
	if (o.check)
		return job_check(&o);
	return o.deploy.run_dir ? deployed_run(&o) : by_hand_run(&o);
}
