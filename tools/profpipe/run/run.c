/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/toolpath.h"

uint64_t run_ms_since(uint64_t then)
{
	return (clock_mono_ns() - then) / 1000000;
}

void run_clear_line(struct run *r)
{
	if (r->line_shown)
		fputs("\r\033[K", stderr);
	r->line_shown = false;
}

__attribute__((format(printf, 2, 3))) void run_fail(struct run *r, const char *fmt, ...)
{
	char text[CHILD_SHOWN];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	run_clear_line(r);
	log_error("%s", text);
	r->failed = true;
}

void run_show(void *ctx, const struct child *c, const char *line)
{
	struct run *r = ctx;

	(void)c;
	if (r->mute)
		return;
	run_clear_line(r);
	fprintf(stderr, "%s\n", line);
}

struct child *run_tool(struct run *r, enum deploy_tool t)
{
	return &r->tools[t];
}

static bool run_is_gone(const char *pid)
{
	return kill((pid_t)atol(pid), 0) < 0 && errno == ESRCH;
}

static double seconds_left(const struct run *r)
{
	const double left = r->seconds - (double)(clock_mono_ns() - r->sampling_ns) / 1e9;

	return left > 0.01 ? left : 0.01;
}

int run_start_tool(struct run *r, enum deploy_tool t)
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
	argv[n++] = account_tool(t);
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
		argv[n++] = "--memory-limit";
		argv[n++] = r->o->limit;
	}
	if (r->o->verbose)
		argv[n++] = "-v";
	if (t == DEPLOY_BPF) {
		argv[n++] = "-F";
		argv[n++] = r->o->hz;
		if (r->o->seconds) {
			/* A restarted prof-bpf gets the remaining time. */
			snprintf(seconds, sizeof(seconds), "%.3f", seconds_left(r));
			argv[n++] = "-d";
			argv[n++] = r->sampling_ns ? seconds : r->o->seconds;
		}
		if (r->sampling_ns)
			argv[n++] = "--resume";
		for (size_t i = 0; i < r->o->pid_count; i++) {
			if (r->sampling_ns && run_is_gone(r->o->pids[i]))
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
		argv[n++] = format_names[r->o->format];
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
	const uint64_t taken = run_tool(r, t)->last.taken;

	if (t == DEPLOY_SYMD)
		r->symd_for = r->again[DEPLOY_EXPORT].count;
	const int e = child_start(run_tool(r, t), &how);

	if (e)
		run_fail(r, "%s cannot be started: %s", account_tool(t), child_trouble(e));
	else if (t == DEPLOY_BPF)
		r->taken += taken;
	else if (t == DEPLOY_EXPORT)
		run_tell(r);
	return e;
}

void run_measure(struct run *r)
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

void run_begin(struct run *r)
{
	r->phase = SAMPLING;
	r->sampling_ns = clock_mono_ns();
	r->asleep_ns = clock_ns(CLOCK_BOOTTIME) - r->sampling_ns;
	if (r->command.pid)
		command_release(&r->command);
	log_info("sampling has begun, after %.3f s", (double)(r->sampling_ns - r->start_ns) / 1e9);
	run_measure(r);
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		r->tools[i].ready_cpu_ns = r->tools[i].cpu_ns;
}

static bool time_is_over(const struct run *r)
{
	return r->seconds > 0 && r->sampling_ns &&
	       (double)(clock_mono_ns() - r->sampling_ns) >= r->seconds * 1e9;
}

/* Ctrl-C has reached COMMAND too, which decides for itself. */
void run_ask_command(struct run *r)
{
	if (!r->command.pid || r->command.ended || r->command_asked_ns || r->by_terminal ||
	    !(r->asked || time_is_over(r)))
		return;
	r->command_asked_ns = clock_mono_ns();
	kill(r->command.pid, SIGTERM);
}

void run_away(struct run *r)
{
	if (r->phase != STARTING && !r->away_ns)
		r->away_ns = clock_mono_ns();
}

/* When sampling ended: at -d, or earlier. */
static uint64_t over_ns(const struct run *r)
{
	const uint64_t whole_ns = (uint64_t)(r->seconds * 1e9);

	return r->sampling_ns + (whole_ns && whole_ns < r->sampled_ns ? whole_ns : r->sampled_ns);
}

void run_tell(struct run *r)
{
	struct deploy_word w = { .last = r->last,
				 .taken = r->taken + run_tool(r, DEPLOY_BPF)->last.taken };

	if (r->phase == STARTING)
		return;
	if (r->phase == FINISHING && r->away_ns)
		w.until_ns = over_ns(r);
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		w.restarts[i] = r->again[i].count;
	child_tell(run_tool(r, DEPLOY_EXPORT), &w, sizeof(w));
}

void run_finish(struct run *r)
{
	struct child *bpf = run_tool(r, DEPLOY_BPF);

	if (r->phase >= FINISHING)
		return;
	run_measure(r);
	r->phase = FINISHING;
	r->since_ns = r->progress_ns = clock_mono_ns();
	r->sampled_ns = r->since_ns - r->sampling_ns;
	r->again[DEPLOY_BPF].due_ns = r->again[DEPLOY_DELTAS].due_ns = 0;
	if (!bpf->pid)
		r->broken = r->last = true; /* no stream comes any more */
	/* Tell prof-export before prof-bpf, so that it knows this when the stream ends. */
	run_tell(r);
	/* If prof-bpf does not take the byte, it is ending, and ended_reap will notice. */
	if (bpf->pid)
		(void)child_stop(bpf);
}

bool run_targets_gone(struct run *r)
{
	if (r->command.pid)
		return r->command.ended;
	for (size_t i = 0; i < r->o->pid_count; i++)
		if (!run_is_gone(r->o->pids[i]))
			return false;
	return r->o->pid_count > 0;
}
