/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profpipe: the launcher. It opens what the user named, gives each tool its identity and its
 * sockets, starts the four, and says at the end what came of it. Of what the tools say it reads
 * status words of fixed width, and prints their log lines escaped; it parses nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/log.h"
#include "common/stdfds.h"
#include "common/toolpath.h"
#include "tools/profpipe/children.h"
#include "tools/profpipe/doctor.h"
#include "tools/profpipe/options.h"
#include "tools/profpipe/record.h"

/* Stacks are the business of a tool of its own, which has its caller's rights and no more. */
static int become_dump(char **argv)
{
	static char name[] = "prof-dump";
	char path[4096];
	int r = tool_path(name, path, sizeof(path));

	if (!r) {
		argv[0] = name;
		execv(path, argv);
		r = -errno;
	}
	log_error("prof-dump cannot be run: %s; it is looked for beside profpipe, and in %s",
		  strerror(-r), PROFPIPE_LIBEXECDIR);
	return 1;
}

int main(int argc, char **argv)
{
	static struct options o;

	stdfds_hold();
	log_init("profpipe", LOG_WARNING);
	if (argc < 2) {
		log_error(
			"what is to be done? `profpipe record` profiles this host, `profpipe report FILE.prof` replays a recording, `profpipe dump PID` prints stacks, `profpipe doctor` says what this host allows (see profpipe --help)");
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		options_usage();
		return stdfds_flush();
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("profpipe " PROFPIPE_VERSION);
		return stdfds_flush();
	}
	if (strcmp(argv[1], "dump") == 0)
		return become_dump(argv + 1);
	if (strcmp(argv[1], "doctor") == 0) {
		const int e = options_doctor(argc - 1, argv + 1, &o);

		return e >= 0 ? e : doctor_run(&o);
	}
	bool record = strcmp(argv[1], "record") == 0;
	if (!record && strcmp(argv[1], "report") != 0) {
		log_error(
			"%s: no such subcommand; there are record, report, dump and doctor (see profpipe --help)",
			argv[1]);
		return 2;
	}
	int r = record ? options_record(argc - 1, argv + 1, &o)
		       : options_report(argc - 1, argv + 1, &o);
	if (r >= 0)
		return r;
	if (o.verbose)
		log_init("profpipe", LOG_INFO);
	return record ? record_run(&o) : report_run(&o);
}
