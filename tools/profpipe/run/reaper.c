/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/reaper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/system/clock.h"
#include "tools/profpipe/run/rights/limits.h"

#define FOLLOW_MS 20	   /* delay before a tool that lost its peer is started again */
#define START_STREAK_MAX 4 /* limit of the streak (restarts.h) before sampling has begun */
#define SAID_MS 10000	   /* between two messages about ends of one tool */
#define EXITING_MS 1000	   /* how long to wait for an ending tool: freeing BPF maps takes a while */

/* Names the shortage of the host that may have ended the tool, with the remedy; else "". */
static const char *lacking(struct run *r, const struct child *c)
{
	if (WIFSIGNALED(c->wait_status) && WTERMSIG(c->wait_status) == SIGKILL &&
	    limits_oom_kills() > r->oom_kills)
		return ", because memory ran out: give the run more, or end other programs";
	if (r->phase == RUN_STARTING && limits_threads_short())
		return ", because no more threads can be started: raise pids.max of the cgroup, "
		       "or ulimit -u";
	return "";
}

/* Returns the last log line of a tool that ended, without its name; "": there is none. */
static const char *last_words(const struct child *c)
{
	const char *line = c->pending_ns ? c->pending : "";
	const size_t n = strlen(c->name);

	/* The line begins with "prof-x: error: ", which our message repeats. */
	if (strncmp(line, c->name, n) == 0 && line[n] == ':')
		line += n + 1 + (line[n + 1] == ' ');
	return strncmp(line, "error: ", 7) == 0 ? line + 7 : line;
}

/* Logs the end of a tool together with its last log line. */
static void say_ended(struct run *r, struct child *c, const char *ended, const char *consequence)
{
	const char *line = last_words(c);

	run_fail(r, "%s %s (%s)%s%s%s%s", c->name, ended, child_how(c->wait_status),
		 line[0] ? ": " : "", line, lacking(r, c), consequence);
	c->pending_ns = 0;
}

static bool ended_by(const struct child *c, int status)
{
	return WIFEXITED(c->wait_status) && WEXITSTATUS(c->wait_status) == status;
}

/* Whether another prof-export can write the output: it can be rewritten, or is still empty. */
static bool can_write_again(const struct run *r)
{
	struct stat st;

	/* A run that only sends has no output to rewrite, and requests are not sent twice. */
	const int output = run_output_fd(r), journal = run_journal_fd(r);

	if (output < 0)
		return journal >= 0;
	if (journal < 0 || fstat(output, &st) < 0)
		return false;
	return (S_ISREG(st.st_mode) && !(fcntl(output, F_GETFL) & O_APPEND)) ||
	       (!format_streams(r->o->format) && r->phase != RUN_FINISHING);
}

/* Whether it makes sense to start the tool again. */
static bool may_start_again(struct run *r, enum deploy_tool t)
{
	const struct child *c = run_tool(r, t), *bpf = run_tool(r, DEPLOY_BPF);
	const bool cut = WIFSIGNALED(c->wait_status) || ended_by(c, EXITS_AGAIN);

	if (t == DEPLOY_EXPORT)
		return cut && !c->done && can_write_again(r);
	/* prof-symd must start again, even after a regular end, if prof-export has been replaced
	 * since it started. */
	if (r->phase == RUN_FINISHING)
		return t == DEPLOY_SYMD && bpf->pid &&
		       (!ended_by(c, 0) || r->symd_for != r->again[DEPLOY_EXPORT].count);
	if (t == DEPLOY_DELTAS)
		return !bpf->done;
	if (r->phase == RUN_STARTING)
		return cut;
	return !ended_by(c, 0);
}

/* The number of consecutive short lives after which a tool is not started again. Profiled programs
 * can crash a parser again and again by their files. prof-bpf quarantines such files
 * (quarantine.h), and they must not end the run. So there is no limit for a parser that was ready
 * before. */
static unsigned most_restarts(struct run *r, enum deploy_tool t)
{
	if (r->phase == RUN_STARTING)
		return START_STREAK_MAX;

	const struct child *c = run_tool(r, t);
	const bool parser = t == DEPLOY_DELTAS || t == DEPLOY_SYMD;
	const bool crashed = WIFSIGNALED(c->wait_status) && WTERMSIG(c->wait_status) != SIGKILL;

	return parser && c->ready && crashed ? RESTARTS_FOR_EVER : RESTARTS_STREAK_MAX;
}

