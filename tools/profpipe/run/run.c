/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "common/base/command/words.h"
#include "common/base/files/fd.h"
#include "common/base/files/toolpath.h"
#include "common/base/system/clock.h"

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

	if (r->mute)
		return;
	run_clear_line(r);
	fprintf(stderr, "%s\n", line);
}

struct child *run_tool(struct run *r, enum deploy_tool t)
{
	return &r->tools[t];
}

int run_tools(const struct run *r)
{
	return r->o->otlp.endpoints ? DEPLOY_USERS : DEPLOY_TOOLS;
}

int run_output_fd(const struct run *r)
{
	return r->folder.o ? r->folder.now.fd : r->output.fd;
}

int run_journal_fd(const struct run *r)
{
	return r->folder.o ? r->folder.now.journal : r->journal;
}

const char *run_output(const struct run *r)
{
	return r->o->output ? r->o->output : r->o->output_dir ? r->o->output_dir : "what is sent";
}

static bool is_gone(uint32_t pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static double seconds_left(const struct run *r)
{
	const double left = r->seconds - (double)(clock_mono_ns() - r->sampling_ns) / 1e9;

	return left > 0.01 ? left : 0.01;
}

/* Adds the options of prof-bpf. If it is restarted, it samples only for the rest of the time. */
static void bpf_words(const struct run *r, struct words *w)
{
	struct sampling left = r->o->sampling;

	if (r->sampling_ns) {
		if (left.seconds > 0)
			left.seconds = seconds_left(r);
		left.pid_count = 0;
		for (size_t i = 0; i < r->o->sampling.pid_count; i++)
			if (!is_gone(r->o->sampling.pids[i]))
				left.pids[left.pid_count++] = r->o->sampling.pids[i];
		words_add(w, "--resume");
	}
	sampling_words(&left, w);
	if (r->command.pid) {
		words_add(w, "--follow");
		words_print(w, "%d", r->command.pid);
	}
}

static void export_words(const struct run *r, struct words *w)
{
	words_add(w, "-f");
	words_add(w, format_names[r->o->format]);
	if (run_output_fd(r) >= 0) {
		words_add(w, "--output-fd");
		words_print(w, "%d", CHILD_FIRST_FD);
	}
	if (r->o->otlp.endpoints)
		words_add(w, "--send");
	if (run_journal_fd(r) >= 0) {
		words_add(w, "--journal-fd");
		words_print(w, "%d", CHILD_FIRST_FD + 1);
	}
	if (r->folder.o) {
		words_add(w, "--next-fd");
		words_print(w, "%d", CHILD_FIRST_FD + 2);
		words_add(w, "--file");
		words_print(w, "%" PRIu64, r->folder.file);
	}
	if (r->o->lines)
		words_add(w, "--lines");
	if (r->o->interpreter_frames)
		words_add(w, "--interpreter-frames");
	if (r->o->code)
		words_add(w, "--code");
	reporting_words(&r->o->reporting, w);
}

/* The other tools expect a prof-send only if the list has a user for it. */
static void ids_word(const struct run *r, struct words *w)
{
	const struct identity *i = &r->who;

	if (r->o->otlp.endpoints)
		words_print(w, "%u:%u:%u:%u:%u:%u", i->gid, i->uid[0], i->uid[1], i->uid[2],
			    i->uid[3], i->uid[4]);
	else
		words_print(w, "%u:%u:%u:%u:%u", i->gid, i->uid[0], i->uid[1], i->uid[2],
			    i->uid[3]);
}

/* At the start of the run, an endpoint whose files cannot be used is an error. Later it must not
 * stop the other ones. */
static void send_words(const struct run *r, struct words *w)
{
	otlp_pass_on(&r->o->otlp, w);
	if (r->sampling_ns)
		words_add(w, "--resume");
}

static void tool_words(const struct run *r, enum deploy_tool t, struct words *w)
{
	words_add(w, account_tool(t));
	words_add(w, "--run-dir");
	words_add(w, r->dir.path);
	if (r->who.separate) {
		words_add(w, "--ids");
		ids_word(r, w);
	}
	words_add(w, "--status-fd");
	words_add(w, CHILD_STATUS_FD);
	words_add(w, "--life-fd");
	words_add(w, CHILD_LIFE_FD);
	if (r->o->limit) {
		words_add(w, "--memory-limit");
		words_print(w, "%" PRIu64, r->o->limit);
	}
	if (r->o->otlp.endpoints)
		words_add(w, "--with-send");
	/* A reload of the settings may start it. */
	if (r->daemon)
		words_add(w, "--with-metrics");
	if (r->o->verbose)
		words_add(w, "-v");
	if (t == DEPLOY_BPF)
		bpf_words(r, w);
	else if (t == DEPLOY_SYMD)
		reporting_names_words(&r->o->reporting, w);
	else if (t == DEPLOY_EXPORT)
		export_words(r, w);
	else if (t == DEPLOY_SEND)
		send_words(r, w);
}

/* Keeps counts that the next process of the tool will not have. */
static void keep_counts(struct run *r, enum deploy_tool t, const struct status *last)
{
	if (t == DEPLOY_BPF)
		r->taken += last->taken;
	else if (t == DEPLOY_EXPORT)
		delivery_add(&r->made, last);
	else if (t == DEPLOY_SEND)
		delivery_add(&r->sent, last);
}

/* What prof-export has passed on in all. */
static uint64_t passed_on(const struct run *r)
{
	return r->made.taken + r->tools[DEPLOY_EXPORT].last.requests_taken;
}

uint64_t run_handed(const struct run *r)
{
	return r->handed + (passed_on(r) - r->handed_before) * r->send_endpoints;
}

int run_start_tool(struct run *r, enum deploy_tool t)
{
	const char *variables[OTLP_VARIABLES];
	struct child_fd out[3];
	size_t count = 0;
	struct words w = WORDS_NONE;
	const bool turns = t == DEPLOY_EXPORT && r->folder.o;
	int next = -1, e = 0;

	if (turns)
		e = folder_connect(&r->folder, &next);
	if (t == DEPLOY_EXPORT && run_output_fd(r) >= 0)
		out[count++] = (struct child_fd){ run_output_fd(r), CHILD_FIRST_FD };
	if (t == DEPLOY_EXPORT && run_journal_fd(r) >= 0)
		out[count++] = (struct child_fd){ run_journal_fd(r), CHILD_FIRST_FD + 1 };
	if (next >= 0)
		out[count++] = (struct child_fd){ next, CHILD_FIRST_FD + 2 };
	otlp_variables(variables);

	tool_words(r, t, &w);
	if (!e)
		e = words_end(&w);

	const struct child_start how = { .argv = (const char *const *)w.argv,
					 .fds = out,
					 .count = count,
					 .variables = t == DEPLOY_SEND ? variables : NULL,
					 .file_most = turns ? r->o->keep_bytes : 0 };
	const struct status last = run_tool(r, t)->last;

	if (t == DEPLOY_SYMD)
		r->symd_for = r->again[DEPLOY_EXPORT].count;
	if (!e)
		e = child_start(run_tool(r, t), &how);
	words_done(&w);
	fd_close(&next);
	if (e)
		run_fail(r, "%s cannot be started: %s", account_tool(t), child_trouble(e));
	else
		keep_counts(r, t, &last);
	if (!e && t == DEPLOY_SEND) {
		r->handed = run_handed(r);
		r->handed_before = passed_on(r);
		r->send_endpoints = r->o->otlp.endpoints;
	}
	if (!e && t == DEPLOY_EXPORT)
		run_tell(r);
	if (!e && turns)
		folder_tell(&r->folder, run_tool(r, DEPLOY_SYMD));
	if (!e && t == DEPLOY_BPF && r->rests)
		child_order(run_tool(r, t), DEPLOY_PAUSE);
	return e;
}

void run_measure(struct run *r)
{
	uint64_t pss = 0;

	for (int i = 0; i < DEPLOY_USERS; i++) {
		child_measure(&r->tools[i], true);
		pss += r->tools[i].pss;
	}
	if (r->metrics) {
		child_measure(r->metrics, true);
		pss += r->metrics->pss;
	}
	if (pss > r->pss_peak)
		r->pss_peak = pss;
	r->launcher_pss = child_pss(getpid());
	r->measured_ns = clock_mono_ns();
}

void run_begin(struct run *r)
{
	r->phase = RUN_SAMPLING;
	r->sampling_ns = clock_mono_ns();
	r->asleep_ns = clock_ns(CLOCK_BOOTTIME) - r->sampling_ns;
	if (r->command.pid)
		command_release(&r->command);
	log_info("sampling has begun, after %.3f s", (double)(r->sampling_ns - r->start_ns) / 1e9);
	run_measure(r);
	for (int i = 0; i < DEPLOY_USERS; i++)
		r->tools[i].ready_cpu_ns = r->tools[i].cpu_ns;
}

static bool time_is_over(const struct run *r)
{
	return r->seconds > 0 && r->sampling_ns &&
	       (double)(clock_mono_ns() - r->sampling_ns) >= r->seconds * 1e9;
}

/* Ctrl-C has also reached COMMAND, which decides for itself. */
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
	if (r->phase != RUN_STARTING && !r->away_ns)
		r->away_ns = clock_mono_ns();
}

