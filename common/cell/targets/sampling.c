/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/targets/sampling.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "common/base/command/exits.h"

#define HZ_MAX 10000

static const char *const read_memory_words[] = { "interpreters", "none" };

bool sampling_has(int val)
{
	return val == SAMPLING_HZ || val == SAMPLING_SECONDS || val == SAMPLING_PID ||
	       (val >= SAMPLING_CPU_LIMIT && val <= SAMPLING_UNSAFE) || targets_has(val);
}

static int take_pid(struct sampling *s, const struct cmdline *c)
{
	char why[64];
	uint32_t pid;
	const int r = cmdline_pid(c, &pid);

	if (r != EXITS_GO_ON)
		return r;
	if (s->pid_count == SAMPLING_MAX_PIDS) {
		snprintf(why, sizeof(why), "too many processes; give %d at most",
			 SAMPLING_MAX_PIDS);
		return cmdline_refuse(c, why);
	}
	s->pids[s->pid_count++] = pid;
	return EXITS_GO_ON;
}

static int take_host_id(struct sampling *s, const struct cmdline *c)
{
	const size_t len = strlen(c->value);

	if (len > SAMPLING_HOST_ID_MAX)
		return cmdline_refuse(c, "too long; give 64 bytes at most");
	for (size_t i = 0; i < len; i++)
		if (c->value[i] < ' ' || c->value[i] > '~')
			return cmdline_refuse(c, "no plain text; give printable ASCII");
	s->host_id = c->value;
	return EXITS_GO_ON;
}

static int take_env(struct sampling *s, const struct cmdline *c)
{
	const size_t len = strlen(c->value);
	char why[64];

	if (!len || len > SAMPLING_ENV_NAME_MAX)
		return cmdline_refuse(c, "no name of a variable; give 1 to 96 bytes");
	for (size_t i = 0; i < len; i++)
		if (c->value[i] <= ' ' || c->value[i] > '~' || c->value[i] == '=')
			return cmdline_refuse(c, "no name of a variable; give printable ASCII "
						 "without blanks and without \"=\"");
	for (size_t i = 0; i < s->env_count; i++)
		if (strcmp(s->env[i], c->value) == 0)
			return cmdline_refuse(c, "named twice; give each name once");
	if (s->env_count == SAMPLING_ENV_MAX) {
		snprintf(why, sizeof(why), "too many variables; give %d at most", SAMPLING_ENV_MAX);
		return cmdline_refuse(c, why);
	}
	s->env[s->env_count++] = c->value;
	return EXITS_GO_ON;
}

int sampling_option(struct sampling *s, const struct cmdline *c, int val)
{
	uint64_t n = 0;
	size_t word = 0;
	int r;

	if (targets_has(val))
		return targets_option(&s->targets, c, val);
	switch (val) {
	case SAMPLING_HZ:
		r = cmdline_number(c, 1, HZ_MAX, &n);
		s->hz = (unsigned)n;
		return r;
	case SAMPLING_SECONDS:
		return cmdline_seconds(c, &s->seconds);
	case SAMPLING_PID:
		return take_pid(s, c);
	case SAMPLING_CPU_LIMIT:
		r = cmdline_number(c, 1, 100, &n);
		s->cpu_limit = (unsigned)n;
		return r;
	case SAMPLING_MEMORY:
		r = cmdline_word(c, read_memory_words, 2, &word);
		s->memory_none = word == 1;
		return r;
	case SAMPLING_ENV:
		return take_env(s, c);
	case SAMPLING_COMMAND_LINES:
		s->command_lines = true;
		return EXITS_GO_ON;
	case SAMPLING_HOST_ID:
		return take_host_id(s, c);
	case SAMPLING_UNSAFE:
		s->ignore_unsafe_kernel = true;
		return EXITS_GO_ON;
	}
	assert(!"an option of sampling");
	return EXITS_USAGE;
}

/* Returns the target that excludes one of the pids, if all of them are excluded; else NULL. */
static const struct target *excluded_pid(const struct sampling *s)
{
	const struct target *ret = NULL;
	bool all = s->pid_count > 0;

	for (size_t i = 0; all && i < s->pid_count; i++) {
		all = false;
		for (size_t k = 0; !all && k < s->targets.count; k++) {
			ret = &s->targets.list[k];
			all = ret->kind == TARGETS_PID && ret->exclude && ret->number == s->pids[i];
		}
	}
	return all ? ret : NULL;
}

int sampling_check(const struct sampling *s)
{
	const struct targets *t = &s->targets;

	if (t->descendants && !s->pid_count && !targets_have(t, TARGETS_PID, true))
		return cmdline_refuse_all("--descendants: needs --pid or --exclude-pid; give one "
					  "of them");
	const struct target *out = targets_contradiction(t);

	if (!out)
		out = excluded_pid(s);
	if (out)
		return cmdline_refuse_all("--%s: %s: nothing is left of --%s; remove one of them",
					  targets_name(out), out->text,
					  targets_name(out) + strlen("exclude-"));
	return EXITS_GO_ON;
}

void sampling_words(const struct sampling *s, struct words *w)
{
	words_add(w, "--frequency");
	words_print(w, "%u", s->hz);
	if (s->seconds > 0) {
		words_add(w, "--duration");
		words_print(w, "%.17g", s->seconds);
	}
	for (size_t i = 0; i < s->pid_count; i++) {
		words_add(w, "--pid");
		words_print(w, "%u", s->pids[i]);
	}
	if (s->cpu_limit) {
		words_add(w, "--cpu-limit");
		words_print(w, "%u", s->cpu_limit);
	}
	if (s->memory_none) {
		words_add(w, "--read-memory");
		words_add(w, "none");
	}
	for (size_t i = 0; i < s->env_count; i++) {
		words_add(w, "--env");
		words_add(w, s->env[i]);
	}
	if (s->command_lines)
		words_add(w, "--cmdline");
	if (s->host_id) {
		words_add(w, "--host-id");
		words_add(w, s->host_id);
	}
	if (s->ignore_unsafe_kernel)
		words_add(w, "--ignore-unsafe-kernel");
	targets_words(&s->targets, w);
}
