/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cell of a tool that is taken over, with parts of it left out, to test the remaining ones.
 * REDTEAM_WITHOUT names the parts: calls, landlock, root.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/cell/confine/emptyroot.h"
#include "common/cell/confine/landlock.h"
#include "common/cell/confine/seccomp.h"
#include "tests/redteam/takeover.h"

int __real_seccomp_enter(const struct seccomp_rule *const lists[], size_t count, bool all_threads);
int __wrap_seccomp_enter(const struct seccomp_rule *const lists[], size_t count, bool all_threads);
int __real_landlock_enter(enum landlock_rights rights, const char *folder);
int __wrap_landlock_enter(enum landlock_rights rights, const char *folder);
int __real_landlock_enter_allowed(const struct landlock_allowed *a);
int __wrap_landlock_enter_allowed(const struct landlock_allowed *a);
int __real_emptyroot_prepare(struct emptyroot *e, const char *folder, bool user);
int __wrap_emptyroot_prepare(struct emptyroot *e, const char *folder, bool user);

static bool is_without(const char *part)
{
	const char *all = getenv("REDTEAM_WITHOUT");

	return all && strstr(all, part);
}

int __wrap_seccomp_enter(const struct seccomp_rule *const lists[], size_t count, bool all_threads)
{
	const int r = is_without("calls") ? 0 : __real_seccomp_enter(lists, count, all_threads);

	if (!r)
		takeover_entered();
	return r;
}

int __wrap_landlock_enter(enum landlock_rights rights, const char *folder)
{
	return is_without("landlock") ? 0 : __real_landlock_enter(rights, folder);
}

int __wrap_landlock_enter_allowed(const struct landlock_allowed *a)
{
	return is_without("landlock") ? 0 : __real_landlock_enter_allowed(a);
}

int __wrap_emptyroot_prepare(struct emptyroot *e, const char *folder, bool user)
{
	if (!is_without("root"))
		return __real_emptyroot_prepare(e, folder, user);
	*e = EMPTYROOT_NONE;
	return -EPERM;
}
