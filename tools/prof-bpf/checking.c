/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/checking.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "tools/prof-bpf/checks/checks.h"
#include "tools/prof-bpf/checks/probes.h"
#include "tools/prof-bpf/events.h"
#include "tools/prof-bpf/run/prof.h"

/* Logs the first check that ends the run; the others only with -v. */
static void say_check(void *ctx, const struct check *c)
{
	bool *said = ctx;

	if (c->verdict == CHECK_FATAL && !*said)
		log_error("%s: %s: %s; %s", c->name, c->found, c->lost, c->remedy);
	else if (c->verdict == CHECK_DEGRADED)
		log_info("%s: %s; lost: %s; %s", c->name, c->found, c->lost, c->remedy);
	*said |= c->verdict == CHECK_FATAL;
}

/* clock: the result of probe_event. */
static struct checks_config what_to_check(const struct prof *p, enum checks_part part, int clock)
{
	return (struct checks_config){
		.part = part,
		.ignore_unsafe_kernel = p->options.sampling.ignore_unsafe_kernel,
		.by_root = !geteuid() || p->options.deploy.ids_given,
		.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
		.clock = clock,
	};
}

int checking_start(const struct prof *p, int clock)
{
	bool said = false;
	const struct checks_config c = what_to_check(p, CHECKS_START, clock);

	return checks_run(&c, say_check, &said) ? -EPERM : 0;
}

static void give_check(void *ctx, const struct check *c)
{
	const struct prof *p = ctx;
	const int fd = p->options.deploy.status_fd;

	if (fd < 0)
		check_print(stdout, c);
	else if (write(fd, c, sizeof(*c)) != sizeof(*c))
		log_warning("%s: the launcher does not read the check", c->name);
}

/* Tries to load the programs. They depend on the events; r is the result of opening these. */
static void check_programs(struct prof *p, int r, struct check *ret)
{
	struct loader_figures f;

	if (!r)
		r = loader_load(p->loader);
	if (r) {
		check_found(ret, "%s (%s)", strerror(-r),
			    p->loader ? loader_trouble(p->loader) : "");
		check_fail(ret, "the verifier or the kernel refuses them",
			   "boot a distribution's Linux, 5.10 or later, and report this line");
		return;
	}
	loader_figures(p->loader, &f);
	char verified[48] = "";

	if (f.verified)
		snprintf(verified, sizeof(verified), "%u instructions verified, ", f.verified);
	check_found(ret, "loaded: %s%.1f MiB of maps", verified, (double)f.map_bytes / (1 << 20));
}

int checking_host(struct prof *p)
{
	struct sandbox sandbox = { .caps = SANDBOX_BPF_CAPS, .max_files = 4096 };
	struct checks_config c = what_to_check(p, CHECKS_ALL, probe_event(0));
	struct check programs;
	const int r = c.clock ? c.clock : events_open(p);

	c.cycles = c.clock ? c.clock : probe_event(1);
	if (p->options.deploy.ids_given && deploy_enter(&p->options.deploy, DEPLOY_BPF, &sandbox))
		return EXITS_FAILED;
	unsigned fatal = checks_run(&c, give_check, p);

	check_init(&programs, "programs");
	if (fatal)
		check_found(&programs, "not loaded, since a check above is fatal");
	else
		check_programs(p, r, &programs);
	fatal += programs.verdict == CHECK_FATAL;
	give_check(p, &programs);
	loader_free(p->loader);
	return fatal ? EXITS_FAILED : EXITS_DONE;
}
