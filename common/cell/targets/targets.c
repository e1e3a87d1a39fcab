/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/targets/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/files/smallfile.h"
#include "common/base/text/decimal.h"
#include "common/cell/targets/container.h"

#define CPUS "/sys/devices/system/cpu/"
#define CPUS_TEXT 4096

/* The long names of the options, by kind and exclude. */
static const char *const names[][2] = {
	[TARGETS_CGROUP] = { "cgroup", "exclude-cgroup" },
	[TARGETS_CONTAINER] = { "container", "exclude-container" },
	[TARGETS_UNIT] = { "unit", "exclude-unit" },
	[TARGETS_COMM_NAME] = { "comm", "exclude-comm" },
	[TARGETS_USER] = { "user", "exclude-user" },
	[TARGETS_PID] = { "pid", "exclude-pid" },
};

const char *targets_name(const struct target *t)
{
	return names[t->kind][t->exclude];
}

bool targets_has(int val)
{
	return (val >= TARGETS_OPTION && val <= TARGETS_OPTION_OF(TARGETS_PID, 1)) ||
	       (val >= TARGETS_OPTION_CPU && val <= TARGETS_OPTION_DESCENDANTS);
}

/* --- values --- */

/* Whether the path stays inside the tree and its components can be names of cgroups. */
static bool is_path(const char *text)
{
	for (const char *at = text; *at;) {
		const size_t len = strcspn(at, "/");

		if ((len == 2 && strncmp(at, "..", 2) == 0) || len > TARGETS_NAME_MOST)
			return false;
		at += len + (at[len] == '/');
	}
	return text[0] != '\0';
}

static int take_user(const struct cmdline *c, uint32_t *ret)
{
	uint64_t number;

	if (decimal_parse(c->value, &number)) {
		/* The highest number means "no user". */
		if (number >= UINT32_MAX)
			return cmdline_refuse(c, "no user can have this number; see `id USER`");
		*ret = (uint32_t)number;
		return EXITS_GO_ON;
	}
	if (!c->value[0] || c->value[0] == '-')
		return cmdline_refuse(c, "not a user; give a name or a number");
	const struct passwd *user = getpwnam(c->value);

	if (user) {
		*ret = user->pw_uid;
		return EXITS_GO_ON;
	}
	(void)cmdline_refuse(c, "there is no such user; see `getent passwd`, or give a number");
	return EXITS_FAILED;
}

static int check_value(const struct cmdline *c, struct target *t)
{
	const size_t len = strlen(t->text);

	switch (t->kind) {
	case TARGETS_CGROUP:
		return is_path(t->text) ? EXITS_GO_ON
					: cmdline_refuse(c, "not a path below the root of the "
							    "cgroups; see /proc/PID/cgroup");
	case TARGETS_CONTAINER:
		return container_is_id(t->text)
			       ? EXITS_GO_ON
			       : cmdline_refuse(c,
						"not the id of a container; give its first 12 to "
						"64 hexadecimal digits");
	case TARGETS_UNIT:
		return len && len <= TARGETS_NAME_MOST - sizeof(".service") && !strchr(t->text, '/')
			       ? EXITS_GO_ON
			       : cmdline_refuse(c, "not a unit; give a name such as nginx.service");
	case TARGETS_COMM_NAME:
		return len && strcspn(t->text, "*") >= len - 1
			       ? EXITS_GO_ON
			       : cmdline_refuse(c, "not a name; give one, with * at its end only");
	case TARGETS_USER:
		return take_user(c, &t->number);
	case TARGETS_PID:
		return cmdline_pid(c, &t->number);
	}
	return EXITS_USAGE;
}

static int take_target(struct targets *t, const struct cmdline *c, int val)
{
	struct target *to = &t->list[t->count];

	if (t->count == TARGETS_MAX)
		return cmdline_refuse(c, "too many targets; give 1024 at most");
	*to = (struct target){ .kind = (enum targets_kind)((val - TARGETS_OPTION) / 2),
			       .exclude = (val - TARGETS_OPTION) % 2,
			       .text = c->value };
	const int r = check_value(c, to);

	t->count += r == EXITS_GO_ON;
	return r;
}

/* Reads one of the kernel's lists of cpus. Returns false if it cannot be read. */
static bool read_cpus(const char *path, struct cpulist *ret)
{
	char text[CPUS_TEXT];

	*ret = (struct cpulist){ 0 };
	return smallfile_read(AT_FDCWD, path, text, sizeof(text)) > 0 && cpulist_add(ret, text);
}

