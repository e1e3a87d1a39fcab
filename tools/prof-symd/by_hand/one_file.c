/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/by_hand/one_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"
#include "common/base/command/stdfds.h"
#include "common/names/program/finder.h"
#include "common/names/runtime/runtime.h"
#include "tools/prof-symd/by_hand/addresses.h"
#include "tools/prof-symd/files/worker_warnings.h"

static int put_out(struct buf *text)
{
	if (text->len && fwrite(text->data, 1, text->len, stdout) != text->len)
		return -errno;
	buf_reset(text);
	return 0;
}

/* Logs that a file cannot be used. r: -errno, or a verdict of symfile_open or program_open. */
static void say_unusable(const char *path, int r)
{
	if (r == -ENOMEM)
		log_error("%s: %s; free memory on this host", path, strerror(-r));
	else if (r < 0)
		log_error("%s: %s; name a readable ELF file", path, strerror(-r));
	else
		log_error("%s: %s", path, symfile_verdict_text(r));
}

int one_file_addresses(const struct one_file *o, int count, char **args)
{
	static struct addresses a;
	struct buf text = BUF_INIT(0);
	struct program *p = NULL;
	char *line = NULL;
	size_t cap = 0;
	int fd, r, status = EXITS_FAILED;

	a.show_address = o->show_address;
	a.basenames = o->basenames;
	fd = finder_open(o->path);
	if (fd < 0) {
		log_error("%s: %s; name a readable ELF file", o->path,
			  fd == -EINVAL ? "not a regular file" : strerror(-fd));
		return EXITS_FAILED;
	}
	r = program_open(fd, PROGRAM_OF_OTHERS, o->dwarf_max, &p);
	if (r) {
		say_unusable(o->path, r);
		return EXITS_FAILED;
	}
	if (program_is_cut(p)) {
		say_unusable(o->path, SYMFILE_MALFORMED);
		program_free(p);
		return EXITS_FAILED;
	}
	finder_complete(p, o->path);
	for (int i = 0; count == 0 || i < count; i++) {
		const char *s;
		uint64_t address;

		if (count == 0) {
			ssize_t n = getline(&line, &cap, stdin);

			if (n < 0)
				break;
			while (n > 0 &&
			       (line[n - 1] == '\n' || line[n - 1] == ' ' || line[n - 1] == '\r'))
				line[--n] = '\0';
			if (n == 0)
				continue;
			s = line;
		} else {
			s = args[i];
		}
		if (!addresses_parse(s, &address)) {
			log_error("\"%s\": not an address; use hexadecimal digits, with or without "
				  "0x",
				  s);
			goto out;
		}
		r = addresses_print(&a, p, o->path, address, &text);
		if (r) {
			say_unusable(o->path, r);
			goto out;
		}
		r = put_out(&text);
		if (r == 0 && count == 0 && fflush(stdout) != 0)
			r = -errno;
		if (r) {
			stdfds_say(-r);
			goto out;
		}
	}
	if (stdfds_flush() != EXITS_DONE)
		goto out;
	if (program_dwarf_lost(p))
		worker_warnings_lost(str_from(o->path), program_dwarf_kills(p));
	else if (program_dwarf_kills(p) > 0)
		worker_warnings_killed(str_from(o->path));
	if (program_dwarf_too_large(p))
		log_warning("%s: its DWARF takes more than %llu MiB and was ignored; "
			    "raise the limit with -m",
			    o->path, (unsigned long long)(o->dwarf_max >> 20));
	status = EXITS_DONE;
out:
	free(line);
	buf_done(&text);
	worker_warnings_keeper_gone();
	program_free(p);
	return status;
}

int one_file_describe(const char *path)
{
	struct buf text = BUF_INIT(0);
	struct runtime_build build;
	struct symfile *f;
	int fd = finder_open(path), r, status = EXITS_FAILED;

	if (fd < 0) {
		log_error("%s: %s; name a readable ELF file", path,
			  fd == -EINVAL ? "not a regular file" : strerror(-fd));
		return EXITS_FAILED;
	}
	r = symfile_open(fd, &f);
	if (r) {
		close(fd);
		say_unusable(path, r);
		return EXITS_FAILED;
	}
	r = runtime_describe(f, &build);
	if (r == 0)
		r = runtime_print(&build, &text);
	if (r == RUNTIME_NOT_MINE)
		log_error("%s: contains no known interpreter; name an interpreter, or the "
			  "library that it uses",
			  path);
	else if (r)
		say_unusable(path, r);
	else if (put_out(&text))
		stdfds_say(errno);
	else
		status = stdfds_flush();
	buf_done(&text);
	symfile_free(f);
	return status;
}
