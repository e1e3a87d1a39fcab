/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run, from opened outputs to the summary. One loop over the pipes of the four tools, signals and
 * the clock; nothing in it waits for a tool without an end in time.
 *
 * - STARTING: the tools come up; one that fails ends the run, and leaves the outputs as they were.
 * - SAMPLING: prof-bpf said that sampling has begun, COMMAND was let go.
 * - FINISHING: prof-bpf was asked to stop, or stopped by itself; the stream drains into
 *   prof-export, which writes. Until it says so, or a deadline.
 * - OVER: the life pipes close, everybody goes.
 *
 * A tool that is killed, hangs or lost its peer is started again (restarts.h); the others that go
 * with it follow: a dialer that loses its peer ends (DEPLOY_AGAIN), a listener stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/toolpath.h"
#include "tools/profpipe/children.h"
#include "tools/profpipe/command.h"
#include "tools/profpipe/identity.h"
#include "tools/profpipe/limits.h"
#include "tools/profpipe/outputs.h"
#include "tools/profpipe/record.h"
#include "tools/profpipe/restarts.h"
#include "tools/profpipe/rights.h"
#include "tools/profpipe/rundir.h"
#include "tools/profpipe/summary.h"

#define READY_MS 15000 /* from the start of a tool to its being ready, and of all to sampling */
#define BUSY_READY_MS 60000 /* the same while they use the cpu: a second of it at least */
/* From the end of sampling, or the last progress since, to the output's being written. */
#define FINISH_MS 30000
#define FINISH_MOST_MS 120000
#define HELD_SAID_MS 5000
#define STOPPED_MS 2000 /* by a signal */
/* Without a status word of a tool that is to send some. */
#define SILENT_MS 10000
#define BUSY_SILENT_MS 60000 /* the same for one that uses the cpu all the while */
/* Prof-bpf reports every second while it samples; quiet for so long after COMMAND ended, it has
 * finished. */
#define GONE_MS 2500
#define LEAVE_MS 2000	/* from "exit now" to SIGKILL, and from there to giving up */
#define COMMAND_MS 2000 /* what COMMAND has to end in after SIGTERM */
#define TICK_MS 250
#define SAMPLING_TICK_MS 1000
#define MEASURE_MS 1000	       /* memory, while it grows: */
#define MEASURE_LATER_MS 10000 /* after that, since the kernel goes through all pages for it */
#define GROWING_MS 10000
#define HELD_MS 100	   /* a log line waits so long for its tool's end, which it may explain */
#define EXPORT_CUT 3	   /* its exit status when the stream had no end */
#define FOLLOW_MS 20	   /* from the end of one that lost its peer to its next start */
#define START_STREAK_MAX 4 /* of restarts.h, before sampling has begun */
#define SAID_MS 10000	   /* between two times that an end of one tool is told */
#define EXITING_MS 1000	   /* for a tool to end that has begun to: freeing BPF maps takes a while */
#define RATE_NS 500000000u /* a life of prof-bpf that says what it takes in a second */
#define JUMP_MS 3000 /* a gap in our own time, after SIGSTOP or suspend: nobody is judged by it */

enum phase { STARTING, SAMPLING, FINISHING, OVER };

struct run {
	const struct options *o;
	struct child tools[DEPLOY_TOOLS];
	struct identity who;
	struct rundir dir;
	struct command command;
	struct output output, summary;
	int signals, journal;
	enum phase phase;
	bool broken; /* prof-bpf or prof-symd ended while the last samples went through it: the
			stream has no end, and that was said */
	unsigned symd_for; /* which prof-export, by its restarts, was there when prof-symd began */
	bool tty, line_shown, failed, mute, command_asked, held_said;
	bool asked, by_terminal,
		aborted; /* a signal came; from the terminal, which reaches COMMAND too */
	int status;	 /* exit status when not 0 or 1 */
	struct restarts again[DEPLOY_TOOLS];
	uint64_t said_ns[DEPLOY_TOOLS]; /* when its last end was told */
	double seconds;			/* 0: until stopped */
	uint64_t oom_kills;		/* of the host, before the run */
	uint64_t start_ns, since_ns, sampling_ns, sampled_ns;
	uint64_t looked_ns, ticked_ns, measured_ns;
	uint64_t held_ns;		/* since when its reader is waited for; 0: it is not */
	uint64_t progress_ns, progress; /* of prof-export while finishing: when its figures moved,
					   and a sum of them */
	/* While prof-bpf is away: since when nothing is known of it, and what it took in a second
	 * until then. In all: how long that was, and what it would have taken. */
	uint64_t away_ns, unsampled_ns;
	double rate, unsampled;
	uint64_t taken;	   /* by former lives of prof-bpf, as they said last */
	uint64_t pss_peak; /* of all together */
};

static const char *const names[DEPLOY_TOOLS] = { "prof-bpf", "prof-deltas", "prof-symd",
						 "prof-export" };

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

static __attribute__((format(printf, 2, 3))) void fail(struct run *r, const char *fmt, ...)
{
	char text[CHILD_SHOWN];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	clear_line(r);
	log_error("%s", text);
	r->failed = true;
}

static void show(void *ctx, const struct child *c, const char *line)
{
	struct run *r = ctx;

	(void)c;
	if (r->mute)
		return;
	clear_line(r);
	fprintf(stderr, "%s\n", line);
}

