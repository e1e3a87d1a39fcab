/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/confine/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/prctl.h>

/* Above all known calls: the kernel gets about eight new ones a year. Higher numbers kill the
 * process. Each number in between takes 5 us at each start of a tool. */
#define NEWEST_MAX 512

/* Tries to enter an invalid filter: a kernel with filters returns EFAULT. */
bool seccomp_available(void)
{
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}

static int number_of(const struct seccomp_rule *rule)
{
	return rule->number ? rule->number : seccomp_syscall_resolve_name(rule->call);
}

static int add_rule(scmp_filter_ctx filter, const struct seccomp_rule *rule, int number)
{
	struct scmp_arg_cmp args[SECCOMP_ARGS];
	unsigned n = 0;

	/* An unknown call, or one of another machine, which has a negative number in libseccomp. */
	if (number < 0)
		return 0;
	for (unsigned i = 0; i < SECCOMP_ARGS; i++) {
		const struct seccomp_arg *a = &rule->args[i];

		if (a->mask)
			args[n++] = SCMP_CMP(a->number, SCMP_CMP_MASKED_EQ, a->mask, a->value);
	}
	return seccomp_rule_add_array(
		filter, rule->error ? SCMP_ACT_ERRNO((uint16_t)rule->error) : SCMP_ACT_ALLOW,
		number, n, args);
}

static int fill(scmp_filter_ctx filter, const struct seccomp_rule *const lists[], size_t count,
		bool all_threads)
{
	bool named[NEWEST_MAX - SECCOMP_NEWEST] = { false };
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, all_threads);
	/* Search by number in a binary tree, because the lists are long. */
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; i < count; i++) {
		for (const struct seccomp_rule *rule = lists[i]; !r && rule && rule->call; rule++) {
			const int number = number_of(rule);

			r = add_rule(filter, rule, number);
			if (number > SECCOMP_NEWEST && number < NEWEST_MAX)
				named[number - SECCOMP_NEWEST] = true;
		}
	}
	for (int number = SECCOMP_NEWEST + 1; !r && number < NEWEST_MAX; number++)
		if (!named[number - SECCOMP_NEWEST])
			r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
	return r;
}

int seccomp_enter(const struct seccomp_rule *const lists[], size_t count, bool all_threads)
{
#ifdef __SANITIZE_ADDRESS__
	return 0;
#endif
	if (!seccomp_available())
		return -EOPNOTSUPP;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);

	if (!filter)
		return -ENOMEM;
	int r = fill(filter, lists, count, all_threads);

	if (!r)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

bool seccomp_is_missing(int r)
{
	return r == -EOPNOTSUPP || r == -EPERM || r == -EACCES || r == -ENOSYS;
}
