/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/rights/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/text/decimal.h"

static bool number(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && decimal_parse(text, ret) && *ret < UINT32_MAX;
}

int user_of_sudo(uid_t *ret_uid, gid_t *ret_gid)
{
	uint64_t uid, gid;

	if (geteuid() != 0 || !getenv("SUDO_UID"))
		return USER_NONE;
	/* Without a valid number we would stay root, which this must prevent. */
	if (!number("SUDO_UID", &uid))
		return -EINVAL;
	if (uid == 0)
		return USER_NONE;
	if (!number("SUDO_GID", &gid)) {
		const struct passwd *p = getpwuid((uid_t)uid);

		if (!p || getenv("SUDO_GID"))
			return -EINVAL;
		gid = p->pw_gid;
	}
	*ret_uid = (uid_t)uid;
	*ret_gid = (gid_t)gid;
	return 0;
}

int user_become(struct user *u)
{
	uid_t uid;
	gid_t gid, groups[USER_GROUPS];
	int count = USER_GROUPS;

	u->changed = false;
	const int r = user_of_sudo(&uid, &gid);

	if (r)
		return r == USER_NONE ? 0 : r;
	const struct passwd *p = getpwuid(uid);

	if (!p || getgrouplist(p->pw_name, gid, groups, &count) < 0) {
		groups[0] = gid;
		count = 1;
	}
	u->count = getgroups(USER_GROUPS, u->groups);
	if (u->count < 0)
		return -errno;
	u->changed = true;
	if (setgroups((size_t)count, groups) < 0 || setegid(gid) < 0 || seteuid(uid) < 0)
		return -errno;
	return 0;
}

void user_return(const struct user *u)
{
	const int saved = errno;

	/* If we cannot become root again, exiting is safer than a half-changed identity. */
	if (u->changed &&
	    (seteuid(0) < 0 || setegid(getgid()) < 0 || setgroups((size_t)u->count, u->groups) < 0))
		abort();
	errno = saved;
}