static struct child *tool(struct run *r, enum deploy_tool t)
{
	return &r->tools[t];
}

/* --- starting --- */

static bool is_gone(const char *pid)
{
	return kill((pid_t)atol(pid), 0) < 0 && errno == ESRCH;
}

static double seconds_left(const struct run *r)
{
	const double left = r->seconds - (double)(clock_mono_ns() - r->sampling_ns) / 1e9;

	return left > 0.01 ? left : 0.01;
}

static int start_tool(struct run *r, enum deploy_tool t)
{
	char ids[80], follow[16], fd[8], journal[8], seconds[32];
	const char *argv[40 + 2 * OPTIONS_MAX_PIDS];
	const struct child_fd out[] = { { r->output.fd, CHILD_FIRST_FD },
					{ r->journal, CHILD_FIRST_FD + 1 } };
	size_t n = 0;

	snprintf(ids, sizeof(ids), "%u:%u:%u:%u:%u", r->who.gid, r->who.uid[0], r->who.uid[1],
		 r->who.uid[2], r->who.uid[3]);
	snprintf(follow, sizeof(follow), "%d", r->command.pid);
	snprintf(fd, sizeof(fd), "%d", CHILD_FIRST_FD);
	argv[n++] = names[t];
	argv[n++] = "--run-dir";
	argv[n++] = r->dir.path;
	if (r->who.separate) {
		argv[n++] = "--ids";
		argv[n++] = ids;
	}
	argv[n++] = "--status-fd";
	argv[n++] = CHILD_STATUS_FD;
	argv[n++] = "--life-fd";
	argv[n++] = CHILD_LIFE_FD;
	if (r->o->limit) {
		argv[n++] = "--limit";
		argv[n++] = r->o->limit;
	}
	if (r->o->verbose)
		argv[n++] = "-v";
	if (t == DEPLOY_BPF) {
		argv[n++] = "-F";
		argv[n++] = r->o->hz;
		if (r->o->seconds) {
			/* What is left of them. */
			snprintf(seconds, sizeof(seconds), "%.3f", seconds_left(r));
			argv[n++] = "-d";
			argv[n++] = r->sampling_ns ? seconds : r->o->seconds;
		}
		if (r->sampling_ns)
			argv[n++] = "--resume";
		for (size_t i = 0; i < r->o->pid_count; i++) {
			if (r->sampling_ns && is_gone(r->o->pids[i]))
				continue;
			argv[n++] = "-p";
			argv[n++] = r->o->pids[i];
		}
		if (r->command.pid) {
			argv[n++] = "--follow";
			argv[n++] = follow;
		}
		if (r->o->read_memory) {
			argv[n++] = "--read-memory";
			argv[n++] = r->o->read_memory;
		}
		if (r->o->ignore_unsafe_kernel)
			argv[n++] = "--ignore-unsafe-kernel";
	} else if (t == DEPLOY_EXPORT) {
		argv[n++] = "-f";
		argv[n++] = r->o->format;
		argv[n++] = "--output-fd";
		argv[n++] = fd;
		if (r->journal >= 0) {
			snprintf(journal, sizeof(journal), "%d", CHILD_FIRST_FD + 1);
			argv[n++] = "--journal-fd";
			argv[n++] = journal;
		}
		if (r->o->lines)
			argv[n++] = "--lines";
		if (r->o->interpreter_frames)
			argv[n++] = "--interpreter-frames";
	}
	argv[n] = NULL;
	const struct child_start how = { .argv = argv,
					 .fds = out,
					 .count = t != DEPLOY_EXPORT ? 0
						  : r->journal >= 0  ? 2
								     : 1 };
	if (t == DEPLOY_BPF)
		r->taken += tool(r, t)->last.taken;
	if (t == DEPLOY_SYMD)
		r->symd_for = r->again[DEPLOY_EXPORT].count;
	const int e = child_start(tool(r, t), &how);

	if (e)
		fail(r, "%s cannot be started: %s%s", names[t], strerror(-e),
		     e == -ENOENT ? "; it belongs beside profpipe or into " PROFPIPE_LIBEXECDIR
				  : "");
	return e;
}

static void measure(struct run *r)
{
	uint64_t pss = 0;

	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		child_measure(&r->tools[i], true);
		pss += r->tools[i].pss;
	}
	if (pss > r->pss_peak)
		r->pss_peak = pss;
	r->measured_ns = clock_mono_ns();
}

/* All stand, and samples flow. */
static void begin(struct run *r)
{
	r->phase = SAMPLING;
	r->sampling_ns = clock_mono_ns();
	if (r->command.pid)
		command_release(&r->command);
	log_info("sampling has begun, after %.3f s", (double)(r->sampling_ns - r->start_ns) / 1e9);
	measure(r);
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		r->tools[i].ready_cpu_ns = r->tools[i].cpu_ns;
}

/* --- ending --- */

/* What was started for the run ends with it; Ctrl-C has reached it already, and it may have its own
 * mind about that. */
static void ask_command(struct run *r)
{
	if (!r->command.pid || r->command.ended || r->command_asked || r->by_terminal)
		return;
	r->command_asked = true;
	kill(r->command.pid, SIGTERM);
}

