/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/log.h"
#include "tools/profpipe/children.h"
#include "tools/profpipe/command.h"
#include "tools/profpipe/identity.h"
#include "tools/profpipe/outputs.h"
#include "tools/profpipe/record.h"
#include "tools/profpipe/rundir.h"
#include "tools/profpipe/summary.h"

#define READY_MS 15000		/* from the start of the tools to sampling */
#define FINISH_MS 60000		/* from the end of sampling to the output's being written */
#define SILENT_MS 20000		/* without a status word of prof-export while it is not finishing */
#define TICK_MS 250
#define RESTARTS_MAX 10		/* of prof-deltas */

enum phase { STARTING, RUNNING, FINISHING, OVER };

struct run {
	const struct options *o;
	struct child tools[DEPLOY_TOOLS];
	struct identity who;
	struct rundir dir;
	struct command command;
	int output, summary, signals;
	enum phase phase;
	bool tty, line_shown, failed, stopped_by_user;
	unsigned restarts;
	uint64_t start_ns, since_ns, sampling_ns, sampled_ns, measured_ns;
	double gone_cpu_s;		/* of extractors that died */
};

static const char *const names[DEPLOY_TOOLS] = { "prof-bpf", "prof-deltas", "prof-symd", "prof-export" };

static uint64_t ms_since(uint64_t then)
{
	return (clock_mono_ns() - then) / 1000000;
}

static void clear_line(struct run *r)
{
	if (r->line_shown)
		fputs("\r\033[K", stderr);
	r->line_shown = false;
}

static int start_tool(struct run *r, enum deploy_tool t)
{
	char ids[80], follow[16];
	const char *argv[32 + 2 * OPTIONS_MAX_PIDS];
	size_t n = 0, fds = 0;
	struct child_fd fd[1];

	snprintf(ids, sizeof(ids), "%u:%u:%u:%u:%u", r->who.gid, r->who.uid[0], r->who.uid[1], r->who.uid[2], r->who.uid[3]);
	argv[n++] = names[t];
	argv[n++] = "--run-dir";
	argv[n++] = r->dir.path;
	/* Without root there is nobody else to become. */
	if (geteuid() == 0) {
		argv[n++] = "--ids";
		argv[n++] = ids;
	}
	argv[n++] = "--status-fd";
	argv[n++] = CHILD_STATUS_FD;
	argv[n++] = "--life-fd";
	argv[n++] = CHILD_LIFE_FD;
	if (r->o->verbose)
		argv[n++] = "-v";
	switch (t) {
	case DEPLOY_BPF:
		argv[n++] = "-F";
		argv[n++] = r->o->hz;
		if (r->o->seconds) {
			argv[n++] = "-d";
			argv[n++] = r->o->seconds;
		}
		for (size_t i = 0; i < r->o->pid_count; i++) {
			argv[n++] = "-p";
			argv[n++] = r->o->pids[i];
		}
		if (r->command.pid) {
			snprintf(follow, sizeof(follow), "%d", r->command.pid);
			argv[n++] = "--follow";
			argv[n++] = follow;
		}
		break;
	case DEPLOY_EXPORT:
		argv[n++] = "-f";
		argv[n++] = r->o->format;
		argv[n++] = "--output-fd";
		argv[n++] = "5";
		fd[fds++] = (struct child_fd){ r->output, CHILD_FIRST_FD };
		break;
	default:
		break;
	}
	argv[n] = NULL;
	int e = child_start(&r->tools[t], names[t], argv, fd, fds);
	if (e)
		log_error("%s: %s: it should stand beside profpipe, or in %s", names[t], strerror(-e), PROFPIPE_LIBEXECDIR);
	return e;
}

/* Sampling ends; what has been collected goes on to the output. */
static void finish(struct run *r)
{
	if (r->phase >= FINISHING)
		return;
	if (r->phase == STARTING)
		r->failed = true;
	r->phase = FINISHING;
	r->since_ns = clock_mono_ns();
	if (r->sampling_ns)
		r->sampled_ns = r->since_ns - r->sampling_ns;
	struct child *bpf = &r->tools[DEPLOY_BPF];
	if (!bpf->reaped && bpf->life >= 0 && write(bpf->life, "S", 1) < 0)
		log_warning("prof-bpf does not listen any more");
}

