/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include "tests/redteam/attempts.h"

long become_root(void)
{
	/* Proves nothing for a process that is already root; the control shows that. */
	return CALL(SYS_setresuid, 0, 0, 0);
}

long take_groups(void)
{
	const gid_t g = 0;

	return CALL(SYS_setgroups, 1, &g);
}

long take_capabilities(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { .effective = 1u << CAP_SYS_PTRACE,
						 .permitted = 1u << CAP_SYS_PTRACE } };

	return CALL(SYS_capset, &h, d);
}

long become_dumpable(void)
{
	return CALL(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
}

long keep_capabilities(void)
{
	return CALL(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0);
}

long new_user_namespace(void)
{
	return CALL(SYS_unshare, CLONE_NEWUSER);
}

long new_mount_namespace(void)
{
	return CALL(SYS_unshare, CLONE_NEWNS);
}

long enter_namespace(void)
{
	const long fd = CALL(SYS_pidfd_open, takeover_orders->victim, 0);

	return fd < 0 ? fd : CALL(SYS_setns, fd, CLONE_NEWUTS);
}

long change_root(void)
{
	return CALL(SYS_chroot, "/dev/shm");
}

long mount_something(void)
{
	return CALL(SYS_mount, "none", "/dev/shm", "tmpfs", 0, 0);
}

long remount_root(void)
{
	return CALL(SYS_mount, "none", "/", 0, MS_REMOUNT | MS_BIND, 0);
}

long unmount_root(void)
{
	return CALL(SYS_umount2, "/proc", MNT_DETACH);
}

long mount_by_descriptor(void)
{
	return CALL(SYS_fsopen, "tmpfs", 0);
}

long clone_tree(void)
{
	return CALL(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */);
}

long raise_limit(void)
{
	struct rlimit l;

	CALL(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &l);
	l.rlim_cur = l.rlim_max = l.rlim_max + 1;
	return CALL(SYS_prlimit64, 0, RLIMIT_NOFILE, &l, 0);
}

long change_personality(void)
{
	return CALL(SYS_personality, 0x0040000 /* ADDR_NO_RANDOMIZE */);
}

long change_segments(void)
{
	static char page[4096];

	return CALL(SYS_modify_ldt, 0, page, sizeof(page));
}

/* Calls of the i386 ABI have other numbers, so they pass a filter that checks only numbers. 5 is
 * open there. The path need not be below 4 GiB; the call itself must be refused. */
long other_abi(void)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L /* getpid */) : "memory");
	return r;
}

/* The same for calls of x32. */
long x32_abi(void)
{
	return CALL(0x40000000 | SYS_getpid);
}