/* prof-bpf is away from now on, or rather since it was heard of last. */
static void note_away(struct run *r)
{
	const struct child *c = tool(r, DEPLOY_BPF);
	const uint64_t sampled_ns = c->ready_ns ? c->heard_ns - c->ready_ns : 0;

	if (r->phase == STARTING || r->away_ns)
		return;
	r->away_ns = c->ready_ns ? c->heard_ns : c->started_ns;
	/* Of a life that was too short for a rate, the former one's holds. */
	if (sampled_ns >= RATE_NS)
		r->rate = (double)c->last.taken * 1e9 / (double)sampled_ns;
}

/* It samples again, or sampling is over. */
static void note_back(struct run *r, uint64_t now_ns)
{
	if (!r->away_ns || now_ns < r->away_ns)
		return;
	r->unsampled_ns += now_ns - r->away_ns;
	r->unsampled += (double)(now_ns - r->away_ns) / 1e9 * r->rate;
	r->away_ns = 0;
}

/* Sampling ends, if it has not; what was collected goes on to the output. */
static void finish(struct run *r)
{
	struct child *bpf = tool(r, DEPLOY_BPF);

	if (r->phase >= FINISHING)
		return;
	measure(r);
	r->phase = FINISHING;
	r->since_ns = r->progress_ns = clock_mono_ns();
	r->sampled_ns = r->since_ns - r->sampling_ns;
	note_back(r, r->since_ns);
	r->again[DEPLOY_BPF].due_ns = r->again[DEPLOY_DELTAS].due_ns = 0;
	/* Where it does not take the byte it is about to go, and that is noticed. If it is away, no
	 * stream comes any more. */
	if (bpf->pid) {
		(void)child_stop(bpf);
	} else {
		r->broken = true;
		(void)child_stop(tool(r, DEPLOY_EXPORT));
	}
	ask_command(r);
}

/* What the host lacks, where that may be why a tool ended. */
static const char *lacking(struct run *r, const struct child *c)
{
	if (WIFSIGNALED(c->wait_status) && WTERMSIG(c->wait_status) == SIGKILL &&
	    limits_oom_kills() > r->oom_kills)
		return ", since memory ran out: give the run more, or end other programs";
	if (r->phase == STARTING && limits_threads_short())
		return ", since no more threads can be started: raise pids.max of the cgroup, or ulimit -u";
	return "";
}

/* Says that a tool has ended, with its own last words, in one line. */
static void say_ended(struct run *r, struct child *c, const char *consequence)
{
	const char *line = c->held_ns ? c->held : "";
	const size_t n = strlen(c->name);

	/* "prof-x: error: " is said by us. */
	if (strncmp(line, c->name, n) == 0 && line[n] == ':')
		line += n + 1 + (line[n + 1] == ' ');
	if (strncmp(line, "error: ", 7) == 0)
		line += 7;
	fail(r, "%s ended (%s)%s%s%s%s", c->name, child_how(c->wait_status), line[0] ? ": " : "",
	     line, lacking(r, c), consequence);
	c->held_ns = 0;
}

static bool targets_gone(struct run *r)
{
	if (r->command.pid)
		return r->command.ended;
	for (size_t i = 0; i < r->o->pid_count; i++)
		if (!is_gone(r->o->pids[i]))
			return false;
	return r->o->pid_count > 0;
}

static bool ended_by(const struct child *c, int status)
{
	return WIFEXITED(c->wait_status) && WEXITSTATUS(c->wait_status) == status;
}

/* Whether what prof-export wrote can be taken back: of a file, or where nothing was written yet. */
static bool can_write_again(const struct run *r)
{
	struct stat st;
	const bool at_end = strcmp(r->o->format, "text") != 0 &&
			    strcmp(r->o->format, "stream") != 0;

	if (r->journal < 0 || fstat(r->output.fd, &st) < 0)
		return false;
	return (S_ISREG(st.st_mode) && !(fcntl(r->output.fd, F_GETFL) & O_APPEND)) ||
	       (at_end && r->phase != FINISHING);
}

/* Whether another start may do what this one did not. */
static bool may_start_again(struct run *r, enum deploy_tool t)
{
	const struct child *c = tool(r, t), *bpf = tool(r, DEPLOY_BPF);
	const bool cut = WIFSIGNALED(c->wait_status) || ended_by(c, DEPLOY_AGAIN);

	if (t == DEPLOY_EXPORT)
		return cut && !c->done && can_write_again(r);
	/* Its end is no good one where it was that of a prof-export which is no more. */
	if (r->phase == FINISHING)
		return t == DEPLOY_SYMD && bpf->pid &&
		       (!ended_by(c, 0) || r->symd_for != r->again[DEPLOY_EXPORT].count);
	if (t == DEPLOY_DELTAS)
		return !bpf->done;
	if (r->phase == STARTING)
		return cut;
	return !ended_by(c, 0);
}

/* How many short lives of a tool are enough. Of a parser that worked no number is: strangers' files
 * kill it, and prof-bpf takes care of these (quarantine.h); nobody is to end the run by them. */
static unsigned most_restarts(struct run *r, enum deploy_tool t)
{
	if (r->phase == STARTING)
		return START_STREAK_MAX;

	const struct child *c = tool(r, t);
	const bool parser = t == DEPLOY_DELTAS || t == DEPLOY_SYMD;
	const bool crashed = WIFSIGNALED(c->wait_status) && WTERMSIG(c->wait_status) != SIGKILL;

	return parser && c->ready && crashed ? RESTARTS_FOR_EVER : RESTARTS_STREAK_MAX;
}

