/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"

static int parse(const char *text, struct procfs_mapping *ret)
{
	static char line[PROCFS_LINE_MAX + 1];
	size_t n = strlen(text);

	memcpy(line, text, n + 1);
	return procfs_parse_mapping(line, n, ret);
}

Test(procfs, line_of_a_library_is_taken_apart)
{
	struct procfs_mapping m;

	cr_assert_eq(
		parse("7f0000001000-7f0000003000 r-xp 00026000 fe:01 326269                     "
		      "/usr/lib/libc.so.6",
		      &m),
		0);
	cr_assert_eq(m.start, 0x7f0000001000);
	cr_assert_eq(m.end, 0x7f0000003000);
	cr_assert_eq(m.offset, 0x26000);
	cr_assert_eq(m.dev_major, 0xfe);
	cr_assert_eq(m.dev_minor, 1);
	cr_assert_eq(m.inode, 326269);
	cr_assert_eq(m.kind, PROCFS_FILE);
	cr_assert(str_eq(m.name, STR_LIT("/usr/lib/libc.so.6")));
	cr_assert(!m.deleted);
}

Test(procfs, mapping_without_execution_is_skipped)
{
	struct procfs_mapping m;

	cr_assert_eq(
		parse("7f0000001000-7f0000003000 rw-p 00026000 fe:01 326269 /usr/lib/libc.so.6",
		      &m),
		PROCFS_SKIP);
}

Test(procfs, deleted_suffix_is_taken_off_once)
{
	struct procfs_mapping m;

	cr_assert_eq(parse("1000-2000 r-xp 00000000 fe:01 12 /tmp/a (deleted) (deleted)", &m), 0);
	cr_assert(m.deleted);
	cr_assert(str_eq(m.name, STR_LIT("/tmp/a (deleted)")));
}

Test(procfs, line_feed_in_a_path_is_unescaped)
{
	struct procfs_mapping m;

	cr_assert_eq(parse("1000-2000 r-xp 00000000 fe:01 12 /tmp/a\\012b\\01", &m), 0);
	cr_assert(str_eq(m.name, STR_LIT("/tmp/a\nb\\01")));
}

Test(procfs, special_names_are_told_apart)
{
	static const struct {
		const char *line;
		enum procfs_name kind;
	} cases[] = {
		{ "1000-2000 r-xp 00000000 00:00 0 [vdso]", PROCFS_VDSO },
		{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]",
		  PROCFS_VSYSCALL },
		{ "1000-2000 r-xp 00000000 00:00 0 [uprobes]", PROCFS_UPROBES },
		{ "1000-2000 r-xp 00000000 00:00 0", PROCFS_ANON },
		{ "1000-2000 r-xp 00000000 00:00 0 ", PROCFS_ANON },
		{ "1000-2000 r-xp 00000000 00:00 0 [anon:jit]", PROCFS_ANON },
		{ "1000-2000 r-xp 00000000 00:00 0 //anon", PROCFS_ANON },
		{ "1000-2000 r-xs 00000000 00:01 1031 /memfd:code (deleted)", PROCFS_FILE },
		{ "1000-2000 r-xs 00000000 00:01 1031 /dev/zero (deleted)", PROCFS_FILE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct procfs_mapping m;

		cr_assert_eq(parse(cases[i].line, &m), 0, "%s", cases[i].line);
		cr_assert_eq(m.kind, cases[i].kind, "%s", cases[i].line);
	}
}

Test(procfs, malformed_lines_are_refused)
{
	static const char *const bad[] = {
		"",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 r-xp",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"10000000000000000-2 r-xp 0 0:0 0",
		"1000-2000 r-xp zz 0:0 0",
		"1000-2000 r-xp 0 0 0",
		"1000-2000 r-xp 0 100000000:0 0",
		"1000-2000 r-xp 0 0:0 99999999999999999999",
		"-2000 r-xp 0 0:0 0",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct procfs_mapping m;

		cr_assert_eq(parse(bad[i], &m), PROCFS_MALFORMED, "%s", bad[i]);
	}
}

/* --- streams --- */

struct text {
	const char *at;
	size_t len, piece;
};

static ssize_t read_text(void *ctx, void *to, size_t n)
{
	struct text *t = ctx;

	if (n > t->piece)
		n = t->piece;
	if (n > t->len)
		n = t->len;
	memcpy(to, t->at, n);
	t->at += n;
	t->len -= n;
	return (ssize_t)n;
}

static void count(void *ctx, const struct procfs_mapping *m)
{
	uint64_t *sum = ctx;

	*sum += m->start;
}