/* When sampling ended: after the time of -d, or earlier. */
static uint64_t over_ns(const struct run *r)
{
	const uint64_t whole_ns = (uint64_t)(r->seconds * 1e9);

	return r->sampling_ns + (whole_ns && whole_ns < r->sampled_ns ? whole_ns : r->sampled_ns);
}

void run_tell(struct run *r)
{
	struct deploy_word w = { .last = r->last,
				 .taken = r->taken + run_tool(r, DEPLOY_BPF)->last.taken };

	if (r->phase == RUN_STARTING)
		return;
	if (r->phase == RUN_FINISHING && r->away_ns)
		w.until_ns = over_ns(r);
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		w.restarts[i] = r->again[i].count;
	child_tell(run_tool(r, DEPLOY_EXPORT), &w, sizeof(w));
}

void run_finish(struct run *r)
{
	struct child *bpf = run_tool(r, DEPLOY_BPF);

	if (r->phase >= RUN_FINISHING)
		return;
	run_measure(r);
	r->phase = RUN_FINISHING;
	r->since_ns = r->progress_ns = clock_mono_ns();
	r->sampled_ns = r->since_ns - r->sampling_ns;
	r->again[DEPLOY_BPF].due_ns = r->again[DEPLOY_DELTAS].due_ns = 0;
	if (!bpf->pid)
		r->broken = r->last = true; /* the stream has ended for good */
	/* Tell prof-export first, so that it knows this when the stream ends. */
	run_tell(r);
	/* If prof-bpf no longer reads the pipe, it is ending, and reaper_reap will notice. */
	if (bpf->pid)
		(void)child_stop(bpf);
}

bool run_targets_gone(struct run *r)
{
	const struct sampling *s = &r->o->sampling;

	if (r->command.pid)
		return r->command.ended;
	for (size_t i = 0; i < s->pid_count; i++)
		if (!is_gone(s->pids[i]))
			return false;
	return s->pid_count > 0;
}