/* Plans its next start. False: there is none, and that was said. */
static bool start_again(struct run *r, enum deploy_tool t)
{
	struct child *c = tool(r, t);
	const uint64_t now = clock_mono_ns();
	/* That those who lost their peer follow it need not be said. */
	const bool follows = ended_by(c, DEPLOY_AGAIN) || ended_by(c, 0);

	/* Who follows another does so at once, and has its own end not held against it. */
	if (follows && r->phase != STARTING) {
		r->again[t].due_ns = now + FOLLOW_MS * 1000000u;
		r->again[t].count++;
		if (t == DEPLOY_BPF)
			note_away(r);
		c->held_ns = 0;
		return true;
	}
	if (!restarts_plan(&r->again[t], now, now - c->started_ns, most_restarts(r, t))) {
		say_ended(
			r, c,
			r->phase == STARTING ? ", again and again, before sampling began"
			: t == DEPLOY_DELTAS
				? ", again and again; programs that start from now on have incomplete stacks"
				: ", again and again; what was collected until then is written");
		return false;
	}
	if (!follows && (!r->said_ns[t] || ms_since(r->said_ns[t]) > SAID_MS)) {
		r->said_ns[t] = now;
		clear_line(r);
		log_warning("%s ended (%s)%s; it is started again", c->name,
			    child_how(c->wait_status), lacking(r, c));
	}
	/* Nor what it had to say of that. */
	if (follows || WIFSIGNALED(c->wait_status))
		c->held_ns = 0;
	if (t == DEPLOY_BPF)
		note_away(r);
	if (r->phase == STARTING)
		r->since_ns = now;
	return true;
}

/* Nothing more comes to prof-export: it writes what it has. */
static void give_up_stream(struct run *r)
{
	finish(r);
	(void)child_stop(tool(r, DEPLOY_EXPORT));
}

static void tool_ended(struct run *r, enum deploy_tool t)
{
	struct child *c = tool(r, t);
	const bool well = ended_by(c, 0);

	child_read(c, show, r);
	if (r->phase == OVER)
		return;
	if (t == DEPLOY_BPF) {
		command_reap(&r->command);
		/* No prof-symd will have a stream any more. */
		if (r->phase == FINISHING) {
			if (!c->done)
				note_away(r);
			(void)child_stop(tool(r, DEPLOY_EXPORT));
		}
	}
	if (t == DEPLOY_DELTAS)
		/* prof-bpf, which it goes with, takes a moment more to give back what it had of the
		 * kernel. */
		child_read(tool(r, DEPLOY_BPF), show, r);
	if (may_start_again(r, t)) {
		if (t == DEPLOY_BPF && r->phase == SAMPLING && targets_gone(r)) {
			note_away(r);
			finish(r);
		} else if (!start_again(r, t)) {
			if (r->phase == STARTING || t == DEPLOY_EXPORT)
				r->phase = OVER;
			else if (t != DEPLOY_DELTAS)
				give_up_stream(r);
		}
		return;
	}
	if (t == DEPLOY_DELTAS) {
		c->held_ns = 0;
		return;
	}
	if (r->phase == STARTING) {
		say_ended(r, c, c->held_ns ? "" : " before sampling began");
		r->phase = OVER;
		return;
	}
	if (t == DEPLOY_EXPORT) {
		/* One that said "done" has written all that came; where that was cut, whose fault
		 * it was may have been said. */
		if (!c->done)
			say_ended(r, c, "; the output is not complete");
		else if (!well && !r->failed && !WIFSIGNALED(c->wait_status) &&
			 !(r->broken && ended_by(c, EXPORT_CUT)))
			say_ended(r, c, "");
		r->phase = OVER;
		return;
	}
	/* prof-bpf ends by itself when its time is over or what it followed is gone, and prof-symd
	 * after it. */
	if (well || (t == DEPLOY_SYMD && ended_by(c, DEPLOY_AGAIN))) {
		c->held_ns = 0;
		if (t == DEPLOY_SYMD)
			child_leave(tool(r, DEPLOY_BPF));
	} else if (r->phase == FINISHING) {
		r->broken = true;
		clear_line(r);
		log_warning("%s ended (%s); what was on its way through it is lost", c->name,
			    child_how(c->wait_status));
	} else {
		say_ended(r, c, "; what was collected until then is written");
		/* That they miss each other need not be said. */
		r->mute = true;
	}
	finish(r);
}

/* Waits for those that are going: one of them may be why another went. */
static void await_exiting(struct run *r, bool ended[static DEPLOY_TOOLS])
{
	const uint64_t since = clock_mono_ns();

	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		while (!ended[i] && child_exiting(&r->tools[i]) && ms_since(since) < EXITING_MS) {
			struct pollfd p = { .fd = r->tools[i].pidfd, .events = POLLIN };

			poll(&p, 1, 20);
			ended[i] = child_reap(&r->tools[i]);
		}
	}
}

/* When one goes others follow, and may be seen first: those that end together are looked at
 * together, and one that was killed is the cause. */
static void reap_tools(struct run *r)
{
	static const enum deploy_tool order[DEPLOY_TOOLS] = { DEPLOY_BPF, DEPLOY_EXPORT,
							      DEPLOY_SYMD, DEPLOY_DELTAS };
	bool ended[DEPLOY_TOOLS] = { 0 }, any = false;

	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		ended[i] = child_reap(&r->tools[i]);
		any |= ended[i];
	}
	if (any)
		await_exiting(r, ended);
	for (int killed = 1; any && killed >= 0; killed--)
		for (int i = 0; i < DEPLOY_TOOLS; i++)
			if (ended[order[i]] &&
			    WIFSIGNALED(r->tools[order[i]].wait_status) == killed)
				tool_ended(r, order[i]);
}

