/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/newcpus.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include "common/base/command/log.h"
#include "tools/prof-bpf/run/prof.h"

/* Logs that the helper has ended: a new one cannot be started, since prof-bpf no longer has the
 * right. */
static void say_ended(int wait_status)
{
	static const char lost[] = "cpus that come online later are not sampled";

	if (WIFSIGNALED(wait_status))
		log_warning("%s: signal %d (%s) ended prof-cpus; restart profpipe to sample them",
			    lost, WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else if (WEXITSTATUS(wait_status))
		log_warning("%s: prof-cpus ended with exit status %d; restart profpipe to sample "
			    "them",
			    lost, WEXITSTATUS(wait_status));
	else
		log_info("%s: kernel.perf_event_paranoid is above 2", lost);
}

/* Takes over the events of one cpu. */
static void take(struct prof *p, uint32_t cpu, int sampling, int sideband)
{
	const struct sideband_event unknown = { .type = SIDEBAND_LOST };

	/* Drain what is left in the cpu's old ring. */
	samples_drain(&p->samples);
	int r = sideband_cpu(p->sideband, cpu, sideband);
	const int e = loader_cpu(p->loader, cpu, sampling);

	r = r ? r : e;
	if (r)
		log_warning("cpu %u came online but is not sampled: %s; restart profpipe to sample "
			    "it",
			    cpu, strerror(-r));
	else
		log_info("cpu %u came online", cpu);
	/* Earlier events on that cpu are unknown, so read the processes again. */
	host_event(p->host, &unknown);
}

void newcpus_take(struct prof *p)
{
	const bool waited = p->cpus.waits;
	uint32_t cpu;
	int sampling, sideband, r;

	for (;;) {
		r = cpus_next(&p->cpus, &cpu, &sampling, &sideband);
		if (r)
			break;
		take(p, cpu, sampling, sideband);
	}
	if (r == -EMFILE && !waited)
		log_warning("a cpu came online but is not sampled until descriptors are free: %s; "
			    "allow more open files (ulimit -n)",
			    strerror(-r));
	if (r == -ENFILE)
		log_warning(
			"a cpu came online but is not sampled: %s; raise fs.file-max and restart "
			"profpipe",
			strerror(-r));
	if (r == -EPIPE)
		say_ended(p->cpus.wait_status);
}
