/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/outfile.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRANGER 62001
#define USER 61001

static char folder[32];

static void enter(void)
{
	strcpy(folder, "/tmp/outfile-XXXXXX");
	cr_assert(mkdtemp(folder));
	cr_assert_eq(chdir(folder), 0);
	umask(022);
}

static void leave(void)
{
	char command[64];

	cr_assert_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(outfile, .init = enter, .fini = leave);

static void be(uid_t uid)
{
	cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(seteuid(uid), 0);
}

/* Without the right to become other users, these tests fail: they must not be skipped unnoticed. */
static void need_root(void)
{
	cr_assert_eq(geteuid(), 0, "run this as root: it takes the part of other users");
}

static void make(const char *name, mode_t mode, const char *text)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

static int begin(struct outfile *o, const char *path, bool grows)
{
	return outfile_open(o, path, &(struct outfile_how){ .mode = OUTFILE_MODE, .grows = grows });
}

static void put(struct outfile *o, const char *text)
{
	cr_assert_eq(write(o->fd, text, strlen(text)), (ssize_t)strlen(text));
}

static struct stat at(const char *name)
{
	struct stat st = { 0 };

	cr_assert_eq(lstat(name, &st), 0, "%s: %s", name, strerror(errno));
	return st;
}

static bool is_there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

static size_t count_files(void)
{
	DIR *d = opendir(".");
	size_t n = 0;

	cr_assert(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

static void expect_text(const char *name, const char *text)
{
	char got[64] = "";
	const int fd = open(name, O_RDONLY);

	cr_assert(fd >= 0);
	cr_assert(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	cr_expect_str_eq(got, text);
}

Test(outfile, a_new_file_is_its_owners_and_has_no_name_until_it_is_whole)
{
	struct outfile o;

	umask(0);
	cr_assert_eq(begin(&o, "x", false), 0);
	put(&o, "new");
	cr_expect_eq(count_files(), 0);
	cr_assert_eq(outfile_end(&o, true), 0);
	cr_expect_eq(at("x").st_mode & 07777, 0600);
	cr_expect_eq(count_files(), 1);
	expect_text("x", "new");
}

Test(outfile, an_incomplete_file_is_removed)
{
	struct outfile o;

	for (int how = 0; how < 2; how++) {
		cr_assert_eq(begin(&o, "x", false), 0);
		put(&o, "half");
		if (how)
			outfile_drop(&o);
		else
			cr_assert_eq(outfile_end(&o, false), 0);
		cr_expect_eq(count_files(), 0);
	}
}

Test(outfile, the_mode_is_the_one_that_was_asked_for)
{
	struct outfile o;

	umask(077);
	make("old", 0604, "old");
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "old" : "new";

		cr_assert_eq(outfile_open(&o, name, &(struct outfile_how){ .mode = 0640 }), 0);
		cr_assert_eq(outfile_end(&o, true), 0);
		cr_expect_eq(at(name).st_mode & 07777, 0640);
	}
}

Test(outfile, an_old_file_keeps_its_contents_until_another_takes_its_place)
{
	struct outfile o;

	for (int grows = 0; grows < 2; grows++) {
		unlink("x");
		make("x", 0666, "old and longer");
		const ino_t old = at("x").st_ino;

		cr_assert_eq(link("x", "other"), 0);
		cr_assert_eq(begin(&o, "x", grows), 0);
		put(&o, "new");
		expect_text("x", "old and longer");
		cr_assert_eq(outfile_end(&o, true), 0);
		expect_text("x", "new");
		expect_text("other", "old and longer");
		cr_expect_neq(at("x").st_ino, old);
		cr_expect_eq(at("x").st_mode & 07777, 0600);
		cr_assert_eq(unlink("other"), 0);
	}
}

Test(outfile, one_that_grows_has_its_name_at_once)
{
	struct outfile o;

	cr_assert_eq(begin(&o, "x", true), 0);
	cr_expect_eq(at("x").st_mode & 07777, 0600);
	put(&o, "line");
	expect_text("x", "line");
	cr_assert_eq(outfile_end(&o, false), 0);
	expect_text("x", "line");
	unlink("x");
	cr_assert_eq(begin(&o, "x", true), 0);
	outfile_drop(&o);
	cr_expect_eq(count_files(), 0);
}

Test(outfile, links_and_folders_are_refused)
{
	struct outfile o;

	make("victim", 0600, "precious");
	cr_assert_eq(symlink("victim", "link"), 0);
	cr_assert_eq(symlink("nowhere", "dangling"), 0);
	cr_assert_eq(symlink(".", "behind"), 0);
	cr_assert_eq(mkdir("folder", 0700), 0);
	cr_expect_eq(begin(&o, "link", true), -ELOOP);
	cr_expect_eq(begin(&o, "dangling", true), -ELOOP);
	cr_expect_eq(begin(&o, "behind/x", true), -ELOOP);
	cr_expect_eq(begin(&o, "folder", true), -EISDIR);
	cr_expect_eq(begin(&o, "folder/", true), -EISDIR);
	cr_expect_eq(begin(&o, ".", true), -EISDIR);
	cr_expect_eq(begin(&o, "", true), -ENOENT);
	cr_expect_eq(begin(&o, "nowhere/x", true), -ENOENT);
	cr_expect_eq(o.fd, -1);
	expect_text("victim", "precious");
	cr_expect_eq(count_files(), 5);
}

Test(outfile, two_names_of_one_output_are_found)
{
	struct outfile a, b, c;
	char path[64];

	snprintf(path, sizeof(path), "%s/x", folder);
	cr_assert_eq(begin(&a, "x", false), 0);
	cr_assert_eq(begin(&b, path, false), 0);
	cr_assert_eq(begin(&c, "y", false), 0);
	cr_expect(outfile_same(&a, &b));
	cr_expect(!outfile_same(&a, &c));
	outfile_drop(&a);
	outfile_drop(&b);
	outfile_drop(&c);
}

/* --- strangers --- */

static void in_a_sticky_folder(void)
{
	need_root();
	cr_assert_eq(chmod(".", 01777), 0);
	be(STRANGER);
}

Test(outfile, a_strangers_file_in_a_sticky_folder_gets_nothing)
{
	static const char *const texts[] = { "", "something" };
	struct outfile o;

	need_root();
	for (int grows = 0; grows < 2; grows++) {
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			in_a_sticky_folder();
			make("x", 0666, texts[i]);
			const int watched = open("x", O_RDONLY);
			char got[8];

			be(USER);
			cr_expect_eq(begin(&o, "x", grows), -EKEYREJECTED);
			be(0);
			cr_assert_eq(begin(&o, "x", grows), 0);
			put(&o, "secret");
			cr_assert_eq(outfile_end(&o, true), 0);
			cr_expect_eq(at("x").st_uid, 0);
			cr_expect_eq(at("x").st_mode & 07777, 0600);
			expect_text("x", "secret");
			cr_expect_eq(pread(watched, got, sizeof(got), 9), 0);
			cr_expect_eq(lseek(watched, 0, SEEK_END), (off_t)strlen(texts[i]));
			close(watched);
			unlink("x");
		}
	}
}

Test(outfile, a_strangers_pipe_in_a_sticky_folder_is_refused)
{
	struct outfile o;

	in_a_sticky_folder();
	cr_assert_eq(mkfifo("x", 0666), 0);
	const int reader = open("x", O_RDONLY | O_NONBLOCK);

	be(0);
	cr_expect_eq(begin(&o, "x", true), -EKEYREJECTED);
	be(USER);
	cr_expect_eq(begin(&o, "x", true), -EKEYREJECTED);
	be(STRANGER);
	cr_assert_eq(begin(&o, "x", true), 0);
	put(&o, "mine");
	cr_assert_eq(outfile_end(&o, true), 0);
	close(reader);
	be(0);
}

Test(outfile, a_file_of_ones_own_in_a_sticky_folder_is_replaced)
{
	struct outfile o;

	in_a_sticky_folder();
	be(USER);
	make("x", 0666, "old");
	cr_assert_eq(begin(&o, "x", false), 0);
	put(&o, "new");
	cr_assert_eq(outfile_end(&o, true), 0);
	cr_expect_eq(at("x").st_uid, USER);
	be(0);
	expect_text("x", "new");
}

Test(outfile, a_name_that_a_stranger_takes_meanwhile_loses_nothing)
{
	struct outfile o;

	in_a_sticky_folder();
	be(USER);
	cr_assert_eq(begin(&o, "x", false), 0);
	put(&o, "profile");
	be(STRANGER);
	make("x", 0600, "trap");
	be(USER);
	cr_expect_eq(outfile_end(&o, true), -EPERM);
	be(0);
	expect_text("x", "trap");
	cr_assert(o.hidden[0]);
	expect_text(o.hidden, "profile");
}

Test(outfile, a_file_that_must_not_be_written_to_is_not_replaced)
{
	struct outfile o;

	need_root();
	cr_assert_eq(chmod(".", 0777), 0);
	be(USER);
	make("x", 0400, "old");
	cr_expect_eq(begin(&o, "x", false), -EACCES);
	be(0);
}

/* --- the keeper --- */

Test(outfile, the_keeper_gives_the_name)
{
	struct outfile o;

	for (int grows = 0; grows < 2; grows++) {
		unlink("x");
		cr_assert_eq(begin(&o, "x", grows), 0);
		cr_assert_eq(outfile_hand_over(&o), 0);
		put(&o, "whole");
		cr_assert_eq(outfile_end(&o, true), 0);
		expect_text("x", "whole");
	}
	cr_assert_eq(begin(&o, "y", true), 0);
	cr_assert_eq(outfile_hand_over(&o), 0);
	outfile_drop(&o);
	cr_expect(!is_there("y"));
}

Test(outfile, without_its_writer_the_keeper_ends)
{
	int status;

	make("x", 0600, "old");
	const pid_t child = fork();

	if (!child) {
		struct outfile o;

		if (begin(&o, "x", false) || outfile_hand_over(&o))
			_exit(1);
		put(&o, "half");
		raise(SIGKILL);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFSIGNALED(status));
	expect_text("x", "old");
	cr_expect_eq(count_files(), 1);
}
