/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with so many groups that the kernel takes milliseconds for their status. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/host/shares/statuses.h"

#define GROUPS 65536
#define MAX_READINGS 10000

static struct host host;
static pid_t crowded;

int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

/* No budget grows meanwhile, however long the tests have to wait for the cpu. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	if (id != CLOCK_MONOTONIC)
		return __real_clock_gettime(id, ret);
	*ret = (struct timespec){ .tv_sec = 1000 };
	return 0;
}

static void begin(void)
{
	gid_t *groups = calloc(GROUPS, sizeof(*groups));
	int ready[2];
	char byte;

	for (unsigned i = 0; i < GROUPS; i++)
		groups[i] = 1000000000 + i;
	cr_assert_eq(pipe(ready), 0);
	crowded = fork();
	cr_assert_geq(crowded, 0);
	if (crowded == 0) {
		if (setgroups(GROUPS, groups) || write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	free(groups);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	host = (struct host){ .proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	cr_assert_eq(owners_new(&host.owners), 0);
}

static void clean_up(void)
{
	kill(crowded, SIGKILL);
	waitpid(crowded, NULL, 0);
	close(host.proc);
	owners_free(host.owners);
}

TestSuite(statuses, .init = begin, .fini = clean_up);

/* Reads the slow status until the owner has to wait. Returns the cpu time that this took. */
static uint64_t read_until_busy(struct owner *w)
{
	const uint64_t since_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint32_t uid;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < MAX_READINGS; i++)
		r = statuses_read_uid(&host, w, (uint32_t)crowded, &uid);
	cr_assert_eq(r, -EBUSY);
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - since_ns;
}

Test(statuses, an_owner_with_slow_ones_waits_and_others_do_not)
{
	struct owner *slow = owners_get(host.owners, (struct owner_key){ .uid = 1000 }),
		     *other = owners_get(host.owners, (struct owner_key){ .uid = 1001 });
	struct procfs_ids ids;
	uint32_t uid;

	cr_expect_lt(read_until_busy(slow), MAPPING_TURNS_SAVED_NS / 4);
	cr_expect_eq(statuses_read_ids(&host, slow, (uint32_t)getpid(), &ids), -EBUSY);
	cr_expect_eq(statuses_read_ids(&host, other, (uint32_t)getpid(), &ids), 0);
	cr_expect_eq(ids.inner_pid, (uint32_t)getpid());
	cr_expect_eq(statuses_read_uid(&host, NULL, (uint32_t)getpid(), &uid), 0);
	owner_put(host.owners, slow);
	owner_put(host.owners, other);
}

Test(statuses, those_of_unknown_owners_have_a_budget_of_their_own)
{
	struct owner *other = owners_get(host.owners, (struct owner_key){ .uid = 1001 });
	uint32_t uid;

	cr_expect_lt(read_until_busy(NULL), 2 * STATUSES_UNKNOWN_SAVED_NS / STATUSES_UNKNOWN_PART);
	cr_expect_eq(statuses_read_uid(&host, other, (uint32_t)getpid(), &uid), 0);
	owner_put(host.owners, other);
}

Test(statuses, quick_ones_are_free)
{
	struct owner *w = owners_get(host.owners, (struct owner_key){ .uid = 1000 });
	uint32_t uid;

	for (unsigned i = 0; i < 1000; i++)
		cr_assert_eq(statuses_read_uid(&host, w, (uint32_t)getpid(), &uid), 0);
	/* A busy machine may make a few slow. */
	cr_expect_lt(owner_spent(w, OWNER_MAPS_CPU, clock_mono_ns()), 5 * STATUSES_SLOW_NS);
	owner_put(host.owners, w);
}