/* A service lives for weeks, and files of prof-send may be mended meanwhile. */
static bool try_later(struct run *r, enum deploy_tool t, uint64_t now)
{
	struct child *c = run_tool(r, t);

	if (t != DEPLOY_SEND || !r->daemon || r->phase == RUN_STARTING)
		return false;
	/* The run does not fail, because prof-send may work again before its end. */
	const char *line = last_words(c);

	run_clear_line(r);
	if (!r->send_failed)
		log_error("prof-send keeps ending (%s)%s%s%s; nothing is sent, and it is started "
			  "again every minute, or at SIGHUP",
			  child_how(c->wait_status), line[0] ? ": " : "", line, lacking(r, c));
	c->pending_ns = 0;
	r->send_failed = true;
	r->again[t].due_ns = now + REAPER_SEND_AGAIN_NS;
	r->again[t].count++;
	return true;
}

/* Plans the next start. Returns false, after logging the reason, if there is none. */
static bool start_again(struct run *r, enum deploy_tool t)
{
	struct child *c = run_tool(r, t);
	const uint64_t now = clock_mono_ns();
	/* The tool ended only because its peer did; this needs no message. */
	const bool follows = ended_by(c, EXITS_AGAIN) || ended_by(c, 0);

	/* Such a tool starts again soon, and its end does not count against it. */
	if (follows && r->phase != RUN_STARTING) {
		r->again[t].due_ns = now + FOLLOW_MS * 1000000u;
		r->again[t].count++;
		if (t == DEPLOY_BPF)
			run_away(r);
		c->pending_ns = 0;
		return true;
	}
	if (!restarts_plan(&r->again[t], now, now - c->started_ns, most_restarts(r, t))) {
		if (try_later(r, t, now))
			return true;
		say_ended(r, c, "keeps ending",
			  r->phase == RUN_STARTING ? ", before sampling began"
			  : t == DEPLOY_DELTAS	   ? "; programs that start from now on have "
						     "incomplete stacks"
			  : t == DEPLOY_SEND	   ? "; nothing is sent from now on"
						   : "; what was collected until then is written");
		return false;
	}
	if (!follows && (!r->said_ns[t] || run_ms_since(r->said_ns[t]) > SAID_MS)) {
		/* If a signal ended it, its last log line does not give the reason. */
		const char *line = WIFSIGNALED(c->wait_status) ? "" : last_words(c);

		r->said_ns[t] = now;
		run_clear_line(r);
		log_warning("%s ended (%s)%s%s%s; restarting it", c->name,
			    child_how(c->wait_status), line[0] ? ": " : "", line, lacking(r, c));
	}
	c->pending_ns = 0;
	if (t == DEPLOY_BPF)
		run_away(r);
	if (r->phase == RUN_STARTING)
		r->since_ns = now;
	return true;
}

/* Ends sampling: the stream can no longer reach prof-export, which writes what it has. */
static void give_up_stream(struct run *r)
{
	run_finish(r);
	r->last = true;
}

/* Handles the end of prof-send. The run goes on without it, except at the start. */
static void send_ended(struct run *r)
{
	struct child *c = run_tool(r, DEPLOY_SEND);
	const struct child *export = run_tool(r, DEPLOY_EXPORT);
	const bool cut = WIFSIGNALED(c->wait_status) || ended_by(c, EXITS_AGAIN);
	const bool needed = export->pid || r->again[DEPLOY_EXPORT].due_ns;

	if (r->phase == RUN_STARTING) {
		if (cut && start_again(r, DEPLOY_SEND))
			return;
		if (!cut)
			say_ended(r, c, "ended", c->pending_ns ? "" : " before sampling began");
		if (ended_by(c, EXITS_USAGE))
			r->status = EXITS_USAGE;
		r->phase = RUN_OVER;
		return;
	}
	/* This end was planned. */
	if (r->replaces && r->phase == RUN_SAMPLING) {
		r->replaces = false;
		r->again[DEPLOY_SEND].due_ns = clock_mono_ns();
		child_show_pending(c, UINT64_MAX, run_show, r);
		return;
	}
	/* At the end of the run, prof-send delivers the rest and exits. */
	if (!needed || export->done || (r->phase == RUN_FINISHING && !cut))
		return;
	(void)start_again(r, DEPLOY_SEND);
}

