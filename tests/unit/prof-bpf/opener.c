/* SPDX-License-Identifier: Apache-2.0 */
/* Which files are opened, and which are refused. */
#include "tests/unit/opener_fixture.h"
#include <sched.h>
#include <sys/mount.h>

TestSuite(opener, .init = set_up, .fini = clean_up);

Test(opener, regular_file_is_opened_with_its_identity)
{
	const char *path = path_of("a");
	struct stat st;

	write_file(path, "hello");
	struct opener_result r = open_path(path);
	cr_assert_eq(r.status, 0);
	cr_assert_eq(first_byte(&r), 'h');
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(r.file.inode, st.st_ino);
	cr_assert_eq(r.file.size, 5);
	cr_assert_eq(r.file.links, 1);
	cr_assert_eq(r.file.ctime_ns,
		     (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec);
	cr_assert(!r.file.memfd);
	cr_assert_eq(fcntl(r.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	cr_assert(fcntl(r.fd, F_GETFD) & FD_CLOEXEC);
	close(r.fd);
}

Test(opener, only_regular_files_are_opened)
{
	mkfifo(path_of("fifo"), 0600);
	cr_assert_eq(open_path(path_of("fifo")).status, OPENER_NOT_REGULAR);
	cr_assert_eq(open_path("/dev/null").status, OPENER_NOT_REGULAR);
	cr_assert_eq(open_path("/usr").status, OPENER_NOT_REGULAR);
	cr_assert_eq(open_path("/nonexistent").status, -ENOENT);
}

Test(opener, magic_links_are_refused)
{
	cr_assert_eq(open_path("/proc/self/exe").status, -ELOOP);
}

Test(opener, symbolic_links_do_not_leave_the_root_of_the_process)
{
	int fds[2];
	char c;

	mkdir(path_of("root"), 0755);
	write_file(path_of("root/secret"), "inside");
	write_file(path_of("secret"), "outside");
	cr_assert_eq(symlink("/../../secret", path_of("root/link")), 0);
	cr_assert_eq(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (chroot(path_of("root")) || chdir("/"))
			_exit(1);
		(void)!write(fds[1], "x", 1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(fds[0], &c, 1), 1);
	struct opener_request q = { .kind = OPENER_PATH,
				    .pid = (uint32_t)pid,
				    .path = STR_LIT("/link") };
	struct opener_result r;
	open_now(&q, &r);
	cr_assert_eq(r.status, 0);
	cr_assert_eq(first_byte(&r), 'i');
	close(r.fd);
	stop(pid);
}

Test(opener, deleted_and_replaced_file_is_opened_through_its_mapping)
{
	const char *path = path_of("lib");
	uint64_t at;

	write_file(path, "old");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	pid_t pid = start_mapper(fd, &at);
	close(fd);
	unlink(path);
	write_file(path, "new");
	struct opener_result r = open_mapped(pid, at);
	cr_assert_eq(r.status, 0);
	cr_assert_eq(first_byte(&r), 'o');
	cr_assert_eq(r.file.links, 0);
	close(r.fd);
	stop(pid);
}

Test(opener, memfd_is_handed_out_as_a_sealed_copy)
{
	uint64_t at;
	int fd = memfd_create("code", MFD_CLOEXEC);

	cr_assert_eq(write(fd, "\177ELF", 4), 4);
	pid_t pid = start_mapper(fd, &at);
	struct opener_result r = open_mapped(pid, at);
	cr_assert_eq(r.status, 0);
	cr_assert(r.file.memfd);
	cr_assert_eq(r.file.size, 4);
	/* A change of the original is not seen, and nobody can change the copy. */
	cr_assert_eq(pwrite(fd, "M", 1, 0), 1);
	cr_assert_eq(first_byte(&r), 0177);
	cr_assert_eq(fcntl(r.fd, F_GET_SEALS),
		     F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", r.fd);
	int writer = open(link, O_RDWR | O_CLOEXEC);
	cr_assert(writer < 0 || write(writer, "x", 1) < 0);
	struct stat original;
	cr_assert_eq(fstat(fd, &original), 0);
	cr_assert_eq(r.file.inode, original.st_ino);
	close(r.fd);
	close(fd);
	stop(pid);
}

Test(opener, memfd_of_generated_code_is_no_file)
{
	uint64_t at;
	int fd = memfd_create("doublemapper", MFD_CLOEXEC);

	cr_assert_eq(ftruncate(fd, 65536), 0);
	pid_t pid = start_mapper(fd, &at);
	cr_assert_eq(open_mapped(pid, at).status, OPENER_NO_PROGRAM);
	close(fd);
	stop(pid);
}

Test(opener, memfd_above_the_bound_is_refused)
{
	uint64_t at;
	int fd = memfd_create("large", MFD_CLOEXEC);

	cr_assert_eq(write(fd, "\177ELF", 4), 4);
	cr_assert_eq(ftruncate(fd, (off_t)OPENER_COPY_MAX + 1), 0);
	pid_t pid = start_mapper(fd, &at);
	cr_assert_eq(open_mapped(pid, at).status, OPENER_TOO_LARGE);
	close(fd);
	stop(pid);
}

Test(opener, path_stands_in_for_a_mapping_only_with_the_same_inode)
{
	const char *path = path_of("lib");
	struct stat st;

	write_file(path, "x");
	cr_assert_eq(stat(path, &st), 0);
	struct opener_request q = { .kind = OPENER_MAPPING,
				    .pid = (uint32_t)getpid(),
				    .start = 4096,
				    .end = 8192,
				    .path = str_from(path),
				    .dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev),
				    .inode = st.st_ino };
	struct opener_result r;
	open_now(&q, &r);
	cr_assert_eq(r.status, 0);
	close(r.fd);
	q.inode++;
	open_now(&q, &r);
	cr_assert_eq(r.status, OPENER_OTHER);
}

/* Where a process maps one file after another, a different one may be mapped by now. */
Test(opener, a_mapping_of_another_file_is_not_taken_for_the_one_that_was_there)
{
	const char *path = path_of("lib");
	struct stat st;
	uint64_t at;

	write_file(path, "old");
	cr_assert_eq(stat(path, &st), 0);
	write_file(path_of("other"), "new");
	int fd = open(path_of("other"), O_RDONLY | O_CLOEXEC);
	pid_t pid = start_mapper(fd, &at);
	close(fd);
	path = path_of("lib");
	struct opener_request q = { .kind = OPENER_MAPPING,
				    .pid = (uint32_t)pid,
				    .start = at,
				    .end = at + 4096,
				    .path = str_from(path),
				    .dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev),
				    .inode = st.st_ino };
	struct opener_result r;
	open_now(&q, &r);
	cr_assert_eq(r.status, 0);
	cr_assert_eq(first_byte(&r), 'o');
	close(r.fd);
	unlink(path);
	open_now(&q, &r);
	cr_assert_neq(r.status, 0);
	stop(pid);
}

static int fifth_byte(const struct opener_result *r)
{
	char c;

	return r->status == 0 && pread(r->fd, &c, 1, 4) == 1 ? c : -1;
}

Test(opener, debug_files_are_found_by_build_id_and_by_name)
{
	static const uint8_t id[] = { 0xab, 0xcd, 0xef };
	int fds[2];
	char c;

	/* Below another root, since the test may not write to /usr/lib/debug. */
	char command[1024];
	snprintf(command, sizeof(command),
		 "cd %s && umask 022 && mkdir -p r/usr/lib/debug/.build-id/ab "
		 "r/usr/lib/debug/opt/x r/opt/x/.debug && e() { printf '\\177ELF%%s' $1; } && "
		 "e 1 >r/usr/lib/debug/.build-id/ab/cdef.debug && e 2 >r/opt/x/.debug/p.debug && "
		 "e 3 >r/usr/lib/debug/opt/x/q.debug && e 4 >r/opt/x/s.debug && e 5 >r/opt/x/p && "
		 "ln -s /etc r/opt/x/.debug/d && echo key >r/opt/x/secret && "
		 "e 6 >r/opt/x/private && chmod 600 r/opt/x/private",
		 dir);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (chroot(path_of("r")) || chdir("/"))
			_exit(1);
		(void)!write(fds[1], "x", 1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(fds[0], &c, 1), 1);
	struct opener_result r;
	struct opener_request q = { .kind = OPENER_BUILD_ID,
				    .pid = (uint32_t)pid,
				    .build_id = { .data = id, .len = 3 } };
	open_now(&q, &r);
	cr_assert_eq(fifth_byte(&r), '1');
	close(r.fd);
	static const struct {
		const char *name;
		int first;
	} by_name[] = { { "p.debug", '2' },
			{ "q.debug", '3' },
			{ "s.debug", '4' },
			{ "none", -1 },
			{ "p", -1 },
			{ "d", -1 },
			/* A file that is not ELF, and one that not everybody may read. */
			{ "secret", -1 },
			{ "private", -1 } };
	for (size_t i = 0; i < sizeof(by_name) / sizeof(by_name[0]); i++) {
		q = (struct opener_request){ .kind = OPENER_DEBUGLINK,
					     .pid = (uint32_t)pid,
					     .path = STR_LIT("/opt/x/p"),
					     .name = str_from(by_name[i].name) };
		open_now(&q, &r);
		cr_assert_eq(fifth_byte(&r), by_name[i].first, "%s", by_name[i].name);
		if (r.fd >= 0)
			close(r.fd);
	}
	/* Debug files that several share are found by build id, else by path. */
	static const struct {
		const char *name;
		int first;
	} shared[] = { { "q.debug", '3' },
		       { ".debug/p.debug", '2' },
		       { "/opt/x/.debug/p.debug", '2' },
		       { "../x/.debug/p.debug", '2' },
		       { "secret", -1 },
		       { "/opt/x/private", -1 },
		       { "/none", -1 } };
	const uint8_t other[] = { 9, 9, 9 };

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		struct opener_request alt = { .kind = OPENER_ALT,
					      .pid = (uint32_t)pid,
					      .path = STR_LIT("/opt/x/p"),
					      .name = str_from(shared[i].name),
					      .build_id = { .data = other, .len = 3 } };

		open_now(&alt, &r);
		cr_assert_eq(fifth_byte(&r), shared[i].first, "%s", shared[i].name);
		if (r.fd >= 0)
			close(r.fd);
		alt.build_id = (struct span){ .data = id, .len = 3 };
		open_now(&alt, &r);
		cr_assert_eq(fifth_byte(&r), '1');
		close(r.fd);
	}
	/* Another user's: a process that maps a file of root does not decide its contents. */
	cr_assert_eq(chown(path_of("r/opt/x/.debug/p.debug"), 1234, 1234), 0);
	q.name = STR_LIT("p.debug");
	open_now(&q, &r);
	cr_assert_eq(r.status, OPENER_REFUSED);
	q.owner = 1234;
	open_now(&q, &r);
	cr_assert_eq(fifth_byte(&r), '2');
	close(r.fd);
	stop(pid);
}

/* A child with a file of proc in places where debug files are looked for, in its own namespace. */
static pid_t start_mounter(void)
{
	static const char *const at[] = { "r/usr/lib/debug/.build-id/ab/cdef.debug",
					  "r/opt/x/p.debug", "r/opt/x/p" };
	char command[512], c = 0;
	int fds[2];

	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p r/usr/lib/debug/.build-id/ab r/opt/x r/proc && "
		 "touch r/usr/lib/debug/.build-id/ab/cdef.debug r/opt/x/p.debug r/opt/x/p",
		 dir);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(pipe(fds), 0);
	const pid_t pid = fork();

	if (pid == 0) {
		bool ok = !unshare(CLONE_NEWNS) &&
			  !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
			  !mount("/proc", path_of("r/proc"), NULL, MS_BIND, NULL);

		for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
			ok = ok && !mount("/proc/self/maps", path_of(at[i]), NULL, MS_BIND, NULL);
		if (!ok || chroot(path_of("r")) || chdir("/"))
			_exit(1);
		(void)!write(fds[1], "x", 1);
		for (;;)
			pause();
	}
	close(fds[1]);
	cr_assert_eq(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

Test(opener, files_that_the_kernel_makes_are_never_opened)
{
	static const uint8_t id[] = { 0xab, 0xcd, 0xef };
	static struct mounts mounts;
	const pid_t pid = start_mounter();
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/opt/x", pid);
	const int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct opener_request q[] = {
		{ .kind = OPENER_BUILD_ID, .build_id = { .data = id, .len = 3 } },
		{ .kind = OPENER_DEBUGLINK,
		  .path = STR_LIT("/opt/x/p"),
		  .name = STR_LIT("p.debug") },
		{ .kind = OPENER_PATH, .path = STR_LIT("/opt/x/p") },
		{ .kind = OPENER_PATH, .path = STR_LIT("/proc/self/maps") },
		{ .kind = OPENER_FOLDER, .path = STR_LIT("/proc") },
		{ .kind = OPENER_IN_FOLDER, .folder = folder, .path = STR_LIT("p") },
	};

	mounts_init(&mounts, proc);
	for (size_t i = 0; i < 2 * sizeof(q) / sizeof(q[0]); i++) {
		struct opening o = { .proc = proc,
				     .mounts = &mounts,
				     .may_copy = i % 2,
				     .copy_max = OPENER_COPY_MAX };
		struct opener_request now = q[i / 2];
		struct opener_result r;

		now.pid = (uint32_t)pid;
		now.name.data = now.name.len ? now.name.data : "";
		now.path.data = now.path.len ? now.path.data : "";
		opening_run(&o, &now, &r);
		cr_expect_eq(r.status, OPENER_REFUSED, "%zu: %d", i, r.status);
		if (r.fd >= 0)
			close(r.fd);
	}
	close(folder);
	stop(pid);
}

Test(opener, names_that_lead_elsewhere_are_refused)
{
	static const char *const bad[] = { "../x", "a/b", "..", ".", "", "/etc/passwd" };
	static const uint8_t id[1] = { 1 };
	struct opener_result r;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct opener_request q = { .kind = OPENER_DEBUGLINK,
					    .path = STR_LIT("/usr/bin/true"),
					    .name = str_from(bad[i]) };

		open_now(&q, &r);
		cr_assert_eq(r.status, -EINVAL, "%s", bad[i]);
	}
	struct opener_request nul = { .kind = OPENER_DEBUGLINK,
				      .path = STR_LIT("/usr/bin/true"),
				      .name = { .data = "a\0b", .len = 3 } };
	open_now(&nul, &r);
	cr_assert_eq(r.status, -EINVAL);
	struct opener_request short_id = { .kind = OPENER_BUILD_ID,
					   .build_id = { .data = id, .len = 1 } };
	open_now(&short_id, &r);
	cr_assert_eq(r.status, -EINVAL);
	struct opener_request relative = { .kind = OPENER_PATH, .path = STR_LIT("etc/passwd") };
	open_now(&relative, &r);
	cr_assert_eq(r.status, -EINVAL);
}

Test(opener, a_debug_file_below_a_closed_folder_is_not_given)
{
	char command[1024];
	struct opener_request q = { .kind = OPENER_DEBUGLINK, .name = STR_LIT("p.debug") };
	char path[300];

	snprintf(command, sizeof(command),
		 "cd %s && chmod 755 . && umask 022 && mkdir closed && "
		 "printf '\\177ELF1' >closed/p.debug && chown 1234 closed && chmod 700 closed",
		 dir);
	cr_assert_eq(system(command), 0);
	snprintf(path, sizeof(path), "%s/closed/p", dir);
	q.path = str_from(path);
	start();
	cr_assert_eq(ask(&q, 3000).status, -EACCES);
	/* Its own files are opened anyway. */
	struct opener_request file = { .kind = OPENER_PATH };
	snprintf(path, sizeof(path), "%s/closed/p.debug", dir);
	file.path = str_from(path);
	struct opener_result r = ask(&file, 3000);
	cr_assert_eq(r.status, 0);
	close(r.fd);
	cr_assert_eq(chmod(path_of("closed"), 0755), 0);
	r = ask(&q, 3000);
	cr_assert_eq(r.status, 0);
	close(r.fd);
	finish();
}

/* --- files that a process wrote about itself --- */

static struct opener_request theirs(const char *path, uint32_t uid, uint64_t since_ns)
{
	return (struct opener_request){ .kind = OPENER_PATH,
					.pid = (uint32_t)getpid(),
					.path = str_from(path),
					.by_users = true,
					.uids = { uid, uid },
					.since_ns = since_ns };
}

static int status_of(struct opener_request q)
{
	struct opener_result r;

	open_now(&q, &r);
	if (r.fd >= 0)
		close(r.fd);
	return r.status;
}

Test(opener, a_file_of_theirs_is_their_users_or_roots_alone)
{
	const char *path = path_of("perf-1.map"), *link_path = path_of("perf-2.map");

	write_file(path, "1000 10 f");
	cr_assert_eq(chmod(path, 0600), 0);
	cr_expect_eq(status_of(theirs(path, getuid(), 0)), 0);
	/* Owned by us, requested for a process of another user. */
	cr_expect_eq(status_of(theirs(path, getuid() + 1, 0)), OPENER_REFUSED, "not for everybody");
	cr_assert_eq(chmod(path, 0644), 0);
	cr_expect_eq(status_of(theirs(path, getuid() + 1, 0)), getuid() == 0 ? 0 : OPENER_REFUSED);
	cr_assert_eq(link(path, link_path), 0);
	cr_expect_eq(status_of(theirs(link_path, getuid() + 1, 0)), OPENER_REFUSED,
		     "one of two names");
	cr_expect_eq(status_of(theirs(link_path, getuid(), 0)), 0);
}

Test(opener, a_file_of_theirs_is_no_link_and_no_pipe)
{
	const char *path = path_of("file"), *link_path = path_of("perf-1.map"),
		   *pipe_path = path_of("perf-2.map");

	write_file(path, "1000 10 f");
	cr_assert_eq(symlink(path, link_path), 0);
	cr_assert_eq(mkfifo(pipe_path, 0600), 0);
	cr_expect_eq(status_of(theirs(link_path, getuid(), 0)), OPENER_NOT_REGULAR);
	cr_expect_eq(status_of(theirs(pipe_path, getuid(), 0)), OPENER_NOT_REGULAR);
}

/* A refused jitdump is not given in another way, such as from the memory of the process that maps
 * it. */
Test(opener, a_mapped_file_of_theirs_that_is_refused_is_not_copied)
{
	const char *path = path_of("jit-1.dump");
	uint64_t at;
	struct stat st;

	write_file(path, "JiTD");
	cr_assert_eq(chmod(path, 0600), 0);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(fstat(fd, &st), 0);
	pid_t pid = start_mapper(fd, &at);
	close(fd);
	struct opener_request q = { .kind = OPENER_MAPPING,
				    .pid = (uint32_t)pid,
				    .start = at,
				    .end = at + 4096,
				    .dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev),
				    .inode = st.st_ino,
				    .by_users = true,
				    .uids = { 1234, 1234 } };
	cr_expect_eq(status_of(q), OPENER_REFUSED);
	q.uids[0] = getuid();
	cr_expect_eq(status_of(q), 0);
	stop(pid);
}

Test(opener, a_file_of_theirs_is_younger_than_they_are)
{
	const char *path = path_of("perf-1.map");
	uint64_t now_ns = clock_wall_ns();

	write_file(path, "1000 10 f");
	cr_expect_eq(status_of(theirs(path, getuid(), now_ns)), 0);
	cr_expect_eq(status_of(theirs(path, getuid(), now_ns + 3600000000000u)), OPENER_REFUSED);
}