static void tool_ended(struct run *r, enum deploy_tool t)
{
	struct child *c = &r->tools[t];
	bool well = WIFEXITED(c->wait_status) && WEXITSTATUS(c->wait_status) == 0;

	child_read(c, true);
	if (r->phase == OVER || (r->phase == FINISHING && well))
		return;
	clear_line(r);
	if (t == DEPLOY_DELTAS && r->phase == RUNNING && r->restarts < RESTARTS_MAX) {
		log_warning("prof-deltas ended (%s); started again", child_how(c));
		r->gone_cpu_s += c->cpu_s;
		r->restarts++;
		child_end(c, 0);
		if (start_tool(r, t) == 0)
			return;
	}
	/* prof-bpf ends by itself when its time is over or what it follows is gone; the stream says so. */
	if (well && t == DEPLOY_BPF && r->phase == RUNNING) {
		finish(r);
		return;
	}
	if (t == DEPLOY_DELTAS && r->phase == FINISHING)
		return;
	if (r->phase != STARTING || !c->last_line[0])
		log_error("%s ended (%s)%s%s", c->name, child_how(c), r->phase == STARTING ? "" : "; what was collected is written",
			  r->phase == STARTING ? " before sampling began" : "");
	r->failed = true;
	if (r->phase == STARTING || t == DEPLOY_EXPORT)
		r->phase = OVER;
	else
		finish(r);
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo si;

	while (read(r->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		if (r->phase == FINISHING && r->stopped_by_user) {
			clear_line(r);
			log_error("interrupted a second time: what was not written yet is lost");
			r->failed = true;
			r->phase = OVER;
			return;
		}
		r->stopped_by_user = true;
		if (r->phase == STARTING)
			r->phase = OVER;
		else
			finish(r);
	}
}

/* All tools stand, and samples flow. */
static void begin(struct run *r)
{
	int e = output_begin(r->output);

	if (e)
		log_warning("%s: cannot be emptied first: %s", r->o->output, strerror(-e));
	r->phase = RUNNING;
	r->sampling_ns = clock_mono_ns();
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		child_measure(&r->tools[i]);
		r->tools[i].ready_cpu_s = r->tools[i].cpu_s;
	}
	if (!r->command.pid)
		return;
	e = command_release(&r->command);
	if (e) {
		clear_line(r);
		log_error("%s: %s: the command was not started", r->o->command[0], strerror(-e));
		r->failed = true;
		finish(r);
	}
}

static void check_deadlines(struct run *r)
{
	struct child *export = &r->tools[DEPLOY_EXPORT];

	if (r->phase == STARTING && ms_since(r->start_ns) > READY_MS) {
		for (int i = 0; i < DEPLOY_TOOLS; i++) {
			if (!r->tools[i].ready)
				log_error("%s was not ready after %d s", names[i], READY_MS / 1000);
		}
		r->failed = true;
		r->phase = OVER;
	}
	if (r->phase == RUNNING && ms_since(export->heard_ns) > SILENT_MS) {
		clear_line(r);
		log_error("prof-export has said nothing for %d s: ending", SILENT_MS / 1000);
		r->failed = true;
		finish(r);
	}
	if (r->phase == FINISHING && ms_since(r->since_ns) > FINISH_MS) {
		clear_line(r);
		log_error("the output was not written %d s after sampling ended: giving up", FINISH_MS / 1000);
		r->failed = true;
		r->phase = OVER;
	}
}

static void tick(struct run *r)
{
	if (r->phase == RUNNING && ms_since(r->measured_ns) >= 1000) {
		for (int i = 0; i < DEPLOY_TOOLS; i++)
			child_measure(&r->tools[i]);
		r->measured_ns = clock_mono_ns();
	}
	if (r->tty && !r->o->quiet && r->phase < OVER) {
		summary_progress(stderr, (double)ms_since(r->sampling_ns ? r->sampling_ns : r->start_ns) / 1000.0,
				 &r->tools[DEPLOY_EXPORT].last,
				 r->phase == STARTING ? "starting" : r->phase == RUNNING ? "sampling" : "finishing");
		r->line_shown = true;
	}
}

static void loop(struct run *r)
{
	uint64_t ticked = 0;

	while (r->phase != OVER) {
		struct pollfd p[1 + 2 * DEPLOY_TOOLS] = { { .fd = r->signals, .events = POLLIN } };
		nfds_t n = 1;

		for (int i = 0; i < DEPLOY_TOOLS; i++) {
			/* At its end a pipe is readable for good: a reaped tool's is not polled. */
			if (r->tools[i].reaped)
				continue;
			p[n++] = (struct pollfd){ .fd = r->tools[i].status, .events = POLLIN };
			p[n++] = (struct pollfd){ .fd = r->tools[i].log, .events = POLLIN };
		}
		poll(p, n, r->phase == STARTING ? 20 : TICK_MS);
		on_signal(r);
		for (int i = 0; i < DEPLOY_TOOLS; i++) {
			struct child *c = &r->tools[i];
			unsigned before = c->lines;

			if (r->line_shown && before != c->lines)
				clear_line(r);
			child_read(c, true);
			if (!c->reaped && child_reap(c))
				tool_ended(r, (enum deploy_tool)i);
		}
		command_reap(&r->command);
		if (r->phase == STARTING) {
			bool ready = true;

			for (int i = 0; i < DEPLOY_TOOLS; i++)
				ready &= r->tools[i].ready;
			if (ready)
				begin(r);
		}
		if (r->tools[DEPLOY_EXPORT].done && r->tools[DEPLOY_EXPORT].reaped)
			r->phase = OVER;
		check_deadlines(r);
		if (ms_since(ticked) >= TICK_MS) {
			tick(r);
			ticked = clock_mono_ns();
		}
	}
	clear_line(r);
}