static void on_signals(struct run *r)
{
	struct signalfd_siginfo si;

	while (read(r->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		const bool again = r->asked;

		r->asked = true;
		if (r->phase == STARTING) {
			fail(r, "interrupted before sampling began");
			r->phase = OVER;
		} else if (r->phase == SAMPLING) {
			r->by_terminal = si.ssi_signo == SIGINT && si.ssi_code == SI_KERNEL;
			finish(r);
		} else if (r->phase == FINISHING && again) {
			fail(r, "interrupted again: %s is not complete", r->o->output);
			r->aborted = true;
			r->phase = OVER;
		} else if (r->phase == FINISHING) {
			clear_line(r);
			log_warning("%s is being written; interrupt again to give it up",
				    r->o->output);
		}
	}
}

/* --- judging --- */

/* A tool that cannot go on is killed; its end is then handled like any other. */
static void kill_tool(struct run *r, struct child *c, const char *why)
{
	clear_line(r);
	log_warning("%s %s: it is killed", c->name, why);
	child_kill(c);
}

static void judge(struct run *r, enum deploy_tool t)
{
	struct child *c = tool(r, t);

	if (!c->pid || c->killed)
		return;
	if (c->garbled) {
		kill_tool(r, c, "wrote what is no status word");
		return;
	}
	if (c->stopped_ns && ms_since(c->stopped_ns) > STOPPED_MS) {
		kill_tool(r, c, "has been stopped for 2 s");
		return;
	}
	const bool starts_busily = c->cpu_ns > c->former_cpu_ns + 1000000000u;

	if (r->phase == SAMPLING && !c->ready &&
	    ms_since(c->started_ns) > (starts_busily ? BUSY_READY_MS : READY_MS)) {
		kill_tool(r, c, "is not ready after all that time");
		return;
	}
	/* These report every second, as long as there is sampling. */
	if (r->phase != SAMPLING || !c->reports || ms_since(c->heard_ns) <= SILENT_MS)
		return;
	const bool busy = c->cpu_ns > c->heard_cpu_ns + 1000000000u;

	if (!busy || ms_since(c->heard_ns) > BUSY_SILENT_MS)
		kill_tool(r, c, "has said nothing for 10 s");
}

static void check_start(struct run *r)
{
	const struct child *bpf = tool(r, DEPLOY_BPF), *symd = tool(r, DEPLOY_SYMD),
			   *export = tool(r, DEPLOY_EXPORT);

	if (bpf->ready && symd->ready && export->ready) {
		begin(r);
		return;
	}
	uint64_t cpu_ns = 0;
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		cpu_ns += r->tools[i].cpu_ns;
	const unsigned patience_ms = cpu_ns > 1000000000u ? BUSY_READY_MS : READY_MS;

	if (ms_since(r->since_ns) <= patience_ms)
		return;
	fail(r, "%s was not ready after %u s",
	     !bpf->ready    ? bpf->name
	     : !symd->ready ? symd->name
			    : export->name,
	     patience_ms / 1000);
	r->phase = OVER;
}

static void check_sampling(struct run *r)
{
	const int e = command_error(&r->command);

	if (e) {
		fail(r, "%s cannot be run: %s", r->o->command[0], strerror(-e));
		r->status = e == -ENOENT ? 127 : 126;
		r->phase = OVER;
		return;
	}
	/* prof-bpf keeps the time, too; this is for the case that it does not. */
	if (r->seconds > 0 &&
	    (double)(clock_mono_ns() - r->sampling_ns) >= (r->seconds + 0.1) * 1e9)
		finish(r);
	else if (ms_since(tool(r, DEPLOY_BPF)->heard_ns) > GONE_MS && targets_gone(r))
		finish(r);
}

static void check_finishing(struct run *r)
{
	const struct child *export = tool(r, DEPLOY_EXPORT);
	const uint64_t moved = export->last.samples + export->last.bytes + export->last.threads +
			       export->done;

	if (moved != r->progress) {
		r->progress = moved;
		r->progress_ns = clock_mono_ns();
	}
	/* Who reads what is written may take as long as it likes, and whoever waits may interrupt.
	 */
	if (export->last.held && ms_since(export->heard_ns) < SILENT_MS) {
		r->since_ns = r->progress_ns = clock_mono_ns();
		if (!r->held_ns)
			r->held_ns = r->since_ns;
		if (!r->held_said && ms_since(r->held_ns) > HELD_SAID_MS) {
			r->held_said = true;
			clear_line(r);
			log_warning("%s: waits for its reader; interrupt%s to give it up",
				    r->o->output, r->asked ? " again" : "");
		}
		return;
	}
	r->held_ns = 0;
	if (ms_since(r->progress_ns) > FINISH_MS || ms_since(r->since_ns) > FINISH_MOST_MS) {
		fail(r, "%s was not written %d s after sampling ended: giving up", r->o->output,
		     (int)(ms_since(r->since_ns) / 1000));
		r->aborted = true;
		r->phase = OVER;
	} else if (export->done && ms_since(export->heard_ns) > LEAVE_MS) {
		/* It has written all; that it does not leave is no reason to wait. */
		r->phase = OVER;
	}
}

static void tick(struct run *r)
{
	static const char *const words[] = { "starting", "sampling", "finishing", "" };

	r->ticked_ns = clock_mono_ns();
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		child_show_held(&r->tools[i], r->ticked_ns - HELD_MS * 1000000u, show, r);
	const unsigned measure_ms = ms_since(r->sampling_ns) < GROWING_MS ? MEASURE_MS
									  : MEASURE_LATER_MS;

	if (r->phase == SAMPLING && ms_since(r->measured_ns) >= measure_ms)
		measure(r);
	else
		for (int i = 0; i < DEPLOY_TOOLS; i++)
			child_measure(&r->tools[i], false);
	for (int i = 0; i < DEPLOY_TOOLS && r->phase < OVER; i++)
		judge(r, (enum deploy_tool)i);
	/* While COMMAND runs the terminal is its own. */
	if (!r->tty || r->o->quiet || r->phase == OVER || (r->command.pid && !r->command.ended))
		return;
	const struct child *bpf = tool(r, DEPLOY_BPF), *export = tool(r, DEPLOY_EXPORT);

	summary_progress(stderr,
			 (double)ms_since(r->sampling_ns ? r->sampling_ns : r->start_ns) / 1000.0,
			 export->last.samples >= bpf->last.samples ? &export->last : &bpf->last,
			 words[r->phase]);
	r->line_shown = true;
}

/* --- the loop --- */

/* While there is sampling two tools report once a second, and nothing else is urgent. */
static unsigned tick_ms(const struct run *r)
{
	bool held = false;

	for (int i = 0; i < DEPLOY_TOOLS; i++)
		held |= r->tools[i].held_ns != 0;
	return r->phase == SAMPLING && !held ? SAMPLING_TICK_MS : TICK_MS;
}

static void wait_for_something(struct run *r)
{
	struct pollfd p[3 + 3 * DEPLOY_TOOLS] = { { .fd = r->signals, .events = POLLIN },
						  { .fd = r->command.error, .events = POLLIN } };
	nfds_t n = 2;

	/* Negative ones are passed over by poll. */
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		p[n++] = (struct pollfd){ .fd = r->tools[i].status, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = r->tools[i].log, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = r->tools[i].pidfd, .events = POLLIN };
	}
	bool due = r->phase == STARTING || (r->phase == SAMPLING && r->away_ns);

	for (int i = 0; i < DEPLOY_TOOLS; i++)
		due |= r->again[i].due_ns != 0;
	poll(p, n, due ? 20 : (int)tick_ms(r));
	if (ms_since(r->looked_ns) > JUMP_MS) {
		for (int i = 0; i < DEPLOY_TOOLS; i++) {
			r->tools[i].heard_ns = clock_mono_ns();
			r->tools[i].stopped_ns = 0;
		}
	}
	r->looked_ns = clock_mono_ns();
}

