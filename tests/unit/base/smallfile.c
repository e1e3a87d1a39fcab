/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/smallfile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes the file "text" in a folder of its own. Returns the folder. */
static int make(const char *bytes, char path[static 64])
{
	strcpy(path, "/tmp/smallfile-XXXXXX");
	cr_assert_not_null(mkdtemp(path));
	const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const int fd = openat(dir, "text", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
	close(fd);
	return dir;
}

static void drop(int dir, const char *path)
{
	unlinkat(dir, "text", 0);
	close(dir);
	rmdir(path);
}

Test(smallfile, a_text_is_read_from_a_folder_or_by_its_path)
{
	char path[64], whole[80], text[16];
	const int dir = make("a\nb\n", path);

	snprintf(whole, sizeof(whole), "%s/text", path);
	cr_assert_eq(smallfile_read(dir, "text", text, sizeof(text)), 4);
	cr_assert_str_eq(text, "a\nb\n");
	memset(text, 'x', sizeof(text));
	cr_assert_eq(smallfile_read(AT_FDCWD, whole, text, sizeof(text)), 4);
	cr_assert_str_eq(text, "a\nb\n");
	drop(dir, path);
}

Test(smallfile, only_what_fits_is_read)
{
	char path[64], text[] = "xxxxx", one[] = "xx";
	const int dir = make("123456", path);

	cr_assert_eq(smallfile_read(dir, "text", text, 5), 4);
	cr_assert_str_eq(text, "1234");
	cr_assert_eq(smallfile_read(dir, "text", one, 1), 0);
	cr_assert_str_eq(one, "");
	cr_assert_eq(one[1], 'x');
	drop(dir, path);
}

Test(smallfile, an_empty_file_is_an_empty_text)
{
	char path[64], text[] = "xxxx";
	const int dir = make("", path);

	cr_assert_eq(smallfile_read(dir, "text", text, sizeof(text)), 0);
	cr_assert_str_eq(text, "");
	drop(dir, path);
}

Test(smallfile, an_error_leaves_an_empty_text)
{
	char text[] = "xxxx";

	cr_assert_eq(smallfile_read(AT_FDCWD, "/proc/none", text, sizeof(text)), -ENOENT);
	cr_assert_str_eq(text, "");
	/* A folder can be opened, but not read. */
	strcpy(text, "xxxx");
	cr_assert_eq(smallfile_read(AT_FDCWD, "/proc", text, sizeof(text)), -EISDIR);
	cr_assert_str_eq(text, "");
}

Test(smallfile, no_descriptor_stays_open)
{
	char text[64];
	const int before = dup(0);

	close(before);
	cr_assert_gt(smallfile_read(AT_FDCWD, "/proc/self/stat", text, sizeof(text)), 0);
	cr_assert_lt(smallfile_read(AT_FDCWD, "/proc", text, sizeof(text)), 0);
	const int after = dup(0);

	cr_assert_eq(after, before);
	close(after);
}
