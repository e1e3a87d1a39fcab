/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/process/lend.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/names/program/finder.h"
#include "tools/prof-dump/process/message.h"

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static int open_named(const char *path, const char *sysroot)
{
	char whole[2 * MESSAGE_TEXT];

	if (path[0] != '/')
		return -EINVAL;
	snprintf(whole, sizeof(whole), "%s%s", sysroot, path);
	int fd = finder_open(whole);

	if (fd >= 0 && !is_elf(fd)) {
		close(fd);
		return -ENOEXEC;
	}
	return fd;
}

static int open_debug(const struct message *m)
{
	const struct message_debug *d = &m->debug;
	const char *end = memchr(m->text, '\0', m->text_len);
	struct stat st;

	if (!end || d->id_len > sizeof(d->id) || d->want > PROGRAM_WANTS_PACKAGE)
		return -EPROTO;
	const struct span id = { .data = d->id, .len = d->id_len };
	int fd = finder_debug((enum program_want)d->want, id, m->text, end + 1);

	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) < 0 ||
	    !((st.st_mode & S_IROTH) || (geteuid() && st.st_uid == geteuid())) || !is_elf(fd)) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

/* Takes fd; negative: an errno instead of a file. */
static int send_file(int socket, int fd)
{
	const struct message out = { .kind = MESSAGE_FILE, .error = fd < 0 ? fd : 0 };
	const int r = message_send(socket, &out, fd);

	if (fd >= 0)
		close(fd);
	return r;
}

int lend_debug(int socket, int timeout_ms)
{
	static struct message m;
	int fd, r = message_receive(socket, timeout_ms, &m, &fd);

	if (r)
		return r;
	if (fd >= 0)
		close(fd);
	return m.kind == MESSAGE_DEBUG ? send_file(socket, open_debug(&m)) : -EPROTO;
}

int lend_core(int socket, int core, const char *sysroot)
{
	struct message m;
	const struct message first = { .kind = MESSAGE_CORE };
	int fd, r = message_send(socket, &first, core);

	while (!r) {
		r = message_receive(socket, -1, &m, &fd);
		if (r)
			break;
		if (fd >= 0)
			close(fd);
		if (m.kind != MESSAGE_OPEN && m.kind != MESSAGE_DEBUG)
			return -EPROTO;
		r = send_file(socket, m.kind == MESSAGE_OPEN ? open_named(m.text, sysroot)
							     : open_debug(&m));
	}
	return r == -EPIPE ? 0 : r;
}