static int take_cpus(struct targets *t, const struct cmdline *c)
{
	struct cpulist these = { 0 }, all;

	if (!cpulist_add(&these, c->value))
		return cmdline_refuse(c, "not a list of cpus; give numbers and ranges, as 0-3,5");
	if (read_cpus(CPUS "possible", &all)) {
		const int cpu = cpulist_beyond(&these, &all);

		if (cpu >= 0) {
			(void)cmdline_refuse_all(
				"--cpu: %d: there is no such cpu; see " CPUS "possible", cpu);
			return EXITS_FAILED;
		}
	}
	if (read_cpus(CPUS "online", &all) && !cpulist_meets(&these, &all)) {
		(void)cmdline_refuse(c, "no such cpu is online; see " CPUS "online");
		return EXITS_FAILED;
	}
	for (size_t i = 0; i < sizeof(these.bits) / sizeof(these.bits[0]); i++)
		t->cpus.bits[i] |= these.bits[i];
	return EXITS_GO_ON;
}

int targets_option(struct targets *t, const struct cmdline *c, int val)
{
	switch (val) {
	case TARGETS_OPTION_CPU:
		return take_cpus(t, c);
	case TARGETS_OPTION_MIN_AGE:
		return cmdline_seconds(c, &t->min_age);
	case TARGETS_OPTION_DESCENDANTS:
		t->descendants = true;
		return EXITS_GO_ON;
	default:
		return take_target(t, c, val);
	}
}

void targets_words(const struct targets *t, struct words *w)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct target *of = &t->list[i];

		words_print(w, "--%s", targets_name(of));
		/* Pass on the number: the next tool often cannot look a user up. */
		if (of->kind == TARGETS_USER || of->kind == TARGETS_PID)
			words_print(w, "%u", of->number);
		else
			words_add(w, of->text);
	}
	if (!cpulist_empty(&t->cpus)) {
		char text[CPUS_TEXT * 8];

		(void)cpulist_print(&t->cpus, text, sizeof(text));
		words_add(w, "--cpu");
		words_add(w, text);
	}
	if (t->min_age > 0) {
		words_add(w, "--min-age");
		words_print(w, "%.17g", t->min_age);
	}
	if (t->descendants)
		words_add(w, "--descendants");
}

bool targets_any(const struct targets *t)
{
	return t->count || t->min_age > 0;
}

/* Whether every process that `in` names is also one of those that `out` names. */
static bool covers(const struct target *out, const struct target *in)
{
	if (!out->exclude || in->exclude || out->kind != in->kind)
		return false;
	if (in->kind == TARGETS_USER || in->kind == TARGETS_PID)
		return out->number == in->number;
	const size_t n = strlen(out->text);

	return strcmp(out->text, in->text) == 0 ||
	       (in->kind == TARGETS_COMM_NAME && n && out->text[n - 1] == '*' &&
		strncmp(out->text, in->text, n - 1) == 0);
}

static const struct target *excluding(const struct targets *t, const struct target *in)
{
	for (size_t i = 0; i < t->count; i++)
		if (covers(&t->list[i], in))
			return &t->list[i];
	return NULL;
}

/* The same for one kind. Cgroups, containers and units are one. */
static const struct target *contradiction_of(const struct targets *t, enum targets_kind first,
					     enum targets_kind last)
{
	const struct target *by = NULL;

	for (size_t i = 0; i < t->count; i++) {
		const struct target *in = &t->list[i];

		if (in->exclude || in->kind < first || in->kind > last)
			continue;
		by = excluding(t, in);
		if (!by)
			return NULL;
	}
	return by;
}

const struct target *targets_contradiction(const struct targets *t)
{
	const struct target *ret = contradiction_of(t, TARGETS_CGROUP, TARGETS_UNIT);

	if (!ret)
		ret = contradiction_of(t, TARGETS_COMM_NAME, TARGETS_COMM_NAME);
	return ret ? ret : contradiction_of(t, TARGETS_USER, TARGETS_USER);
}

bool targets_have(const struct targets *t, enum targets_kind kind, bool exclude)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->list[i].kind == kind && t->list[i].exclude == exclude)
			return true;
	return false;
}
