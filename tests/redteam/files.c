/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/redteam/attempts.h"

long open_secret(void)
{
	return CALL(SYS_openat, AT_FDCWD, takeover_orders->secret, O_RDONLY);
}

long open_secret_the_old_way(void)
{
	return CALL(SYS_open, takeover_orders->secret, O_RDONLY);
}

long open_with_openat2(void)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = { .flags = O_RDONLY };

	return CALL(SYS_openat2, AT_FDCWD, takeover_orders->secret, &how, sizeof(how));
}

long open_passwd(void)
{
	return CALL(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}

long open_root(void)
{
	return CALL(SYS_openat, AT_FDCWD, "/etc", O_RDONLY | O_DIRECTORY);
}

long open_path_only(void)
{
	return CALL(SYS_openat, AT_FDCWD, "/etc/passwd", O_PATH);
}

long open_proc(void)
{
	return CALL(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY);
}

long open_sysctl(void)
{
	return CALL(SYS_openat, AT_FDCWD, "/proc/sys/kernel/core_pattern", O_WRONLY);
}

long open_device(void)
{
	return CALL(SYS_openat, AT_FDCWD, "/dev/kmsg", O_RDWR);
}

long create_file(void)
{
	return CALL(SYS_openat, AT_FDCWD, "/dev/shm/redteam-was-here", O_CREAT | O_WRONLY, 0600);
}

long create_with_creat(void)
{
	return CALL(SYS_creat, "/dev/shm/redteam-was-here", 0600);
}

long open_world_writable(void)
{
	return CALL(SYS_openat, AT_FDCWD, takeover_orders->open_file, O_RDWR);
}

long open_by_handle(void)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[128];
	} h = { .bytes = 128 };
	int mount = 0;

	return CALL(SYS_name_to_handle_at, AT_FDCWD, "/etc/passwd", &h, &mount, 0);
}

long see_file(void)
{
	struct stat st;

	return CALL(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &st, 0);
}

long see_with_statx(void)
{
	char buffer[256];

	return CALL(SYS_statx, AT_FDCWD, "/etc/passwd", 0, 0x7ff, buffer);
}

long read_link(void)
{
	char buffer[256];

	return CALL(SYS_readlink, "/proc/self/exe", buffer, sizeof(buffer));
}

long ask_access(void)
{
	return CALL(SYS_access, "/etc/passwd", R_OK);
}

long change_folder(void)
{
	return CALL(SYS_chdir, "/etc");
}

long list_folder(void)
{
	char buffer[1024];

	const long fd = CALL(SYS_open, "/etc", O_RDONLY | O_DIRECTORY);

	return fd < 0 ? fd : CALL(SYS_getdents64, fd, buffer, sizeof(buffer));
}

long make_folder(void)
{
	return CALL(SYS_mkdir, "/dev/shm/redteam-folder", 0700);
}

long remove_file(void)
{
	return CALL(SYS_unlink, takeover_orders->open_file);
}

long rename_file(void)
{
	char path[160];

	return CALL(SYS_rename, takeover_orders->open_file, beside(path));
}

long link_file(void)
{
	char path[160];

	return CALL(SYS_link, takeover_orders->open_file, beside(path));
}

long link_symbolic(void)
{
	return CALL(SYS_symlink, "/etc/shadow", "/dev/shm/redteam-symlink");
}

long truncate_file(void)
{
	return CALL(SYS_truncate, takeover_orders->open_file, 0);
}

long change_mode(void)
{
	return CALL(SYS_chmod, takeover_orders->open_file, 04755);
}

long make_node(void)
{
	return CALL(SYS_mknod, "/dev/shm/redteam-fifo", S_IFIFO | 0600, 0);
}

long watch_file(void)
{
	const long fd = CALL(SYS_inotify_init1, 0);

	return fd < 0 ? fd : CALL(SYS_inotify_add_watch, fd, "/etc", 2);
}

long make_memfd(void)
{
	return CALL(SYS_memfd_create, "redteam", 0);
}

long make_secret_memfd(void)
{
	return CALL(SYS_memfd_secret, 0);
}

AS_CALL(open_terminal, SYS_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY)

/* --- a folder that is still open --- */

AS_CALL(open_in_folder, SYS_openat, takeover_folder, "open", O_RDWR)
AS_CALL(open_above_folder, SYS_openat, takeover_folder, "../orders", O_RDONLY)
AS_CALL(enter_folder, SYS_fchdir, takeover_folder)
AS_CALL(make_in_folder, SYS_mkdirat, takeover_folder, "made", 0700)
AS_CALL(rename_in_folder, SYS_renameat, takeover_folder, "open", takeover_folder, "open-too")
AS_CALL(link_out_of_folder, SYS_linkat, takeover_folder, "open", takeover_folder, "../linked", 0)
AS_CALL(remove_in_folder, SYS_unlinkat, takeover_folder, "open", 0)

long list_held_folder(void)
{
	char buffer[1024];

	return CALL(SYS_getdents64, takeover_folder, buffer, sizeof(buffer));
}

long execute_in_folder(void)
{
	char *const none[] = { NULL };

	return CALL(SYS_execveat, takeover_folder, "open", none, none, 0);
}