Test(procfs, pieces_of_any_size_give_the_same)
{
	static const char text[] =
		"1000-2000 r-xp 00000000 fe:01 12 /a\n2000-3000 r--p 00000000 fe:01 12 /a\n"
		"rubbish\n3000-4000 r-xp 00000000 fe:01 12 /a\n5000-6000 --xp 0 0:0 0\n"
		"7000-8000 r-xp 0 0:0 0 unfinished";

	for (size_t piece = 1; piece < sizeof(text); piece++) {
		struct text t = { .at = text, .len = sizeof(text) - 1, .piece = piece };
		uint64_t sum = 0;

		cr_assert_eq(
			procfs_stream_maps((struct procfs_source){ .read = read_text, .ctx = &t },
					   100, count, &sum),
			3);
		cr_assert_eq(sum, 0x1000 + 0x3000 + 0x5000);
	}
}

Test(procfs, endless_line_is_skipped_and_the_next_is_found)
{
	size_t long_len = 200000;
	char *text = malloc(long_len + 100);

	memset(text, '7', long_len);
	strcpy(text + long_len, "\n1000-2000 r-xp 0 0:0 0\n");
	struct text t = { .at = text, .len = strlen(text), .piece = 5000 };
	uint64_t sum = 0;
	cr_assert_eq(procfs_stream_maps((struct procfs_source){ .read = read_text, .ctx = &t }, 100,
					count, &sum),
		     1);
	cr_assert_eq(sum, 0x1000);
	free(text);
}

Test(procfs, ceiling_of_mappings_is_kept)
{
	static const char text[] =
		"1000-2000 r-xp 0 0:0 0\n3000-4000 r-xp 0 0:0 0\n5000-6000 r-xp 0 0:0 0\n";
	struct text t = { .at = text, .len = sizeof(text) - 1, .piece = 1000 };
	uint64_t sum = 0;

	cr_assert_eq(procfs_stream_maps((struct procfs_source){ .read = read_text, .ctx = &t }, 2,
					count, &sum),
		     2);
}

/* --- stat and status --- */

#define STAT_REST " S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 123456 10 20 30"

static int parse_stat(const char *text, struct procfs_stat *ret)
{
	return procfs_parse_stat(
		(struct span){ .data = (const uint8_t *)text, .len = strlen(text) }, ret);
}

Test(procfs, name_with_parentheses_and_blanks_is_whole)
{
	struct procfs_stat st;

	cr_assert_eq(parse_stat("42 (a) S 1 (b)" STAT_REST, &st), 0);
	cr_assert_eq(st.pid, 42);
	cr_assert_eq(st.parent_pid, 7);
	cr_assert_eq(st.threads, 3);
	cr_assert_eq(st.state, 'S');
	cr_assert_eq(st.start_ns, 123456ull * PROCFS_TICK_NS);
	cr_assert_eq(st.comm_len, 9);
	cr_assert_arr_eq(st.comm, "a) S 1 (b", 9);
	cr_assert(!st.kernel);
}

Test(procfs, escapes_in_a_name_are_undone)
{
	struct procfs_stat st;

	cr_assert_eq(parse_stat("42 (a\\nb\\\\)" STAT_REST, &st), 0);
	cr_assert_eq(st.comm_len, 4);
	cr_assert_arr_eq(st.comm, "a\nb\\", 4);
}

Test(procfs, kernel_thread_is_known_by_its_flag)
{
	struct procfs_stat st;

	cr_assert_eq(
		parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0 0",
			   &st),
		0);
	cr_assert(st.kernel);
}

Test(procfs, stat_has_the_cpu_time_of_a_process_and_its_reaped_children)
{
	struct procfs_stat st;

	cr_assert_eq(parse_stat("7 (a) S 1 7 7 0 -1 0 9 9 9 9 1 20 300 4000 20 0 1 0 5 0 0", &st),
		     0);
	cr_assert_eq(st.cpu_ns, 4321ull * PROCFS_TICK_NS);
}

Test(procfs, malformed_stat_is_refused)
{
	static const char *const bad[] = {
		"",
		"42",
		"42 (",
		"42 ()",
		"42 (a",
		"42 (a) S",
		"42 (a) S 1 2 3",
		"x (a)" STAT_REST,
		"4294967296 (a)" STAT_REST,
		"42 (a) S 1 1 1 0 -1 1 1 2 3 4 5 6 7 8 20 0 3 0 99999999999999999999 1"
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct procfs_stat st;

		cr_assert_eq(parse_stat(bad[i], &st), PROCFS_MALFORMED, "%s", bad[i]);
	}
}

Test(procfs, uid_line_in_a_name_is_not_taken)
{
	static const char text[] =
		"Name:\tx\\nUid:\t1\t1\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n";
	uint32_t uid = 0;

	cr_assert_eq(procfs_parse_status_uid((struct span){ .data = (const uint8_t *)text,
							    .len = sizeof(text) - 1 },
					     &uid),
		     0);
	cr_assert_eq(uid, 1000);
}