/* Those whose time has come. One that cannot be started ends the run. */
static void start_due(struct run *r)
{
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		const enum deploy_tool t = (enum deploy_tool)i;

		if (!r->again[t].due_ns || clock_mono_ns() < r->again[t].due_ns)
			continue;
		r->again[t].due_ns = 0;
		rundir_clean(&r->dir, t);
		if (!start_tool(r, t)) {
			if (t == DEPLOY_EXPORT && r->phase == FINISHING &&
			    !tool(r, DEPLOY_BPF)->pid)
				(void)child_stop(tool(r, t));
			continue;
		}
		if (r->phase == STARTING)
			r->phase = OVER;
		else
			finish(r);
	}
}

static void loop(struct run *r)
{
	r->since_ns = r->looked_ns = clock_mono_ns();
	while (r->phase != OVER) {
		wait_for_something(r);
		on_signals(r);
		for (int i = 0; i < DEPLOY_TOOLS; i++)
			child_read(&r->tools[i], show, r);
		reap_tools(r);
		command_reap(&r->command);
		if (r->phase != OVER)
			start_due(r);
		if (r->phase == SAMPLING && tool(r, DEPLOY_BPF)->ready_ns > r->away_ns)
			note_back(r, tool(r, DEPLOY_BPF)->ready_ns);
		if (r->phase == STARTING)
			check_start(r);
		if (r->phase == SAMPLING)
			check_sampling(r);
		if (r->phase == FINISHING)
			check_finishing(r);
		if (r->phase != OVER && ms_since(r->ticked_ns) >= tick_ms(r))
			tick(r);
	}
	clear_line(r);
}

static bool any_lives(struct run *r)
{
	bool any = false;

	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		child_read(&r->tools[i], show, r);
		child_reap(&r->tools[i]);
		any |= r->tools[i].pid != 0;
	}
	return any;
}

/* Everybody goes: asked first, killed then. */
static void dismiss(struct run *r)
{
	uint64_t since = clock_mono_ns();

	/* What they say of each other's going is of no interest. */
	r->mute = true;
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		child_leave(&r->tools[i]);
		if (r->aborted)
			child_kill(&r->tools[i]);
	}
	for (bool killed = false; any_lives(r);) {
		if (ms_since(since) > LEAVE_MS) {
			for (int i = 0; i < DEPLOY_TOOLS; i++) {
				if (killed && r->tools[i].pid)
					fail(r,
					     "%s (pid %d) does not end even when killed: it is left behind",
					     names[i], r->tools[i].pid);
				child_kill(&r->tools[i]);
			}
			if (killed)
				break;
			killed = true;
			since = clock_mono_ns();
		}
		usleep(2000);
	}
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		child_close(&r->tools[i]);
}

