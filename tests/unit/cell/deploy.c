/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/deploy.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"

static int give(struct deploy *d, int val, const char *value)
{
	const struct cmdline c = { .option = "option", .value = value };

	return deploy_option(d, &c, val);
}

Test(deploy, options_are_taken_as_the_launcher_gives_them)
{
	struct deploy d;

	deploy_init(&d);
	cr_assert_eq(d.status_fd, -1);
	cr_assert_eq(d.uid[DEPLOY_EXPORT], getuid());
	cr_assert_eq(give(&d, DEPLOY_RUN_DIR, "/run/profpipe/1"), EXITS_GO_ON);
	cr_assert_eq(give(&d, DEPLOY_IDS, "900:901:902:903:4294967294"), EXITS_GO_ON);
	cr_assert_eq(give(&d, DEPLOY_STATUS_FD, "5"), EXITS_GO_ON);
	cr_assert_eq(give(&d, DEPLOY_LIFE_FD, "6"), EXITS_GO_ON);
	cr_assert_str_eq(d.run_dir, "/run/profpipe/1");
	cr_assert(d.ids_given);
	cr_assert_eq(d.gid, 900);
	cr_assert_eq(d.uid[DEPLOY_BPF], 901);
	cr_assert_eq(d.uid[DEPLOY_DELTAS], 902);
	cr_assert_eq(d.uid[DEPLOY_SYMD], 903);
	cr_assert_eq(d.uid[DEPLOY_EXPORT], 4294967294u);
	cr_assert_eq(d.status_fd, 5);
	cr_assert_eq(d.life_fd, 6);
}

Test(deploy, the_user_of_prof_send_is_given_only_where_it_runs)
{
	struct deploy d;

	deploy_init(&d);
	cr_assert_eq(give(&d, DEPLOY_IDS, "900:901:902:903:904"), EXITS_GO_ON);
	cr_assert_not(d.send_given);
	cr_assert_eq(give(&d, DEPLOY_IDS, "900:901:902:903:904:905"), EXITS_GO_ON);
	cr_assert(d.send_given);
	cr_assert_eq(d.uid[DEPLOY_EXPORT], 904);
	cr_assert_eq(d.uid[DEPLOY_SEND], 905);
}

Test(deploy, broken_options_are_refused_and_change_nothing)
{
	static const char *const ids[] = { "",
					   "1:2:3:4",
					   "1:2:3:4:5:6:7",
					   "1:2:3:4:5:",
					   "1:2:3:4:5 ",
					   "1:2:3:4:-5",
					   "1:2:3:4:4294967295",
					   "1:2:3:4:99999999999999999999",
					   "1::3:4:5",
					   "a:2:3:4:5",
					   "root:root:root:root:root",
					   ":2:3:4:5" };
	static const char *const fds[] = { "", "-1", "1x", "2147483648", " 1" };
	struct deploy d;

	deploy_init(&d);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		cr_assert_eq(give(&d, DEPLOY_IDS, ids[i]), EXITS_USAGE, "%s", ids[i]);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		cr_assert_eq(give(&d, DEPLOY_STATUS_FD, fds[i]), EXITS_USAGE, "%s", fds[i]);
	cr_assert_eq(give(&d, DEPLOY_RUN_DIR, ""), EXITS_USAGE);
	cr_assert_not(d.ids_given);
	cr_assert_eq(d.status_fd, -1);
	cr_assert_null(d.run_dir);
}