static void tool_ended(struct run *r, enum deploy_tool t)
{
	struct child *c = run_tool(r, t);
	const bool well = ended_by(c, 0);

	child_read(c, run_show, r);
	if (r->phase == RUN_OVER)
		return;
	if (t == DEPLOY_SEND) {
		send_ended(r);
		return;
	}
	if (t == DEPLOY_BPF) {
		command_reap(&r->command);
		/* prof-bpf has ended, so a later prof-symd would get no stream. */
		if (r->phase == RUN_FINISHING) {
			if (!c->done)
				run_away(r);
			r->last = true;
		}
	}
	if (t == DEPLOY_DELTAS)
		/* prof-deltas ends when prof-bpf closes the connection; prof-bpf itself takes
		 * longer, because it frees kernel memory. */
		child_read(run_tool(r, DEPLOY_BPF), run_show, r);
	if (may_start_again(r, t)) {
		if (t == DEPLOY_BPF && r->phase == RUN_SAMPLING && run_targets_gone(r)) {
			run_away(r);
			run_finish(r);
		} else if (!start_again(r, t)) {
			if (r->phase == RUN_STARTING || t == DEPLOY_EXPORT)
				r->phase = RUN_OVER;
			else if (t != DEPLOY_DELTAS)
				give_up_stream(r);
		}
		return;
	}
	if (t == DEPLOY_DELTAS) {
		c->pending_ns = 0;
		return;
	}
	if (r->phase == RUN_STARTING) {
		say_ended(r, c, "ended", c->pending_ns ? "" : " before sampling began");
		r->phase = RUN_OVER;
		return;
	}
	if (t == DEPLOY_EXPORT) {
		/* If prof-export reported "done", it has written everything that came. If the
		 * stream was cut off, the user may know the reason already. */
		if (!c->done)
			say_ended(r, c, "ended", "; the output is not complete");
		else if (!well && !r->failed && !WIFSIGNALED(c->wait_status) &&
			 !((r->broken || r->again[DEPLOY_EXPORT].count) && ended_by(c, EXITS_CUT)))
			say_ended(r, c, "ended", "");
		r->phase = RUN_OVER;
		return;
	}
	/* prof-bpf ends by itself when its time is over or its targets are gone. Then prof-symd
	 * ends too. */
	if (well || (t == DEPLOY_SYMD && ended_by(c, EXITS_AGAIN))) {
		c->pending_ns = 0;
		if (t == DEPLOY_SYMD)
			child_leave(run_tool(r, DEPLOY_BPF));
	} else if (r->phase == RUN_FINISHING) {
		r->broken = true;
		run_clear_line(r);
		log_warning("%s ended (%s); the samples that it held are lost", c->name,
			    child_how(c->wait_status));
	} else {
		say_ended(r, c, "ended", "; what was collected until then is written");
		/* Later messages of the other tools would only say that they lost their peer. */
		r->mute = true;
	}
	run_finish(r);
}

/* Waits for tools that are about to end, since one of them may be the cause. */
static void await_exiting(struct run *r, bool ended[static DEPLOY_USERS])
{
	const uint64_t since = clock_mono_ns();

	for (int i = 0; i < DEPLOY_USERS; i++) {
		while (!ended[i] && child_exiting(&r->tools[i]) &&
		       run_ms_since(since) < EXITING_MS) {
			struct pollfd p = { .fd = r->tools[i].pidfd, .events = POLLIN };

			poll(&p, 1, 20);
			ended[i] = child_reap(&r->tools[i]);
		}
	}
}

bool reaper_leave_behind(struct run *r, enum deploy_tool t)
{
	struct child *c = run_tool(r, t);
	unsigned i = 0;

	while (i < RUN_LEFT_BEHIND && r->left_behind[i])
		i++;
	if (i == RUN_LEFT_BEHIND)
		return false;
	r->left_behind[i] = child_leave_behind(c);
	tool_ended(r, t);
	run_tell(r);
	return true;
}

/* If one tool ends, its peers end too, and we may notice these first. So collect all ended tools,
 * and handle killed ones first, because they are the likely cause. */
void reaper_reap(struct run *r)
{
	static const enum deploy_tool order[DEPLOY_USERS] = { DEPLOY_BPF, DEPLOY_EXPORT,
							      DEPLOY_SYMD, DEPLOY_DELTAS,
							      DEPLOY_SEND };
	bool ended[DEPLOY_USERS] = { 0 }, any = false;

	for (int i = 0; i < RUN_LEFT_BEHIND; i++)
		if (r->left_behind[i] && waitpid(r->left_behind[i], NULL, WNOHANG))
			r->left_behind[i] = 0;
	for (int i = 0; i < DEPLOY_USERS; i++) {
		ended[i] = child_reap(&r->tools[i]);
		any |= ended[i];
	}
	if (any)
		await_exiting(r, ended);
	for (int killed = 1; any && killed >= 0; killed--)
		for (int i = 0; i < DEPLOY_USERS; i++)
			if (ended[order[i]] &&
			    WIFSIGNALED(r->tools[order[i]].wait_status) == killed)
				tool_ended(r, order[i]);
	if (any)
		run_tell(r);
}
