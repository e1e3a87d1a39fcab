/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of a run, from the opened outputs to the summary. It waits for the pipes of the tools,
 * for signals and for the clock. Each wait for a tool has a deadline.
 *
 * - RUN_STARTING: the tools start. If one fails, the run ends and leaves the outputs as they were.
 * - RUN_SAMPLING: prof-bpf has reported that sampling has begun, and COMMAND runs.
 * - RUN_FINISHING: prof-bpf was asked to stop, or stopped by itself. prof-export takes the rest of
 *   the stream and writes the output. This phase ends when prof-export is done, or at a deadline.
 * - RUN_OVER: prof-send, if there is one, delivers the rest. Then the life pipes close, and all
 *   tools exit.
 *
 * A tool that was killed, hangs or lost its peer is started again (restarts.h). So are its peers,
 * if they end: a tool that dials a peer ends when it loses that peer (EXITS_AGAIN); a tool that
 * listens goes on.
 */
#include "tools/profpipe/run/record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/files/toolpath.h"
#include "common/base/system/clock.h"
#include "tools/profpipe/run/daemon.h"
#include "tools/profpipe/run/finish.h"
#include "tools/profpipe/run/reaper.h"
#include "tools/profpipe/run/rights/limits.h"
#include "tools/profpipe/run/rights/rights.h"
#include "tools/profpipe/run/run.h"
#include "tools/profpipe/run/summary/summary.h"

/* For a tool to be ready after its start, and for all tools until sampling begins. */
#define READY_MS 15000
/* The same for tools that have used the cpu for a second, or that wait in the kernel. */
#define BUSY_READY_MS 60000
/* For prof-export to write the output. The time starts at the end of sampling, and again whenever
 * there is progress. */
#define FINISH_MS 30000
#define FINISH_MOST_MS 120000
#define HELD_SAID_MS 5000
#define BLOCKED_MS 1500 /* how long prof-deltas may wait in the kernel for a file */
#define STOPPED_MS 2000 /* how long a tool may stay stopped after we noticed it */
/* For a tool that must send status words to send the next one. */
#define SILENT_MS 10000
/* The same for a tool that uses the cpu or waits in the kernel. */
#define BUSY_SILENT_MS 60000
/* prof-bpf reports every second while it samples. After COMMAND's end, this long a silence means
 * that prof-bpf has finished. */
#define GONE_MS 2500
/* From the request to exit until SIGKILL, and from SIGKILL to the summary. */
#define LEAVE_MS 2000
#define ENDED_MS 300	/* from SIGKILL until we tell that the kernel does not end a tool */
#define USELESS_MS 100	/* the same for prof-deltas, whose rows nobody needs any more */
#define KERNEL_MS 60000 /* for the kernel to end a killed tool */
/* For prof-send to end. It gives receivers 5 s, or the time of --otlp-drain, and then exits. */
#define DELIVER_MS 10000
#define DELIVERED_MS 5000
#define COMMAND_MS 2000 /* for COMMAND to end after SIGTERM */
/* From the end of the run until we tell the user that COMMAND still runs. */
#define COMMAND_SAID_MS 500
#define TICK_MS 250
#define SAMPLING_TICK_MS 1000
/* Between two measurements of memory at the beginning, while it grows. */
#define MEASURE_MS 1000
#define MEASURE_LATER_MS 30000 /* later on, because the kernel visits all pages for a measurement */
#define GROWING_MS 10000
/* How long a log line is held back, in case its tool ends and the line gives the reason. */
#define HELD_MS 100
/* After a gap in our own execution (SIGSTOP, suspend), silent tools are not at fault. */
#define JUMP_MS 3000