static void conclude(struct run *r)
{
	struct summary_cost costs[DEPLOY_TOOLS];
	const struct status *f = &r->tools[DEPLOY_EXPORT].last;

	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		costs[i] = (struct summary_cost){ .tool = names[i], .cpu_s = r->tools[i].cpu_s, .start_cpu_s = r->tools[i].ready_cpu_s,
						  .pss_peak = r->tools[i].pss_peak };
	}
	costs[DEPLOY_DELTAS].cpu_s += r->gone_cpu_s;
	struct summary s = {
		.figures = *f, .hz = r->o->hz, .format = r->o->format, .output = r->o->output, .costs = costs, .cost_count = DEPLOY_TOOLS,
		.duration_s = (double)r->sampled_ns / 1e9, .first_complete_s = -1,
	};
	if (f->first_complete_ns > r->start_ns)
		s.first_complete_s = (double)(f->first_complete_ns - r->start_ns) / 1e9;
	if (!r->o->quiet) {
		summary_print(stderr, &s);
		if (strcmp(r->o->output, "-") != 0 && r->tools[DEPLOY_EXPORT].done)
			fprintf(stderr, "written: %s\n", r->o->output);
	}
	if (r->summary >= 0) {
		int e = output_begin(r->summary);

		if (!e)
			e = summary_json(r->summary, &s);
		if (e) {
			log_error("%s: %s: the summary was not written", r->o->summary, strerror(-e));
			r->failed = true;
		}
	}
}

static int open_output(const char *path, int *ret_fd)
{
	int e = output_open(path, ret_fd);

	if (e == -ELOOP)
		log_error("%s: is a symbolic link; name the file it leads to", path);
	else if (e == -ENOTSUP)
		log_error("%s: neither a file, a pipe nor a character device", path);
	else if (e)
		log_error("%s: cannot be written: %s", path, strerror(-e));
	return e;
}

int record_run(const struct options *o)
{
	struct run r = { .o = o, .output = -1, .summary = -1, .signals = -1, .start_ns = clock_mono_ns(), .tty = isatty(STDERR_FILENO) };
	sigset_t set;
	int e = 0;

	for (int i = 0; i < DEPLOY_TOOLS; i++)
		r.tools[i] = (struct child){ .name = names[i], .status = -1, .log = -1, .life = -1 };
	r.who.lock = -1;
	if (open_output(o->output, &r.output) || (o->summary && open_output(o->summary, &r.summary)))
		return 1;
	if (o->command && (e = command_prepare(&r.command, o->command)) != 0) {
		log_error("%s: %s", o->command[0], strerror(-e));
		return 1;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	r.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	e = r.signals < 0 ? -errno : identity_take(&r.who);
	if (e)
		log_error("no identities for the tools: %s", e == -EBUSY ? "64 other runs hold them all" : strerror(-e));
	if (!e) {
		e = rundir_make(&r.dir, &r.who);
		if (e)
			log_error("no folder for the run: %s", strerror(-e));
	}
	for (int i = 0; i < DEPLOY_TOOLS && !e; i++)
		e = start_tool(&r, (enum deploy_tool)i);
	if (!e)
		loop(&r);
	else
		r.failed = true;

	bool wrote = r.tools[DEPLOY_EXPORT].done;
	/* From the end of the pipeline to its beginning, so that none sees its peer go before its time. */
	r.phase = OVER;
	child_end(&r.tools[DEPLOY_EXPORT], 200);
	child_end(&r.tools[DEPLOY_SYMD], 500);
	child_end(&r.tools[DEPLOY_DELTAS], 500);
	child_end(&r.tools[DEPLOY_BPF], 2000);
	if (r.sampling_ns)
		conclude(&r);
	if (!r.stopped_by_user && r.command.pid && !command_reap(&r.command) && r.failed)
		command_drop(&r.command);
	if (r.command.ended && r.sampling_ns && (!WIFEXITED(r.command.wait_status) || WEXITSTATUS(r.command.wait_status))) {
		if (WIFSIGNALED(r.command.wait_status))
			log_warning("the command ended by signal %d", WTERMSIG(r.command.wait_status));
		else
			log_warning("the command ended with exit status %d", WEXITSTATUS(r.command.wait_status));
	}
	if (!r.sampling_ns)
		command_drop(&r.command);
	rundir_remove(&r.dir);
	identity_release(&r.who);
	close(r.output);
	return r.failed || !wrote ? 1 : 0;
}
