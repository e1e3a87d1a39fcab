/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines and environments with which sampled processes were started. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/host/memory/attributes.h"
#include "tools/prof-bpf/owners/owners.h"

static const char *const names[] = { "OTEL_SERVICE_NAME", "B" };

static void begin(void)
{
	wanted = (struct environment_wanted){ .names = names, .count = 2, .command_line = true };
	set_up();
}

TestSuite(host_attributes, .init = begin, .fini = clean_up);

/* A process of this user, whose /proc folder belongs to root, and its first sample. */
static struct host_process *sampled_of(uint32_t pid, uint32_t uid, const char *exe)
{
	const uint64_t start = start_program(pid, 100);
	char path[128];

	make_proc(pid, "program", 'S', 1, start, uid, "");
	write_proc(pid, "mem", "");
	snprintf(path, sizeof(path), "%s/%u/exe", proc, pid);
	cr_assert_eq(symlink(exe, path), 0);
	settle();
	return look(sample_of(pid, pid, start, "program")).process;
}

static struct host_process *sampled(uint32_t pid)
{
	return sampled_of(pid, 0, "/bin/program");
}

static struct span values_of(const char *service, const char *line)
{
	static uint8_t bytes[ENVIRONMENT_BYTES];
	size_t used = 0;

	if (service)
		used = environment_put(bytes, used, 0, str_from(service));
	if (line)
		used = environment_put(bytes, used, ENVIRONMENT_COMMAND_LINE, str_from(line));
	return (struct span){ .data = bytes, .len = used };
}

static char text[4096];

static void note(void *ctx, struct str key, struct str value)
{
	const size_t len = strlen(text);

	snprintf(text + len, sizeof(text) - len, "%.*s=%.*s;", (int)key.len, key.data,
		 (int)value.len, value.data);
}

static const char *attributes_of(const struct host_process *p)
{
	text[0] = '\0';
	attributes_each(host, p, note, NULL);
	return text;
}

/* All records up to now were drained. */
static void hear(void)
{
	now = clock_mono_ns() + MS;
	host_tick(host, now, now);
}

Test(host_attributes, they_are_read_at_the_first_sample_and_kept)
{
	struct host_process *p = sampled(10);

	cr_assert_eq(starting.pid, 10);
	cr_expect(starting.wanted.count == 2 && starting.wanted.command_line);
	answer_startup(0, values_of("web", "/bin/program -x"));
	cr_expect(!p->has_attributes, "records from before may still come");
	hear();
	cr_assert(p->has_attributes && last_known == p);
	cr_expect_str_eq(attributes_of(p), "process.environment_variable.OTEL_SERVICE_NAME=web;"
					   "process.command_args=/bin/program -x;");
	look(sample_of(10, 10, p->start_ns, "program"));
	cr_expect_eq(starting.pid, 0, "once");
}

Test(host_attributes, attributes_read_before_an_exec_is_heard_of_are_dropped)
{
	struct host_process *p = sampled(10);

	answer_startup(0, values_of("other", NULL));
	exec_of(10, "other");
	hear();
	cr_expect(!p->has_attributes && !last_known);
}

Test(host_attributes, a_process_that_has_ended_keeps_its_own)
{
	struct host_process *p = sampled(10);

	answer_startup(0, values_of("short", NULL));
	exit_of(10, 10);
	hear();
	cr_assert(p->has_attributes);
	cr_expect_str_eq(attributes_of(p), "process.environment_variable.OTEL_SERVICE_NAME=short;");
	let_time_pass(2 * HOST_GRACE_NS);
	cr_expect_eq(owners_held(host_owners(host), OWNER_ATTRIBUTES), 0);
}

Test(host_attributes, one_that_hangs_is_not_asked_again)
{
	struct host_process *p = sampled(10);

	answer_startup(-ETIMEDOUT, (struct span){ 0 });
	hear();
	look(sample_of(10, 10, p->start_ns, "program"));
	cr_expect(starting.pid == 0 && !p->has_attributes);
}

Test(host_attributes, a_process_is_forgotten_while_it_is_read)
{
	sampled(10);
	exit_of(10, 10);
	let_time_pass(2 * HOST_GRACE_NS);
	answer_startup(0, values_of("late", NULL));
	hear();
	cr_expect_null(last_known);
	sampled(11);
	make_host(false, false);
	answer_startup(0, values_of("the host is gone", NULL));
}

static void expect_no_variables(struct host_process *p)
{
	cr_assert_eq(starting.pid, p->pid);
	cr_expect(starting.wanted.count == 0 && starting.wanted.command_line);
	answer_startup(0, values_of(NULL, "/bin/program"));
	hear();
	cr_expect_str_eq(attributes_of(p), "process.command_args=/bin/program;");
}

Test(host_attributes, variables_of_a_process_that_may_not_be_dumped_are_not_read)
{
	expect_no_variables(sampled_of(10, 1000, "/bin/program"));
}

Test(host_attributes, variables_of_a_program_that_holds_secrets_are_not_read)
{
	expect_no_variables(sampled_of(10, 0, "/usr/bin/ssh-agent"));
}

Test(host_attributes, all_together_have_a_ceiling)
{
	char line[ENVIRONMENT_VALUE_MAX + 1] = "";
	unsigned have = 0;

	memset(line, 'x', ENVIRONMENT_VALUE_MAX);
	for (uint32_t pid = 10; pid < 10 + 5000; pid++) {
		struct host_process *p = sampled(pid);

		answer_startup(0, values_of(NULL, line));
		hear();
		have += p->has_attributes;
	}
	const uint64_t held = owners_held(host_owners(host), OWNER_ATTRIBUTES);

	cr_expect_leq(held, ATTRIBUTES_BYTES);
	cr_expect_geq(held, ATTRIBUTES_BYTES / 2);
	cr_expect_eq(held, have * (uint64_t)ENVIRONMENT_VALUE_MAX);
}

Test(host_attributes, nothing_is_read_unless_it_is_wanted)
{
	wanted = (struct environment_wanted){ 0 };
	make_host(false, false);
	sampled(10);
	cr_expect_eq(starting.pid, 0);
}
