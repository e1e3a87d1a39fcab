/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child with one thread enters each sandbox; its exit status is its answer. Run as root,
 * like `make check`. */
#include "common/cell/confine/sandbox.h"

#include <criterion/criterion.h>
#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static int in_child(int (*body)(void))
{
	const pid_t child = fork();
	int status;

	if (!child)
		_exit(body());
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

#define REQUIRE(holds) \
	do { \
		if (!(holds)) \
			return __LINE__ % 250 + 1; \
	} while (0)

static const struct sandbox parser = {
	.change_ids = true, .uid = NOBODY, .gid = NOBODY, .caps = SANDBOX_NO_CAPS, .max_files = 64
};

static int become_parser(void)
{
	const char *step = NULL;
	gid_t groups[2] = { 1, 2 };
	uid_t u[3];
	struct rlimit l;

	REQUIRE(setgroups(2, groups) == 0);
	REQUIRE(sandbox_enter(&parser, &step) == 0);
	REQUIRE(getresuid(&u[0], &u[1], &u[2]) == 0 && u[0] == NOBODY && u[1] == NOBODY &&
		u[2] == NOBODY);
	REQUIRE(getgroups(0, NULL) == 0);
	REQUIRE(setuid(0) < 0 && setgid(0) < 0 && setgroups(0, NULL) < 0);
	REQUIRE(capng_get_caps_process() == 0 &&
		capng_have_capabilities(CAPNG_SELECT_CAPS) == CAPNG_NONE);
	REQUIRE(capng_have_capabilities(CAPNG_SELECT_BOUNDS) == CAPNG_NONE);
	REQUIRE(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
#ifndef __SANITIZE_ADDRESS__
	REQUIRE(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
#endif
	REQUIRE(getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur == 64 && l.rlim_max == 64);
	REQUIRE(getrlimit(RLIMIT_CORE, &l) == 0 && l.rlim_max == 0);
	return 0;
}

Test(sandbox, parser_keeps_no_right_and_cannot_take_one_back)
{
	cr_assert_eq(in_child(become_parser), 0);
}

static int become_bpf(void)
{
	static const unsigned wanted[] = {
		CAP_BPF,   CAP_PERFMON, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH,
		CAP_SYSLOG
	};
	const struct sandbox s = {
		.change_ids = true, .uid = NOBODY, .gid = NOBODY, .caps = SANDBOX_BPF_CAPS
	};
	const char *step = NULL;
	bool had[CAP_LAST_CAP + 1];

	REQUIRE(capng_get_caps_process() == 0);
	for (unsigned c = 0; c <= CAP_LAST_CAP; c++)
		had[c] = capng_have_capability(CAPNG_PERMITTED, c);
	REQUIRE(sandbox_enter(&s, &step) == 0);
	REQUIRE(capng_get_caps_process() == 0);
	for (unsigned c = 0; c <= CAP_LAST_CAP; c++) {
		bool want = false;

		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			want = want || (wanted[i] == c && had[c]);
		REQUIRE(capng_have_capability(CAPNG_EFFECTIVE, c) == want);
		REQUIRE(capng_have_capability(CAPNG_PERMITTED, c) == want);
	}
	REQUIRE(geteuid() == NOBODY && setuid(0) < 0);
	return 0;
}

Test(sandbox, bpf_tool_keeps_exactly_its_capabilities_across_the_change_of_user)
{
	cr_assert_eq(in_child(become_bpf), 0);
}

static int become_bpf_with_less(void)
{
	const struct sandbox s = { .caps = SANDBOX_BPF_CAPS };
	const char *step = NULL;

	capng_clear(CAPNG_SELECT_CAPS);
	REQUIRE(capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_BPF, CAP_CHOWN,
			      -1) == 0);
	REQUIRE(capng_apply(CAPNG_SELECT_CAPS) == 0);
	REQUIRE(sandbox_enter(&s, &step) == 0);
	REQUIRE(capng_get_caps_process() == 0);
	REQUIRE(capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF) &&
		!capng_have_capability(CAPNG_EFFECTIVE, CAP_CHOWN));
	REQUIRE(!capng_have_capability(CAPNG_PERMITTED, CAP_PERFMON));
	return 0;
}

Test(sandbox, missing_capabilities_are_no_error_and_others_go)
{
	cr_assert_eq(in_child(become_bpf_with_less), 0);
}

static int stay_as_nobody(void)
{
	const char *step = NULL;
	gid_t groups[1] = { 1 };
	const struct sandbox other = { .change_ids = true, .uid = 1234, .gid = NOBODY };

	REQUIRE(setgroups(1, groups) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
		setresuid(NOBODY, NOBODY, NOBODY) == 0);
	REQUIRE(sandbox_enter(&parser, &step) == 0);
	REQUIRE(sandbox_enter(&other, &step) == -EPERM);
	REQUIRE(step && strstr(step, "user"));
	return 0;
}

Test(sandbox, unprivileged_caller_may_stay_itself_but_not_become_another)
{
	cr_assert_eq(in_child(stay_as_nobody), 0);
}

static void *wait_for_ever(void *arg)
{
	pause();
	return arg;
}

static int enter_with_a_thread(void)
{
	const char *step = NULL;
	pthread_t t;

	REQUIRE(pthread_create(&t, NULL, wait_for_ever, NULL) == 0);
	REQUIRE(sandbox_enter(&parser, &step) == -EBUSY);
	REQUIRE(step && strstr(step, "thread"));
	REQUIRE(geteuid() == 0);
	return 0;
}

Test(sandbox, running_thread_is_refused_since_it_would_keep_its_rights)
{
	cr_assert_eq(in_child(enter_with_a_thread), 0);
}
