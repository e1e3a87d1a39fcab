/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report sends a recording through a pipeline: prof-symd, for native names that a raw recording
 * lacks, prof-export, and, with --otlp, prof-send.
 *
 * The first two open files by path, and a recording from another host could name any file. So if
 * root calls report, they run as the user who called sudo, or else as a user without rights.
 * prof-send does not parse the requests that it delivers. It runs as the caller, whose tokens and
 * keys it needs, and confines itself.
 */
#include "tools/profpipe/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/words.h"
#include "common/base/files/fd.h"
#include "common/base/system/clock.h"
#include "tools/profpipe/run/children/child.h"
#include "tools/profpipe/run/outputs/outputs.h"
#include "tools/profpipe/run/rights/identity.h"
#include "tools/profpipe/run/rights/user.h"

/* Prof-symd and prof-export may both report the same error of a recording. */
#define HELD_NS 300000000u

enum { SYMD, EXPORT, SEND, STAGES };

struct pipeline {
	struct child stages[STAGES];
	bool said;
};

static void show(void *ctx, const struct child *c, const char *line)
{
	struct pipeline *p = ctx;

	if (!p->said)
		fprintf(stderr, "%s\n", line);
}

/* Chooses the user of the first two stages. Returns 0, or a negative errno of identity_take. */
static int choose_user(struct identity *who, struct child_start *how)
{
	if (geteuid() != 0)
		return 0;
	how->drop = true;
	/* The group root has rights that the tools must not have. */
	if (user_of_sudo(&how->uid, &how->gid) == 0 && how->gid != 0)
		return 0;
	const int r = identity_take(who);

	how->uid = who->uid[DEPLOY_SYMD];
	how->gid = who->gid;
	return r;
}

/* run_start_tool passes the same options. */
static void export_words(const struct options *o, struct words *w)
{
	words_add(w, "prof-export");
	words_add(w, "-f");
	words_add(w, format_names[o->format]);
	if (o->lines)
		words_add(w, "--lines");
	if (o->interpreter_frames)
		words_add(w, "--interpreter-frames");
	if (o->code)
		words_add(w, "--code");
	reporting_words(&o->reporting, w);
}

static int start_stage(struct child *c, const struct child_start *as, struct words *w, int in,
		       int out)
{
	const struct child_fd fds[] = { { in, 0 }, { out, 1 } };
	struct child_start how = *as;
	int r = words_end(w);

	how.argv = (const char *const *)w->argv;
	how.fds = fds;
	how.count = out < 0 ? 1 : 2;
	if (!r)
		r = child_start(c, &how);
	words_done(w);
	return r;
}

static int start_send(struct pipeline *p, const struct options *o, int in)
{
	const char *variables[OTLP_VARIABLES];
	const struct child_start how = { .variables = variables };
	struct words w = WORDS_NONE;

	otlp_variables(variables);
	words_add(&w, "prof-send");
	otlp_pass_on(&o->otlp, &w);
	/* prof-send writes one line for each endpoint to its standard output, and nothing else. */
	return start_stage(&p->stages[SEND], &how, &w, in, o->quiet ? -1 : STDERR_FILENO);
}

static int start(struct pipeline *p, const struct options *o, const struct child_start *as,
		 int input, int output)
{
	struct words symd = WORDS_NONE, export = WORDS_NONE;
	int named[2] = { -1, -1 }, made[2] = { -1, -1 };
	int r = pipe2(named, O_CLOEXEC) < 0 || pipe2(made, O_CLOEXEC) < 0 ? -errno : 0;

	words_add(&symd, "prof-symd");
	reporting_names_words(&o->reporting, &symd);
	export_words(o, &export);
	if (!r)
		r = start_stage(&p->stages[SYMD], as, &symd, input, named[1]);
	if (!r)
		r = start_stage(&p->stages[EXPORT], as, &export, named[0],
				o->otlp.endpoints ? made[1] : output);
	if (!r && o->otlp.endpoints)
		r = start_send(p, o, made[0]);
	for (int i = 0; i < 2; i++) {
		fd_close(&named[i]);
		fd_close(&made[i]);
	}
	words_done(&symd);
	words_done(&export);
	return r;
}

static bool any_lives(const struct pipeline *p)
{
	bool any = false;

	for (int i = 0; i < STAGES; i++)
		any |= p->stages[i].pid != 0;
	return any;
}

/* Waits until all stages have ended; they end because the recording ends. */
static void wait_for_all(struct pipeline *p)
{
	while (any_lives(p)) {
		struct pollfd fds[2 * STAGES];

		for (int i = 0; i < STAGES; i++) {
			fds[2 * i] = (struct pollfd){ .fd = p->stages[i].log, .events = POLLIN };
			fds[2 * i + 1] = (struct pollfd){ .fd = p->stages[i].pidfd,
							  .events = POLLIN };
		}
		poll(fds, 2 * STAGES, 250);
		for (int i = 0; i < STAGES; i++) {
			child_read(&p->stages[i], show, p);
			child_reap(&p->stages[i]);
			child_show_pending(&p->stages[i], clock_mono_ns() - HELD_NS, show, p);
		}
	}
	for (int i = 0; i < STAGES; i++)
		child_read(&p->stages[i], show, p);
}

