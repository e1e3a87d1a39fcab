/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: requests from prof-dump's half without rights to the other half: paths and debug files, in
 * messages of any size, with or without descriptors. The target provides the files.
 *
 * A message is a byte for the way it comes, one for the number of descriptors, 2 for its length,
 * and its bytes. An opened file has an absolute path, and names that end. Each descriptor is closed
 * once, and only ELF files are handed over.
 */
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/span.h"
#include "tools/prof-dump/process/message.h"
#include "tools/prof-dump/process/lend.h"
#include "common/names/program/finder.h"
#include "tests/fuzz/must.h"

#define SOCKET 1000000 /* a descriptor number that is not open, nor is any above */
#define CORE 1000001
#define FIRST 1000002
#define FDS 4096

static struct {
	struct span rest;
	bool open[FDS], elf[FDS];
	int next;
	unsigned count;
} files;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fail(int error)
{
	errno = error;
	return -1;
}

static int new_fd(bool elf)
{
	if (files.next == FDS)
		return -EMFILE;
	files.open[files.next] = true;
	files.elf[files.next] = elf;
	files.count++;
	return FIRST + files.next++;
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
	must(fd >= FIRST && files.open[fd - FIRST]);
	files.open[fd - FIRST] = false;
	files.count--;
	return 0;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout)
{
	return files.rest.len ? 1 : 0;
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	if (fd < FIRST)
		return __real_fstat(fd, st);
	must(files.open[fd - FIRST]);
	*st = (struct stat){ .st_mode = fd & 1 ? 0644 : 0600, .st_uid = 1 };
	return 0;
}

ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t at)
{
	must(files.open[fd - FIRST] && n == SELFMAG);
	memcpy(to, files.elf[fd - FIRST] ? ELFMAG : "root", n);
	return (ssize_t)n;
}

int finder_open(const char *path)
{
	must(path[0] == '/' && strlen(path) < 2 * MESSAGE_TEXT);
	return strlen(path) % 4 ? new_fd(strlen(path) % 2) : -ENOENT;
}

int finder_debug(enum program_want want, struct span build_id, const char *name, const char *path)
{
	must(want <= PROGRAM_WANTS_PACKAGE && build_id.len <= MESSAGE_ID);
	must(strlen(name) + strlen(path) < MESSAGE_TEXT);
	return strlen(name) % 4 ? new_fd(strlen(path) % 2) : -ENOENT;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	static const int errors[] = { EINTR, ECONNRESET, EIO };
	struct {
		uint8_t how, fds;
		uint16_t len;
	} head;
	struct span bytes = { 0 };
	struct message *to = m->msg_iov[0].iov_base;

	must(fd == SOCKET);
	if (!span_read(&files.rest, &head, sizeof(head)))
		return 0;
	if (head.how >= 0xfd)
		return fail(errors[head.how - 0xfd]);
	const size_t room = m->msg_iov[0].iov_len,
		     fit = (m->msg_controllen - CMSG_LEN(0)) / sizeof(int);
	size_t n = head.len < files.rest.len ? head.len : files.rest.len, count = head.fds & 3;

	n = n < room ? n : room;
	(void)span_take(&files.rest, n, &bytes);
	memset(to, head.fds, room);
	if (bytes.data)
		memcpy(to, bytes.data, n);
	/* Correct fields that a fuzzer would not guess. */
	if (head.how & 1) {
		to->kind = head.how & 2 ? MESSAGE_OPEN : MESSAGE_DEBUG;
		to->debug.want %= PROGRAM_WANTS_PACKAGE + 2;
		n = n > offsetof(struct message, text) ? n : offsetof(struct message, text);
		to->text_len = (uint32_t)(n - offsetof(struct message, text));
	}
	count = count < fit ? count : fit;
	m->msg_controllen = 0;
	if (count) {
		struct cmsghdr c = { .cmsg_len = CMSG_LEN(count * sizeof(int)),
				     .cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_RIGHTS };

		memcpy(m->msg_control, &c, sizeof(c));
		for (size_t i = 0; i < count; i++) {
			const int given = new_fd(true);

			memcpy((char *)m->msg_control + CMSG_LEN(i * sizeof(int)), &given,
			       sizeof(given));
		}
		m->msg_controllen = c.cmsg_len;
	}
	return (ssize_t)n;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	const struct message *out = m->msg_iov[0].iov_base;
	const struct cmsghdr *c = m->msg_controllen ? CMSG_FIRSTHDR(m) : NULL;
	int given;

	must(fd == SOCKET && (out->kind == MESSAGE_CORE || out->kind == MESSAGE_FILE));
	must(!c == (out->error != 0));
	if (c && out->kind == MESSAGE_FILE) {
		memcpy(&given, CMSG_DATA(c), sizeof(given));
		must(files.open[given - FIRST] && files.elf[given - FIRST]);
	}
	return (ssize_t)m->msg_iov[0].iov_len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	files.rest = (struct span){ .data = data + 1, .len = size - 1 };
	files.next = 0;
	files.count = 0;
	if (data[0] & 1)
		must(lend_core(SOCKET, CORE, data[0] & 2 ? "/sysroot" : "") <= 0);
	else
		while (lend_debug(SOCKET, 1) == 0)
			;
	must(files.count == 0);
	return 0;
}