/* deploy_enter ends what a test may do, so it runs in a child. */
static int enter_in_child(struct deploy *d, void (*then)(struct deploy *))
{
	const pid_t child = fork();
	int status;

	if (!child) {
		struct sandbox s = { .caps = SANDBOX_NO_CAPS };

		if (deploy_enter(d, DEPLOY_DELTAS, &s))
			_exit(1);
		then(d);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

static void say_ready(struct deploy *d)
{
	static struct status st = { .samples = 17 };

	if (!(fcntl(d->status_fd, F_GETFD) & FD_CLOEXEC))
		_exit(2);
	deploy_status(d, &st, STATUS_READY);
}

Test(deploy, status_is_written_whole)
{
	struct deploy d;
	struct status st;
	int p[2];

	cr_assert_eq(pipe(p), 0);
	deploy_init(&d);
	d.status_fd = p[1];
	cr_assert_eq(enter_in_child(&d, say_ready), 0);
	cr_assert_eq(read(p[0], &st, sizeof(st)), sizeof(st));
	cr_assert_eq(st.magic, STATUS_MAGIC);
	cr_assert_eq(st.phase, STATUS_READY);
	cr_assert_eq(st.samples, 17);
}

static void say_much(struct deploy *d)
{
	static struct status st;

	for (int i = 0; i < 1000; i++)
		deploy_status(d, &st, STATUS_RUNNING);
}

Test(deploy, a_launcher_that_does_not_read_or_is_gone_blocks_no_tool, .timeout = 10)
{
	struct deploy d;
	int p[2];

	cr_assert_eq(pipe(p), 0);
	deploy_init(&d);
	d.status_fd = p[1];
	cr_assert_eq(enter_in_child(&d, say_much), 0);
	close(p[0]);
	cr_assert_eq(enter_in_child(&d, say_much), 0);
}

Test(deploy, descriptor_that_is_not_open_is_refused)
{
	struct deploy d;

	deploy_init(&d);
	d.life_fd = 987;
	cr_assert_eq(WEXITSTATUS(enter_in_child(&d, say_much)), 1);
}

Test(deploy, life_is_over_when_the_launcher_closes_the_pipe_and_not_when_it_writes)
{
	int p[2];

	cr_assert_eq(pipe(p), 0);
	cr_assert(!deploy_life_over(p[0], NULL));
	cr_assert_eq(write(p[1], "SS", 2), 2);
	cr_assert(!deploy_life_over(p[0], NULL));
	bool epoch = false;

	cr_assert_eq(write(p[1], "PR", 2), 2);
	cr_assert(!deploy_life_over(p[0], &epoch));
	cr_assert(!epoch);
	cr_assert_eq(write(p[1], "RER", 3), 3);
	cr_assert(!deploy_life_over(p[0], &epoch));
	cr_assert(epoch, "the launcher wants a new epoch");
	cr_assert_eq(write(p[1], "S", 1), 1);
	close(p[1]);
	cr_assert(deploy_life_over(p[0], NULL));
	cr_assert(!deploy_life_over(-1, NULL));
}

Test(deploy, options_of_a_launcher_need_a_folder_of_a_run)
{
	static const struct {
		int val;
		const char *value;
	} given[] = { { DEPLOY_STATUS_FD, "5" },
		      { DEPLOY_LIFE_FD, "6" },
		      { DEPLOY_IDS, "1:2:3:4:5" } };
	struct deploy d;

	deploy_init(&d);
	cr_assert_eq(deploy_check_options(&d, DEPLOY_DELTAS), EXITS_GO_ON);
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		deploy_init(&d);
		cr_assert_eq(give(&d, given[i].val, given[i].value), EXITS_GO_ON);
		cr_assert_eq(deploy_check_options(&d, DEPLOY_DELTAS), EXITS_USAGE);
		cr_assert_eq(give(&d, DEPLOY_RUN_DIR, "/run"), EXITS_GO_ON);
		cr_assert_eq(deploy_check_options(&d, DEPLOY_DELTAS), EXITS_GO_ON);
	}
}

Test(deploy, the_limit_of_a_run_needs_one_or_prof_bpf)
{
	struct deploy d;

	deploy_init(&d);
	cr_assert_eq(give(&d, DEPLOY_MEMORY_LIMIT, "64M"), EXITS_GO_ON);
	cr_assert_eq(deploy_check_options(&d, DEPLOY_SYMD), EXITS_USAGE);
	cr_assert_eq(deploy_check_options(&d, DEPLOY_BPF), EXITS_GO_ON);
	cr_assert_eq(give(&d, DEPLOY_RUN_DIR, "/run"), EXITS_GO_ON);
	cr_assert_eq(deploy_check_options(&d, DEPLOY_SYMD), EXITS_GO_ON);
}

Test(deploy, a_folder_that_does_not_exist_is_refused)
{
	struct sandbox s = { .caps = SANDBOX_NO_CAPS };
	struct deploy d;

	deploy_init(&d);
	d.run_dir = "/nonexistent";
	cr_assert_eq(deploy_enter(&d, DEPLOY_DELTAS, &s), -ENOENT);
	d.run_dir = "/dev/null";
	cr_assert_eq(deploy_enter(&d, DEPLOY_DELTAS, &s), -ENOTDIR);
}
