/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profpipe: the launcher. It opens the files that the user named, gives each tool its identity and
 * its sockets, starts the tools, and sums up the run. From a tool it reads fixed-width status
 * words and log lines, which it escapes; it parses nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/base/files/toolpath.h"
#include "common/cell/confine/procroot.h"
#include "tools/profpipe/doctor/doctor.h"
#include "tools/profpipe/options/options.h"
#include "tools/profpipe/options/service.h"
#include "tools/profpipe/options/subcommands.h"
#include "tools/profpipe/report.h"
#include "tools/profpipe/run/record.h"

/* prof-dump is a separate tool that needs only its caller's rights, so exec it. */
static int become_dump(char **argv)
{
	static char name[] = "prof-dump";
	char path[4096];
	int r = toolpath_find(name, path, sizeof(path));

	if (!r) {
		argv[0] = name;
		execv(path, argv);
		r = -errno;
	}
	log_error("prof-dump cannot be run: %s; profpipe looks for it beside itself and in %s",
		  strerror(-r), toolpath_folder());
	return EXITS_FAILED;
}

int main(int argc, char **argv)
{
	static struct options o;

	stdfds_hold();
	log_init("profpipe", LOG_WARNING);
	int at;
	int r = options_subcommand(argc, argv, &at);

	if (r != EXITS_GO_ON)
		return r;
	const char *name = argv[at];

	argc -= at;
	argv += at;
	/* If this fails, the host's /proc has to do. */
	(void)procroot_take();
	if (strcmp(name, "dump") == 0)
		return become_dump(argv);
	if (strcmp(name, "doctor") == 0) {
		r = options_doctor(argc, argv, &o);
		return r != EXITS_GO_ON ? r : doctor_run(&o);
	}
	if (strcmp(name, "record") == 0) {
		r = options_record(argc, argv, &o);
		return r != EXITS_GO_ON ? r : record_run(&o);
	}
	if (strcmp(name, "run") == 0) {
		static struct service s;

		r = service_parse(argc, argv, &s);
		return r != EXITS_GO_ON ? r : record_always(&s);
	}
	if (strcmp(name, "report") == 0) {
		r = options_report(argc, argv, &o);
		return r != EXITS_GO_ON ? r : report_run(&o);
	}
	return cmdline_refuse_all("%s: no such subcommand; give record, run, report, "
				  "dump or doctor (see `profpipe --help`)",
				  name);
}
