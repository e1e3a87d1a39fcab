/* SPDX-License-Identifier: Apache-2.0 */
/* A recording through the later stages: prof-symd, for native names that a raw one lacks, and prof-export, joined by a pipe, with no identity that could do more than that. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/log.h"
#include "tools/profpipe/children.h"
#include "tools/profpipe/identity.h"
#include "tools/profpipe/outputs.h"
#include "tools/profpipe/record.h"

static int status_of(const struct child *c)
{
	return WIFEXITED(c->wait_status) ? WEXITSTATUS(c->wait_status) : 1;
}

int report_run(const struct options *o)
{
	struct child symd = { 0 }, export = { 0 };
	int input, output, middle[2];
	int e = input_open(o->input, &input);

	if (e) {
		log_error("%s: cannot be read: %s", o->input, strerror(-e));
		return 1;
	}
	e = output_open(o->output, &output);
	if (e) {
		log_error("%s: %s", o->output,
			  e == -ELOOP ? "is a symbolic link; name the file it leads to" :
			  e == -ENOTSUP ? "neither a file, a pipe nor a character device" : strerror(-e));
		return 1;
	}
	if (pipe2(middle, O_CLOEXEC) < 0 || (e = output_begin(output)) != 0) {
		log_error("%s: %s", o->output, strerror(e ? -e : errno));
		return 1;
	}
	const char *const symd_argv[] = { "prof-symd", NULL };
	const char *const export_argv[] = { "prof-export", "-f", o->format, NULL };
	const struct child_fd symd_fds[] = { { input, 0 }, { middle[1], 1 } };
	const struct child_fd export_fds[] = { { middle[0], 0 }, { output, 1 } };
	e = child_start(&symd, "prof-symd", symd_argv, symd_fds, 2);
	if (!e)
		e = child_start(&export, "prof-export", export_argv, export_fds, 2);
	close(middle[0]);
	close(middle[1]);
	close(input);
	if (e)
		log_error("prof-symd or prof-export: %s: they should stand beside profpipe, or in %s", strerror(-e), PROFPIPE_LIBEXECDIR);
	while (!e && !(symd.reaped && export.reaped)) {
		struct pollfd p[] = { { .fd = symd.reaped ? -1 : symd.log, .events = POLLIN }, { .fd = export.reaped ? -1 : export.log, .events = POLLIN } };

		poll(p, 2, 50);
		child_read(&symd, true);
		child_read(&export, true);
		child_reap(&symd);
		child_reap(&export);
	}
	child_end(&export, 200);
	child_end(&symd, 200);
	close(output);
	if (e)
		return 1;
	/* What prof-symd could not read, prof-export has already written as far as it came. */
	return status_of(&symd) ? 1 : status_of(&export) ? 1 : 0;
}