static void expect_cgroup(const char *text, const char *path, bool is_unified)
{
	struct str found = { 0 };
	bool unified = false;
	const int r = procfs_parse_cgroup(str_from(text), &found, &unified);

	cr_expect_eq(r, path ? 0 : PROCFS_SKIP, "%s", text);
	cr_expect(!path || str_eq(found, str_from(path)), "%s: %.*s", text, (int)found.len,
		  found.data);
	cr_expect_eq(unified, is_unified, "%s", text);
}

Test(procfs, cgroup_is_the_one_that_says_most)
{
	expect_cgroup("0::/system.slice/x.service\n", "/system.slice/x.service", true);
	expect_cgroup("0::/\n", "/", true);
	expect_cgroup("0::/a.scope (deleted)\n", "/a.scope", true);
	expect_cgroup("0::/../../other\n", "/../../other", true);
	expect_cgroup("0::/a:b\n", "/a:b", true);
	/* Version 1, and both at once. */
	expect_cgroup("12:cpu,cpuacct:/docker/1\n1:name=systemd:/docker/2\n0::/\n", "/docker/2",
		      false);
	expect_cgroup("12:cpu,cpuacct:/docker/1\n1:name=systemd:/\n", "/docker/1", false);
	expect_cgroup("1:name=systemd:/x\n0::/y\n", "/y", true);
	expect_cgroup("1:name=systemd:/\n0::/\n", "/", true);
	/* A line without its end was cut. */
	expect_cgroup("0::/with-no-line-feed", "/with-no-line-feed", true);
	expect_cgroup("", NULL, false);
	expect_cgroup("0:\n", NULL, false);
	expect_cgroup("0::\n:\n\n", NULL, false);
	expect_cgroup("nonsense\n", NULL, false);
}

Test(procfs, ids_are_the_innermost)
{
	static const char nested[] =
		"Name:\tx\nPid:\t900\nUid:\t1000\t7\t0\t0\nNStgid:\t900\t3\nNSpid:\t900\t30\t3\n";
	static const char plain[] = "Name:\tx\nPid:\t900\nUid:\t1000\t7\t0\t0\n";
	static const char bad[] = "Uid:\t1\t1\nNSpid:\t900\t\n";
	struct procfs_ids ids;

	cr_assert_eq(procfs_parse_status_ids(
			     (struct span){ (const uint8_t *)nested, sizeof(nested) - 1 }, &ids),
		     0);
	cr_expect_eq(ids.uid, 1000);
	cr_expect_eq(ids.effective_uid, 7);
	cr_expect_eq(ids.inner_pid, 3);
	cr_assert_eq(procfs_parse_status_ids(
			     (struct span){ (const uint8_t *)plain, sizeof(plain) - 1 }, &ids),
		     0);
	cr_expect_eq(ids.inner_pid, 900);
	cr_expect_eq(procfs_parse_status_ids((struct span){ (const uint8_t *)bad, sizeof(bad) - 1 },
					     &ids),
		     PROCFS_MALFORMED);
}

/* --- ourselves --- */

static void find_self(void *ctx, const struct procfs_mapping *m)
{
	uintptr_t here = (uintptr_t)&find_self;
	struct procfs_mapping *ret = ctx;

	if (m->start <= here && here < m->end)
		*ret = *m;
}

static void find_pid(void *ctx, uint32_t pid)
{
	bool *found = ctx;

	*found |= pid == (uint32_t)getpid();
}

Test(procfs, our_own_process_is_read_right)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY);
	struct procfs_mapping self = { 0 };
	struct procfs_stat st;
	struct stat file;
	uint32_t uid;
	bool found = false;

	prctl(PR_SET_NAME, ") S 1 ((\n\\");
	cr_assert_gt(procfs_read_maps(proc, (uint32_t)getpid(), 1000, find_self, &self), 3);
	cr_assert_eq(stat("/proc/self/exe", &file), 0);
	cr_assert_eq(self.inode, file.st_ino);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq((i ? procfs_read_stat
				: procfs_read_thread_stat)(proc, (uint32_t)getpid(), &st),
			     0);
		cr_assert_eq(st.pid, getpid());
		cr_assert_eq(st.parent_pid, getppid());
		cr_assert_geq(st.threads, 1);
		cr_assert_eq(st.comm_len, 10);
		cr_assert_arr_eq(st.comm, ") S 1 ((\n\\", 10);
	}
	uint64_t boot = clock_ns(CLOCK_BOOTTIME);
	cr_assert(st.start_ns <= boot && boot - st.start_ns < 300000000000ull);
	cr_assert_eq(procfs_read_uid(proc, (uint32_t)getpid(), &uid), 0);
	cr_assert_eq(uid, getuid());
	cr_assert_eq(procfs_each(proc, find_pid, &found), 0);
	cr_assert(found);
	cr_assert_eq(procfs_read_stat(proc, 0x7ffffff0, &st), -ENOENT);
	close(proc);
}