/* --- the end --- */

/* The figures of prof-export, which are final; or where it did not come to that, whoever knows
 * more. */
static struct status figures(struct run *r)
{
	const struct status *b = &tool(r, DEPLOY_BPF)->last, *e = &tool(r, DEPLOY_EXPORT)->last;
	struct status s = tool(r, DEPLOY_EXPORT)->done || e->samples >= b->samples ? *e : *b;

	if (!s.bpf_runs) {
		s.bpf_runs = b->bpf_runs;
		s.bpf_ns = b->bpf_ns;
	}
	if (!s.map_bytes)
		s.map_bytes = b->map_bytes;
	if (!s.first_complete_ns)
		s.first_complete_ns = b->first_complete_ns;

	/* What prof-bpf said last may have been on its way to the end of the stream when it was
	 * cut. */
	const uint64_t taken = r->taken + b->taken,
		       came = s.samples + s.lost[LOST_QUEUE_FULL] + s.lost[LOST_LIMIT] +
			      s.lost[LOST_MALFORMED] + s.lost[LOST_SEQUENCE] + s.lost[LOST_RESTART];

	if (taken > came)
		s.lost[LOST_RESTART] += taken - came;
	return s;
}

static void say_written(const char *path)
{
	struct buf b = BUF_INIT(0);

	if (log_escape(&b, str_from(path), 4096) == 0)
		fprintf(stderr, "written: %.*s\n", (int)b.len, (const char *)b.data);
	buf_done(&b);
}

/* An empty profile is not what anybody wanted: said, with what is known of why. That what was asked
 * for rested is no failure while the kernel took samples of others, nor is a host that rested for
 * some seconds. */
static void say_empty(struct run *r, const struct status *f)
{
	const unsigned long hz = strtoul(r->o->hz, NULL, 10);
	const double seconds = (double)r->sampled_ns / 1e9;
	uint64_t lost = 0;

	for (unsigned i = 0; i < STATUS_REASONS; i++)
		lost += f->lost[i];
	const uint64_t ticks = tool(r, DEPLOY_BPF)->last.ticks;

	unsigned restarts = 0;

	for (int i = 0; i < DEPLOY_TOOLS; i++)
		restarts += r->again[i].count;
	if (lost)
		fail(r, "no samples: %lu were taken, and all were lost", lost);
	else if (restarts)
		fail(r, "no samples: tools had to be started again %u times, as was said",
		     restarts);
	else if (r->o->command || r->o->pid_count ? ticks || seconds < 1 : seconds < 3)
		log_warning(
			"no samples: %s was on no cpu at any tick of %.1f s, one each %.1f ms; a higher -F looks oftener",
			r->o->command	  ? r->o->command[0]
			: r->o->pid_count ? "what -p names"
					  : "every process",
			seconds, 1000.0 / (double)(hz ? hz : 1));
	else
		fail(r, "no samples: %s in %.1f s; `profpipe doctor` says what this host allows",
		     ticks ? "no process ran" : "the kernel's sampling event never came", seconds);
}