static void on_signals(struct run *r)
{
	struct signalfd_siginfo si;

	while (read(r->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		if (r->daemon && si.ssi_signo == SIGHUP) {
			daemon_reload(r);
			continue;
		}
		const bool again = r->asked;

		r->asked = true;
		if (!again)
			r->by_terminal = si.ssi_signo == SIGINT && si.ssi_code == SI_KERNEL;
		if (r->phase == RUN_STARTING && r->daemon) {
			r->phase = RUN_OVER;
		} else if (r->phase == RUN_STARTING) {
			run_fail(r, "interrupted before sampling began");
			r->phase = RUN_OVER;
		} else if (r->phase == RUN_SAMPLING) {
			run_finish(r);
		} else if (r->phase == RUN_FINISHING && again) {
			run_fail(r, "interrupted again: %s is not complete", run_output(r));
			r->aborted = true;
			r->phase = RUN_OVER;
		} else if (r->phase == RUN_FINISHING) {
			run_clear_line(r);
			log_warning("%s is being written; interrupt again to abandon it",
				    run_output(r));
		}
	}
}

/* --- checking the tools --- */

/* Kills a tool that cannot go on. Its end is then handled like any other end. */
static void kill_tool(struct run *r, struct child *c, const char *why)
{
	run_clear_line(r);
	log_warning("%s %s: killing it", c->name, why);
	child_kill(c);
}

static void judge(struct run *r, enum deploy_tool t)
{
	struct child *c = run_tool(r, t);

	if (!c->pid || c->killed)
		return;
	if (c->garbled) {
		kill_tool(r, c, "wrote an invalid status word");
		return;
	}
	if (c->stopped_ns && run_ms_since(c->stopped_ns) > STOPPED_MS) {
		kill_tool(r, c, "has been stopped for more than 2 s");
		return;
	}
	/* A user can hold the lock of a file for ever. prof-bpf then wants another prof-deltas. */
	if (t == DEPLOY_DELTAS && r->phase == RUN_SAMPLING && c->blocked_ns &&
	    run_ms_since(c->blocked_ns) > BLOCKED_MS && reaper_leave_behind(r, t)) {
		run_clear_line(r);
		log_warning("%s waited in the kernel for a file: starting another one", c->name);
		return;
	}
	const bool starts_busily = c->blocked || c->cpu_ns > c->former_cpu_ns + 1000000000u;

	if (r->phase == RUN_SAMPLING && !c->ready &&
	    run_ms_since(c->started_ns) > (starts_busily ? BUSY_READY_MS : READY_MS)) {
		kill_tool(r, c, "is not ready in time");
		return;
	}
	/* While the run samples, tools that report do so every second. */
	if (r->phase != RUN_SAMPLING || !c->reports || run_ms_since(c->heard_ns) <= SILENT_MS)
		return;
	const bool busy = c->blocked || c->cpu_ns > c->heard_cpu_ns + 1000000000u;

	if (!busy || run_ms_since(c->heard_ns) > BUSY_SILENT_MS)
		kill_tool(r, c, "has not reported for 10 s");
}

static void check_start(struct run *r)
{
	const struct child *bpf = run_tool(r, DEPLOY_BPF), *symd = run_tool(r, DEPLOY_SYMD),
			   *export = run_tool(r, DEPLOY_EXPORT);

	const struct child *send = run_tool(r, DEPLOY_SEND);
	const bool sends = r->o->otlp.endpoints > 0;

	if (bpf->ready && symd->ready && export->ready && (send->ready || !sends)) {
		run_begin(r);
		return;
	}
	uint64_t cpu_ns = 0;
	for (int i = 0; i < DEPLOY_USERS; i++)
		cpu_ns += r->tools[i].cpu_ns;
	const unsigned patience_ms = cpu_ns > 1000000000u ? BUSY_READY_MS : READY_MS;

	if (run_ms_since(r->since_ns) <= patience_ms)
		return;
	run_fail(r, "%s was not ready after %u s",
		 !bpf->ready	  ? bpf->name
		 : !symd->ready	  ? symd->name
		 : !export->ready ? export->name
				  : send->name,
		 patience_ms / 1000);
	r->phase = RUN_OVER;
}

/* If COMMAND could not be executed, the run ends. prof-bpf may already have reported that COMMAND
 * is gone. */
static void check_command(struct run *r)
{
	const int e = command_error(&r->command);

	if (!e)
		return;
	run_fail(r, "%s: cannot be run: %s; name a program", r->o->command[0], strerror(-e));
	r->status = e == -ENOENT ? EXITS_NOT_FOUND : EXITS_NOT_RUN;
	r->phase = RUN_OVER;
}

static void check_sampling(struct run *r)
{
	/* prof-bpf also measures the time; this is only for a prof-bpf that fails to stop. */
	if (r->seconds > 0 &&
	    (double)(clock_mono_ns() - r->sampling_ns) >= (r->seconds + 0.1) * 1e9)
		run_finish(r);
	else if (run_ms_since(run_tool(r, DEPLOY_BPF)->heard_ns) > GONE_MS && run_targets_gone(r))
		run_finish(r);
}

static void check_finishing(struct run *r)
{
	const struct child *export = run_tool(r, DEPLOY_EXPORT);
	const uint64_t moved = export->last.samples + export->last.bytes + export->last.threads +
			       export->done;

	if (moved != r->progress) {
		r->progress = moved;
		r->progress_ns = clock_mono_ns();
	}
	/* There is no deadline, because the reader of the output may be slow, and the user can
	 * interrupt. */
	if (export->last.held && run_ms_since(export->heard_ns) < SILENT_MS) {
		r->since_ns = r->progress_ns = clock_mono_ns();
		if (!r->held_ns)
			r->held_ns = r->since_ns;
		if (!r->held_said && run_ms_since(r->held_ns) > HELD_SAID_MS) {
			r->held_said = true;
			run_clear_line(r);
			log_warning("%s: waits for its reader; interrupt%s to abandon it",
				    run_output(r), r->asked ? " again" : "");
		}
		return;
	}
	r->held_ns = 0;
	if (run_ms_since(r->progress_ns) > FINISH_MS ||
	    run_ms_since(r->since_ns) > FINISH_MOST_MS) {
		run_fail(r, "%s was not written within %d s after sampling; giving up",
			 run_output(r), (int)(run_ms_since(r->since_ns) / 1000));
		r->aborted = true;
		r->phase = RUN_OVER;
	} else if (export->done && run_ms_since(export->heard_ns) > LEAVE_MS) {
		/* prof-export has written everything, so there is no need to wait for its exit. */
		r->phase = RUN_OVER;
	}
}

static void tick(struct run *r)
{
	static const char *const words[] = { "starting", "sampling", "finishing", "" };

	r->ticked_ns = clock_mono_ns();
	for (int i = 0; i < DEPLOY_USERS; i++)
		child_show_pending(&r->tools[i], r->ticked_ns - HELD_MS * 1000000u, run_show, r);
	const unsigned measure_ms = run_ms_since(r->sampling_ns) < GROWING_MS ? MEASURE_MS
									      : MEASURE_LATER_MS;

	if (r->phase == RUN_SAMPLING && run_ms_since(r->measured_ns) >= measure_ms)
		run_measure(r);
	else
		for (int i = 0; i < DEPLOY_USERS; i++)
			child_measure(&r->tools[i], false);
	for (int i = 0; i < DEPLOY_USERS && r->phase < RUN_OVER; i++)
		judge(r, (enum deploy_tool)i);
	/* While COMMAND runs, the terminal belongs to it. */
	if (!r->tty || r->o->quiet || r->phase == RUN_OVER || (r->command.pid && !r->command.ended))
		return;
	const struct child *bpf = run_tool(r, DEPLOY_BPF), *export = run_tool(r, DEPLOY_EXPORT);

	summary_progress(stderr,
			 (double)run_ms_since(r->sampling_ns ? r->sampling_ns : r->start_ns) /
				 1000.0,
			 export->last.samples >= bpf->last.samples ? &export->last : &bpf->last,
			 words[r->phase]);
	r->line_shown = true;
}

/* --- the loop --- */

/* While the run samples, two tools report once a second, and nothing else is urgent. */
static unsigned tick_ms(const struct run *r)
{
	bool held = false;

	for (int i = 0; i < DEPLOY_USERS; i++)
		held |= r->tools[i].pending_ns != 0;
	return r->phase == RUN_SAMPLING && !held ? SAMPLING_TICK_MS : TICK_MS;
}

static void wait_for_something(struct run *r)
{
	struct pollfd p[3 + 3 * DEPLOY_USERS] = { { .fd = r->signals, .events = POLLIN },
						  { .fd = r->command.error, .events = POLLIN } };
	nfds_t n = 2;

	/* poll skips negative descriptors. */
	for (int i = 0; i < DEPLOY_USERS; i++) {
		p[n++] = (struct pollfd){ .fd = r->tools[i].status, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = r->tools[i].log, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = r->tools[i].pidfd, .events = POLLIN };
	}
	bool due = r->phase == RUN_STARTING || (r->phase == RUN_SAMPLING && r->away_ns);

	for (int i = 0; i < DEPLOY_USERS; i++)
		due |= r->again[i].due_ns != 0;
	poll(p, n, due ? 20 : (int)tick_ms(r));
	if (run_ms_since(r->looked_ns) > JUMP_MS) {
		for (int i = 0; i < DEPLOY_USERS; i++) {
			r->tools[i].heard_ns = clock_mono_ns();
			r->tools[i].stopped_ns = 0;
		}
	}
	r->looked_ns = clock_mono_ns();
}

/* Starts the tools that are due. If one cannot be started, the run ends. */
static void start_due(struct run *r)
{
	for (int i = 0; i < DEPLOY_USERS; i++) {
		const enum deploy_tool t = (enum deploy_tool)i;

		if (!r->again[t].due_ns || clock_mono_ns() < r->again[t].due_ns)
			continue;
		r->again[t].due_ns = 0;
		rundir_clean(&r->dir, &r->who, t);
		if (!run_start_tool(r, t)) {
			if (t == DEPLOY_EXPORT && r->phase == RUN_FINISHING &&
			    !run_tool(r, DEPLOY_BPF)->pid)
				r->last = true;
			run_tell(r);
			continue;
		}
		/* Without prof-send there is still an output, and undelivered requests are
		 * counted. */
		if (t == DEPLOY_SEND && r->phase != RUN_STARTING) {
			if (r->daemon)
				r->again[t].due_ns = clock_mono_ns() + REAPER_SEND_AGAIN_NS;
			continue;
		}
		/* Without prof-symd, prof-export gets nothing more; without prof-export, nothing is
		 * written. */
		if (r->phase == RUN_STARTING || t == DEPLOY_EXPORT)
			r->phase = RUN_OVER;
		else
			run_finish(r);
		r->last |= t == DEPLOY_SYMD;
		run_tell(r);
	}
}

static void loop(struct run *r)
{
	r->since_ns = r->looked_ns = clock_mono_ns();
	while (r->phase != RUN_OVER) {
		wait_for_something(r);
		on_signals(r);
		for (int i = 0; i < DEPLOY_USERS; i++)
			child_read(&r->tools[i], run_show, r);
		/* Check these before the ends of tools, which result from them. */
		if (r->phase == RUN_SAMPLING || r->phase == RUN_FINISHING)
			check_command(r);
		reaper_reap(r);
		command_reap(&r->command);
		if (r->phase != RUN_OVER)
			start_due(r);
		if (r->phase == RUN_SAMPLING && run_tool(r, DEPLOY_BPF)->ready_ns > r->away_ns)
			r->away_ns = 0;
		if (r->phase == RUN_STARTING)
			check_start(r);
		if (r->phase == RUN_SAMPLING)
			check_sampling(r);
		if (r->phase == RUN_FINISHING)
			check_finishing(r);
		if (r->phase >= RUN_FINISHING)
			run_ask_command(r);
		if (r->phase != RUN_OVER && run_ms_since(r->ticked_ns) >= tick_ms(r))
			tick(r);
		daemon_turn(r);
	}
	run_clear_line(r);
}

static bool any_lives(struct run *r)
{
	bool any = false;

	for (int i = 0; i < DEPLOY_USERS; i++) {
		child_read(&r->tools[i], run_show, r);
		child_reap(&r->tools[i]);
		any |= r->tools[i].pid != 0;
	}
	return any;
}

static bool await_all(struct run *r, unsigned ms)
{
	const uint64_t since = clock_mono_ns();

	while (any_lives(r)) {
		if (run_ms_since(since) > ms)
			return false;
		usleep(2000);
	}
	return true;
}

/* prof-export has passed on all requests. Waits until prof-send, after a while for the receivers,
 * exits by itself. A signal ends the wait. */
static void await_delivery(struct run *r)
{
	const struct child *send = run_tool(r, DEPLOY_SEND);
	const uint64_t since = clock_mono_ns();
	const double drain_s = r->o->otlp.drain_s;
	const uint64_t most_ms = drain_s > 0 ? (uint64_t)(drain_s * 1000) + DELIVERED_MS
					     : DELIVER_MS;
	bool told = r->aborted;

	while (send->pid && !told && run_ms_since(since) < most_ms) {
		struct pollfd p[] = { { .fd = r->signals, .events = POLLIN },
				      { .fd = send->log, .events = POLLIN },
				      { .fd = send->pidfd, .events = POLLIN } };
		struct signalfd_siginfo si;

		poll(p, 3, TICK_MS);
		while (read(r->signals, &si, sizeof(si)) == sizeof(si))
			told |= si.ssi_signo != SIGCHLD;
		(void)any_lives(r);
	}
}

/* Tells that a tool was killed, but is inside the kernel, and where. */
static void say_inside(const struct run *r, int tool, const char *consequence)
{
	char where[CHILD_WHERE];

	child_where(&r->tools[tool], where);
	log_warning("%s (pid %d) was killed, but the kernel has not ended it yet%s%s%s; %s",
		    account_tool(tool), r->tools[tool].pid, *where ? " (" : "", where,
		    *where ? ")" : "", consequence);
}

/* Asks all tools to exit, then kills those that do not: prof-deltas sooner than the others. */
static void dismiss(struct run *r)
{
	struct child *deltas = run_tool(r, DEPLOY_DELTAS);

	/* Show what they logged before, but not messages about peers that exit now. */
	for (int i = 0; i < DEPLOY_USERS && !r->failed; i++)
		child_show_pending(&r->tools[i], UINT64_MAX, run_show, r);
	r->mute = true;
	for (int i = 0; i < DEPLOY_USERS; i++) {
		child_leave(&r->tools[i]);
		if (r->aborted)
			child_kill(&r->tools[i]);
	}
	if (await_all(r, USELESS_MS))
		return;
	/* It may be in the middle of a file that takes seconds, or wait for the lock of one. */
	child_kill(deltas);
	if (await_all(r, ENDED_MS))
		return;
	if (deltas->pid) {
		say_inside(r, DEPLOY_DELTAS, "not waiting for it");
		(void)child_leave_behind(deltas);
		child_close(deltas);
	}
	if (await_all(r, LEAVE_MS))
		return;
	for (int i = 0; i < DEPLOY_USERS; i++)
		child_kill(&r->tools[i]);
	(void)await_all(r, LEAVE_MS);
}

/* Waits a moment for a signal. Returns true if one came. */
static bool is_told(struct run *r)
{
	struct pollfd p = { .fd = r->signals, .events = POLLIN };
	struct signalfd_siginfo si;
	bool told = false;

	poll(&p, 1, TICK_MS);
	while (read(r->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		told = true;
		r->by_terminal = si.ssi_signo == SIGINT && si.ssi_code == SI_KERNEL;
	}
	return told;
}

/* Ends COMMAND only if the user asked for it. It then gets a moment to exit. Ctrl-C at the terminal
 * also reaches COMMAND, which then gets until the next signal. If profpipe ends for another reason,
 * because it is done or has failed, COMMAND continues. */
static void end_command(struct run *r)
{
	struct command *c = &r->command;
	const uint64_t since = clock_mono_ns();
	bool said = r->asked;

	command_drop(c);
	if (!c->pid || r->status)
		return;
	while (!command_reap(c)) {
		run_ask_command(r);
		if (r->command_asked_ns && run_ms_since(r->command_asked_ns) > COMMAND_MS)
			break;
		if (!said && !r->command_asked_ns && run_ms_since(since) > COMMAND_SAID_MS) {
			log_warning(
				"%s (pid %d) runs on but is no longer sampled; interrupt to end it",
				r->o->command[0], c->pid);
			said = true;
		}
		if (!is_told(r))
			continue;
		if (r->asked)
			break;
		r->asked = true;
	}
	if (!c->ended)
		log_warning("%s (pid %d) still runs", r->o->command[0], c->pid);
	else if (r->sampling_ns && !r->command_asked_ns &&
		 (!WIFEXITED(c->wait_status) || WEXITSTATUS(c->wait_status)))
		log_warning("%s ended with %s", r->o->command[0], child_how(c->wait_status));
}

/* A killed tool that has not ended is inside the kernel, for example to free the blocks of a
 * deleted file that it used last, or since somebody holds the lock of a file. All results are
 * written by now. prof-bpf holds memory of the kernel, so it is waited for, but not for ever. */
static void await_killed(struct run *r)
{
	const struct child *bpf = run_tool(r, DEPLOY_BPF);
	const uint64_t since = clock_mono_ns();
	bool told = r->aborted;

	for (int i = 0; i < DEPLOY_USERS && any_lives(r); i++)
		if (r->tools[i].pid && i != DEPLOY_BPF)
			say_inside(r, i, "not waiting for it");
	if (bpf->pid && !told)
		say_inside(r, DEPLOY_BPF, "waiting; interrupt to stop waiting");
	while (any_lives(r) && bpf->pid && !told && run_ms_since(since) < KERNEL_MS)
		told = is_told(r);
	if (bpf->pid)
		log_warning("no longer waiting for %s (pid %d), which the kernel has not ended yet",
			    bpf->name, bpf->pid);
	for (int i = 0; i < DEPLOY_USERS; i++)
		child_close(&r->tools[i]);
}

static int open_output(struct outfile *o, const char *path, mode_t mode, bool grows)
{
	const int e = output_open(o, path, mode, grows);

	if (e)
		log_error("%s: %s", path, output_error(e));
	return e;
}

static int open_outputs(struct run *r)
{
	const struct options *o = r->o;
	int e = 0;

	if (o->output_dir)
		e = folder_open(&r->folder, o);
	if (o->output)
		e = open_output(&r->output, o->output, o->mode, format_streams(o->format));
	if (!e && o->summary)
		e = open_output(&r->summary, o->summary, o->mode, false);
	if (!e && o->output && r->summary.fd >= 0 && outfile_same(&r->output, &r->summary)) {
		log_error("%s: is both the output and the summary; name two files", o->summary);
		e = -EINVAL;
	}
	return e;
}

static int check_rights(void)
{
	char path[4096], missing[64];
	const char *place = rights_place();

	if (place) {
		log_error("%s", place);
		return -EPERM;
	}
	if (toolpath_find("prof-bpf", path, sizeof(path)))
		return 0;
	rights_missing(path, missing, sizeof(missing));
	if (!missing[0])
		return 0;
	if (geteuid() == 0)
		log_error("sampling: needs %s, which root lacks here; run it where root has them "
			  "(a container needs them granted)",
			  missing);
	else
		log_error("sampling: needs %s, which user %u lacks; run it as root, %s", missing,
			  (unsigned)geteuid(),
			  prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
				  ? "started from outside: no_new_privs is set here, "
				    "so sudo grants nothing"
				  : "by sudo");
	return -EPERM;
}

static int take_signals(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	/* A shell without job control starts background jobs with SIGINT ignored, but profpipe must
	 * react to Ctrl-C. An ignored SIGHUP comes from nohup and stays ignored. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	struct sigaction hup;

	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? -errno : 0;
}

/* Opens the journal, which stores what prof-export received, for its successor. Prefers a disk,
 * because memory is limited. -1: there is none, and prof-export runs without. */
static int open_journal(void)
{
	static const char *const folders[] = { "/var/tmp", "/tmp" };
	int fd = -1;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && fd < 0; i++)
		fd = open(folders[i], O_RDWR | O_TMPFILE | O_EXCL | O_CLOEXEC, 0600);
	return fd;
}

static int set_up(struct run *r)
{
	int e = 0;

	/* Fork COMMAND before our signal handling changes. */
	if (r->o->command)
		e = command_prepare(&r->command, r->o->command);
	/* COMMAND keeps the caller's limits, so they are raised only now. */
	if (!e)
		e = limits_raise();
	if (!e)
		e = take_signals(r);
	if (e) {
		if (e < 0)
			run_fail(r,
				 "the run cannot be prepared: %s; see the limits of open files and "
				 "processes (ulimit -n, ulimit -u)",
				 strerror(-e));
		r->failed = true;
		return e;
	}
	e = identity_take(&r->who);
	if (e) {
		run_fail(r, "no users for the tools: %s; %s", identity_reason(e),
			 identity_remedy(e));
		return e;
	}
	r->journal = r->folder.o ? -1 : open_journal();
	e = rundir_make(&r->dir, &r->who);
	if (e)
		run_fail(r,
			 "no folder for the run below /run, $TMPDIR or /tmp: %s; make one writable",
			 strerror(-e));
	for (int i = 0; i < run_tools(r) && !e; i++)
		e = run_start_tool(r, (enum deploy_tool)i);
	return e;
}

static int run_whole(const struct options *o, struct daemon *daemon)
{
	static struct run r;

	r = (struct run){ .o = o,
			  .daemon = daemon,
			  .metrics = daemon ? &daemon->metrics.child : NULL,
			  .output = OUTFILE_NONE,
			  .folder = FOLDER_NONE,
			  .summary = OUTFILE_NONE,
			  .signals = -1,
			  .journal = -1,
			  .start_ns = clock_mono_ns(),
			  .oom_kills = limits_oom_kills(),
			  .tty = isatty(STDERR_FILENO),
			  .dir = RUNDIR_NONE,
			  .command = COMMAND_NONE,
			  .who = { .lock = -1 },
			  .seconds = o->sampling.seconds };
	for (int i = 0; i < DEPLOY_USERS; i++)
		r.tools[i] = CHILD_NONE(account_tool(i));
	if (open_outputs(&r) || check_rights()) {
		(void)folder_end(&r.folder, run_tool(&r, DEPLOY_EXPORT), false);
		output_drop(&r.output);
		output_drop(&r.summary);
		return EXITS_FAILED;
	}
	if (!set_up(&r))
		loop(&r);
	/* If the stream ended by itself, the end of sampling has not been recorded yet. */
	if (r.sampling_ns && !r.sampled_ns)
		r.sampled_ns = clock_mono_ns() - r.sampling_ns;
	r.phase = RUN_OVER;
	if (r.sampling_ns && !r.status)
		await_delivery(&r);
	dismiss(&r);
	if (r.sampling_ns && !r.status)
		finish_run(&r);
	r.failed |= !folder_end(&r.folder, run_tool(&r, DEPLOY_EXPORT), r.sampling_ns != 0);
	finish_outputs(&r);
	end_command(&r);
	await_killed(&r);
	rundir_remove(&r.dir);
	identity_release(&r.who);
	daemon_done(&r);
	return r.status ? r.status : r.failed ? EXITS_FAILED : EXITS_DONE;
}

int record_run(const struct options *o)
{
	return run_whole(o, NULL);
}

int record_always(const struct service *s)
{
	static struct daemon d;

	if (daemon_init(&d, s))
		return EXITS_FAILED;
	return run_whole(&s->options, &d);
}
