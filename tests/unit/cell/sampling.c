/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/targets/sampling.h"

#include <criterion/criterion.h>
#include <string.h>
#include "common/base/command/exits.h"

/* The result of sampling_option for a command line. */
static struct sampling parse(int argc, char **argv)
{
	static const struct option longs[] = { SAMPLING_OPTIONS, CMDLINE_OPTIONS, { 0 } };
	struct cmdline c = { .tool = "prof",
			     .usage = "",
			     .shorts = ":F:d:p:",
			     .longs = longs,
			     .argc = argc,
			     .argv = argv };
	struct sampling s = { .hz = SAMPLING_HZ_DEFAULT };
	int val;

	while ((val = cmdline_next(&c)) != CMDLINE_END) {
		cr_assert(sampling_has(val));
		cr_assert_eq(sampling_option(&s, &c, val), EXITS_GO_ON);
	}
	return s;
}

static void assert_passed_on(const struct sampling *s)
{
	struct words w = WORDS_NONE;

	words_add(&w, "prof");
	sampling_words(s, &w);
	cr_assert_eq(words_end(&w), 0);
	const struct sampling got = parse((int)w.n, w.argv);

	cr_assert_eq(got.hz, s->hz);
	cr_assert(got.seconds == s->seconds, "%.17g became %.17g", s->seconds, got.seconds);
	cr_assert_eq(got.pid_count, s->pid_count);
	cr_assert_arr_eq(got.pids, s->pids, s->pid_count * sizeof(*s->pids));
	cr_assert_eq(got.cpu_limit, s->cpu_limit);
	cr_assert_eq(got.memory_none, s->memory_none);
	cr_assert_eq(got.env_count, s->env_count);
	for (size_t i = 0; i < s->env_count; i++)
		cr_assert_str_eq(got.env[i], s->env[i]);
	cr_assert_eq(got.command_lines, s->command_lines);
	cr_assert_eq(!got.host_id, !s->host_id);
	cr_assert(!s->host_id || strcmp(got.host_id, s->host_id) == 0);
	cr_assert_eq(got.ignore_unsafe_kernel, s->ignore_unsafe_kernel);
	cr_assert_eq(got.targets.count, s->targets.count);
	for (size_t i = 0; i < got.targets.count; i++) {
		const struct target *a = &got.targets.list[i], *b = &s->targets.list[i];

		cr_assert(a->kind == b->kind && a->exclude == b->exclude);
		cr_assert_eq(a->number, b->number);
		if (a->kind != TARGETS_USER && a->kind != TARGETS_PID)
			cr_assert_str_eq(a->text, b->text);
	}
	cr_assert_arr_eq(got.targets.cpus.bits, s->targets.cpus.bits, sizeof(got.targets.cpus));
	cr_assert(got.targets.min_age == s->targets.min_age);
	cr_assert_eq(got.targets.descendants, s->targets.descendants);
	words_done(&w);
}

Test(sampling, the_next_tool_gets_what_the_user_gave)
{
	static const double seconds[] = { 0, 1, 0.1, 1e-9, 3600.000001, 1e9, 1.0 / 3 };

	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++)
		assert_passed_on(&(struct sampling){ .hz = 10000, .seconds = seconds[i] });
	assert_passed_on(&(struct sampling){
		.hz = 1, .cpu_limit = 100, .memory_none = true, .ignore_unsafe_kernel = true });
	assert_passed_on(&(struct sampling){ .hz = 1, .host_id = "rack 4, host 7" });
	assert_passed_on(&(struct sampling){ .hz = 1, .host_id = "" });
	assert_passed_on(&(struct sampling){
		.hz = 1, .env = { "A", "--env", "b.c" }, .env_count = 3, .command_lines = true });
}

/* The same of words with bars between them; the targets borrow `line`. */
static struct sampling parse_line(char *line)
{
	char *argv[64], *rest;
	int argc = 0;

	for (char *word = strtok_r(line, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
		argv[argc++] = word;
	argv[argc] = NULL;
	return parse(argc, argv);
}

Test(sampling, the_next_tool_gets_the_targets)
{
	char line[] =
		"prof|--cgroup|/a/b|--exclude-cgroup|-x|--container|0123456789ab|--unit|"
		"a.service|--comm|x*|--exclude-comm|a b|--user|root|--exclude-user|12|--cpu|0|"
		"--min-age|0.3|--pid|1|--exclude-pid|2|--exclude-unit|u|--exclude-container|"
		"abcdefabcdef|--descendants";
	const struct sampling s = parse_line(line);

	cr_assert_eq(s.targets.count, 11);
	cr_assert(targets_any(&s.targets) && targets_have(&s.targets, TARGETS_PID, true) &&
		  !targets_have(&s.targets, TARGETS_PID, false));
	assert_passed_on(&s);
}

Test(sampling, cpus_of_several_options_add_up_and_numbers_pass_for_users)
{
	char line[] = "prof|--cpu|0|--cpu|0|--user|0|--user|65534";
	const struct sampling s = parse_line(line);

	cr_assert(cpulist_has(&s.targets.cpus, 0) && !cpulist_has(&s.targets.cpus, 1));
	cr_assert(s.targets.list[0].number == 0 && s.targets.list[1].number == 65534);
	cr_assert_not(targets_any(&(struct targets){ .cpus.bits = { 1 } }));
}

Test(sampling, all_processes_that_one_tool_takes_the_other_takes)
{
	struct sampling s = { .hz = 99 };

	for (uint32_t i = 0; i < SAMPLING_MAX_PIDS; i++)
		s.pids[s.pid_count++] = i + 1;
	assert_passed_on(&s);
	const struct cmdline c = { .option = "pid", .value = "7" };

	cr_assert_eq(sampling_option(&s, &c, SAMPLING_PID), EXITS_USAGE);
	cr_assert_eq(s.pid_count, SAMPLING_MAX_PIDS);
}