static void conclude(struct run *r)
{
	/* The stream may have ended by itself, and been written before we looked. */
	if (!r->sampled_ns)
		r->sampled_ns = clock_mono_ns() - r->sampling_ns;
	struct summary_cost costs[DEPLOY_TOOLS + 1];
	struct rusage self;

	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		const struct child *c = &r->tools[i];

		costs[i] = (struct summary_cost){ .tool = names[i],
						  .restarts = r->again[i].count,
						  .cpu_s = (double)c->cpu_ns / 1e9,
						  .start_cpu_s = (double)c->ready_cpu_ns / 1e9,
						  .pss_peak = c->pss_peak };
	}
	getrusage(RUSAGE_SELF, &self);
	costs[DEPLOY_TOOLS] = (struct summary_cost){
		.tool = "profpipe",
		.cpu_s = (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
			 (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1e6,
		.pss_peak = child_pss(getpid()),
	};
	const struct status f = figures(r);

	/* It was killed at the very end: what it had taken since its last word is gone, unless it
	 * had passed on all of it. */
	if (f.cut || !tool(r, DEPLOY_EXPORT)->done)
		note_back(r, r->sampling_ns + r->sampled_ns);
	struct summary s = {
		.figures = f,
		.hz = r->o->hz,
		.format = r->o->format,
		.output = r->o->output,
		.costs = costs,
		.cost_count = DEPLOY_TOOLS + 1,
		.duration_s = (double)r->sampled_ns / 1e9,
		.first_complete_s = -1,
		.pss_peak = r->pss_peak + costs[DEPLOY_TOOLS].pss_peak,
		.unsampled_s = (double)r->unsampled_ns / 1e9,
		.unsampled = (uint64_t)r->unsampled,
	};
	if (s.figures.first_complete_ns > r->start_ns)
		s.first_complete_s = (double)(s.figures.first_complete_ns - r->start_ns) / 1e9;
	if (!s.figures.samples && !r->failed)
		say_empty(r, &s.figures);
	if (!r->o->quiet) {
		summary_print(stderr, &s);
		if (!r->failed)
			say_written(r->o->output);
	}
	if (r->summary.fd >= 0) {
		const int e = summary_json(r->summary.fd, &s);

		if (e)
			fail(r, "%s: %s: the summary was not written", r->o->summary, strerror(-e));
	}
}

static void end_outputs(struct run *r)
{
	if (!r->sampling_ns || r->status) {
		output_drop(&r->output);
		output_drop(&r->summary);
		return;
	}
	const bool whole = tool(r, DEPLOY_EXPORT)->done;
	int e = output_end(&r->output, whole);

	if (e)
		fail(r, "%s: %s", r->o->output, strerror(-e));
	if (r->output.replaces && (e || !whole))
		log_warning("%s: still holds what it held before", r->o->output);
	e = output_end(&r->summary, true);
	if (e)
		fail(r, "%s: %s", r->o->summary, strerror(-e));
}

/* After Ctrl-C at the terminal COMMAND has it as long as it likes, or until the next one; in all
 * other cases it was asked to end. */
static void end_command(struct run *r)
{
	struct command *c = &r->command;
	const uint64_t since = clock_mono_ns();
	struct signalfd_siginfo si;
	bool interrupted = false;

	command_drop(c);
	if (!c->pid || r->status)
		return;
	command_reap(c);
	ask_command(r);
	while (!command_reap(c) && !interrupted &&
	       (r->by_terminal || ms_since(since) < COMMAND_MS)) {
		struct pollfd p = { .fd = r->signals, .events = POLLIN };

		poll(&p, 1, TICK_MS);
		while (read(r->signals, &si, sizeof(si)) == sizeof(si))
			interrupted |= si.ssi_signo != SIGCHLD;
	}
	if (!c->ended)
		log_warning("%s (pid %d) still runs", r->o->command[0], c->pid);
	else if (r->sampling_ns && !r->command_asked &&
		 (!WIFEXITED(c->wait_status) || WEXITSTATUS(c->wait_status)))
		log_warning("%s ended with %s", r->o->command[0], child_how(c->wait_status));
}

static int open_output(struct output *o, const char *path)
{
	const int e = output_open(o, path);

	if (e)
		log_error("%s: %s", path, output_error(e));
	return e;
}

static int open_outputs(struct run *r)
{
	int e = open_output(&r->output, r->o->output);

	if (!e && r->o->summary)
		e = open_output(&r->summary, r->o->summary);
	if (!e && r->summary.fd >= 0 && output_same(&r->output, &r->summary)) {
		log_error("%s: is the output and the summary at once; name two files",
			  r->o->summary);
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
	if (tool_path("prof-bpf", path, sizeof(path)))
		return 0;
	rights_missing(path, missing, sizeof(missing));
	if (!missing[0])
		return 0;
	if (geteuid() == 0)
		log_error(
			"sampling needs %s, which this root lacks: run it where root has them (a container needs them granted)",
			missing);
	else
		log_error("sampling needs %s, which user %u lacks: run it as root, by sudo",
			  missing, (unsigned)geteuid());
	return -EPERM;
}

static int take_signals(struct run *r)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	/* A shell without job control starts a background job with SIGINT ignored; it is meant for
	 * us all the same. nohup is meant, too. */
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

/* What prof-export received, for its successor. On a disk where there is one, since memory has its
 * ceiling. -1: none can be had, and prof-export has none. */
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

	/* Before our signals change. */
	if (r->o->command)
		e = command_prepare(&r->command, r->o->command);
	/* Nor are the limits for the tools its. */
	if (!e)
		e = limits_raise();
	if (!e)
		e = take_signals(r);
	if (e) {
		if (e < 0)
			fail(r, "the run cannot be prepared: %s", strerror(-e));
		r->failed = true;
		return e;
	}
	e = identity_take(&r->who);
	if (e) {
		fail(r, "no users for the tools: %s", identity_trouble(e));
		return e;
	}
	r->journal = open_journal();
	e = rundir_make(&r->dir, &r->who);
	if (e)
		fail(r, "no folder for the run below /run, $TMPDIR or /tmp: %s", strerror(-e));
	for (int i = 0; i < DEPLOY_TOOLS && !e; i++)
		e = start_tool(r, (enum deploy_tool)i);
	return e;
}

int record_run(const struct options *o)
{
	static struct run r;

	r = (struct run){ .o = o,
			  .output = OUTPUT_NONE,
			  .summary = OUTPUT_NONE,
			  .signals = -1,
			  .journal = -1,
			  .start_ns = clock_mono_ns(),
			  .oom_kills = limits_oom_kills(),
			  .tty = isatty(STDERR_FILENO),
			  .dir = RUNDIR_NONE,
			  .command = COMMAND_NONE,
			  .who = { .lock = -1 },
			  .seconds = o->seconds ? strtod(o->seconds, NULL) : 0 };
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		r.tools[i] = CHILD_NONE(names[i]);
	if (open_outputs(&r) || check_rights()) {
		output_drop(&r.output);
		output_drop(&r.summary);
		return 1;
	}
	if (!set_up(&r))
		loop(&r);
	r.phase = OVER;
	dismiss(&r);
	if (r.sampling_ns && !r.status)
		conclude(&r);
	end_outputs(&r);
	end_command(&r);
	rundir_remove(&r.dir);
	identity_release(&r.who);
	return r.status ? r.status : r.failed ? 1 : 0;
}