static bool ended_well(const struct child *c)
{
	return WIFEXITED(c->wait_status) && WEXITSTATUS(c->wait_status) == 0;
}

/* Whether the stage ended only because the next stage did. */
static bool has_followed(const struct pipeline *p, const struct child *c)
{
	const struct child *send = &p->stages[SEND];

	return c != send && send->started_ns && !ended_well(send) &&
	       (!c->pending_ns || strstr(c->pending, strerror(EPIPE)));
}

/* Logs one line with the error of the first stage that failed. Returns an exit status. */
static int verdict(struct pipeline *p, const struct options *o)
{
	for (int i = 0; i < STAGES; i++) {
		struct child *c = &p->stages[i];
		const size_t n = strlen(c->name);
		const char *line = c->pending;

		if (!c->started_ns)
			continue;
		if (ended_well(c)) {
			child_show_pending(c, UINT64_MAX, show, p);
			continue;
		}
		if (p->said || has_followed(p, c))
			continue;
		/* prof-send warns of each failed attempt, but it fails only if a request is finally
		 * lost. */
		if (i == SEND && strstr(line, ": warning: "))
			child_show_pending(c, UINT64_MAX, show, p);
		if (!c->pending_ns && i == SEND && WIFEXITED(c->wait_status)) {
			log_error("%s: some requests were not delivered; see the warnings",
				  o->input);
		} else if (!c->pending_ns) {
			log_error("%s: %s ended with %s; if memory ran out, free some, otherwise "
				  "report this",
				  o->input, c->name, child_how(c->wait_status));
		} else {
			/* Messages of prof-send are about receivers. Messages of the others are
			 * about the recording, which they call standard input. */
			static const char *const heads[] = { ": ", "error: ", "standard input: " };

			line += n;
			for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++)
				line += strncmp(line, heads[k], strlen(heads[k])) == 0
						? strlen(heads[k])
						: 0;
			if (i == SEND)
				log_error("%s", line);
			else
				log_error("%s: %s", o->input, line);
		}
		p->said = true;
	}
	const struct child *send = &p->stages[SEND];

	if (p->said && WIFEXITED(send->wait_status) &&
	    WEXITSTATUS(send->wait_status) == EXITS_USAGE)
		return EXITS_USAGE;
	return p->said ? EXITS_FAILED : EXITS_DONE;
}

int report_run(const struct options *o)
{
	static struct pipeline p;
	struct identity who = { .lock = -1 };
	struct child_start as = { 0 };
	struct outfile output = OUTFILE_NONE;
	struct stat in;
	int input;
	int r = output_open_input(o->input, &input);

	p.stages[SYMD] = CHILD_NONE("prof-symd");
	p.stages[EXPORT] = CHILD_NONE("prof-export");
	p.stages[SEND] = CHILD_NONE("prof-send");
	if (r) {
		log_error("%s: cannot be read: %s; name a recording", o->input, strerror(-r));
		return EXITS_FAILED;
	}
	if (o->output)
		r = output_open(&output, o->output, o->mode, format_streams(o->format));
	if (r) {
		log_error("%s: %s", o->output, output_error(r));
		return EXITS_FAILED;
	}
	if (o->output && output.kind >= OUTFILE_PLACE && fstat(input, &in) == 0 &&
	    in.st_dev == output.dev && in.st_ino == output.ino) {
		log_error("%s: is the recording itself; name another output", o->output);
		(void)output_end(&output, false);
		return EXITS_FAILED;
	}
	signal(SIGPIPE, SIG_IGN);
	const int none = choose_user(&who, &as);

	r = none ? none : start(&p, o, &as, input, output.fd);
	close(input);
	if (none) {
		log_error("no users for the tools: %s; %s", identity_reason(none),
			  identity_remedy(none));
	} else if (r) {
		log_error("the tools cannot be started: %s", child_trouble(r));
		child_kill(&p.stages[SYMD]);
		child_kill(&p.stages[EXPORT]);
	}
	wait_for_all(&p);
	if (r) {
		output_drop(&output);
		return EXITS_FAILED;
	}
	r = verdict(&p, o);
	/* If the input could not be read, nothing was written, so the old file stays. */
	if (r && o->output && output.kind >= OUTFILE_PLACE && lseek(output.fd, 0, SEEK_CUR) == 0) {
		output_drop(&output);
		return r;
	}
	/* A recording that was cut off is all that there is, so its output replaces the old
	 * file. */
	const struct child *export = &p.stages[EXPORT];
	const bool whole = WIFEXITED(export->wait_status) &&
			   (WEXITSTATUS(export->wait_status) == 0 ||
			    WEXITSTATUS(export->wait_status) == EXITS_CUT);

	if (o->output && !output_conclude(&output, whole))
		r = EXITS_FAILED;
	for (int i = 0; i < STAGES; i++)
		child_close(&p.stages[i]);
	identity_release(&who);
	return r;
}
