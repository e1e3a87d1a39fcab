/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/options/service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/files/contents.h"

/* The error of the wrapped functions; 0: they work. */
static int reading, parsing;

int __real_contents_read(int fd, size_t max, uint8_t **ret, size_t *ret_len, struct stat *ret_stat);
int __wrap_contents_read(int fd, size_t max, uint8_t **ret, size_t *ret_len, struct stat *ret_stat);
int __wrap_contents_read(int fd, size_t max, uint8_t **ret, size_t *ret_len, struct stat *ret_stat)
{
	return reading ? reading : __real_contents_read(fd, max, ret, ret_len, ret_stat);
}

int __real_settings_parse(struct settings *s, struct str text, settings_refuse *refuse, void *ctx);
int __wrap_settings_parse(struct settings *s, struct str text, settings_refuse *refuse, void *ctx);
int __wrap_settings_parse(struct settings *s, struct str text, settings_refuse *refuse, void *ctx)
{
	return parsing ? parsing : __real_settings_parse(s, text, refuse, ctx);
}

/* The status of `profpipe run` with a file that contains this text. */
static int status_of(const char *text)
{
	char path[] = "/tmp/service-XXXXXX";
	char run[] = "run", option[] = "--settings", *argv[] = { run, option, path, NULL };
	const int fd = mkstemp(path);
	static struct service s;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	const int r = service_parse(3, argv, &s);

	if (r == EXITS_GO_ON)
		service_done(&s);
	unlink(path);
	return r;
}

#define RIGHT "output = /tmp/x.prof\nfrequency = 50\n"

Test(service, a_right_file_is_taken)
{
	cr_assert_eq(status_of(RIGHT), EXITS_GO_ON);
}

Test(service, a_wrong_file_is_wrong_usage)
{
	cr_assert_eq(status_of(RIGHT "frequenzy = 50\n"), EXITS_USAGE);
	reading = -EFBIG;
	cr_assert_eq(status_of(RIGHT), EXITS_USAGE);
}

Test(service, lack_of_memory_is_no_wrong_usage)
{
	reading = -ENOMEM;
	cr_assert_eq(status_of(RIGHT), EXITS_FAILED);
	reading = 0;
	parsing = -ENOMEM;
	cr_assert_eq(status_of(RIGHT), EXITS_FAILED);
}
