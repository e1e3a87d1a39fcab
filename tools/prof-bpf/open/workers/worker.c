/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/workers/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/command/exits.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/wire/bus/scm.h"
#include "tools/prof-bpf/open/workers/environment.h"
#include "tools/prof-bpf/open/workers/work.h"

const struct seccomp_rule worker_calls[] = {
	CALL("recvmsg"),
	CALL("sendmsg"),
	CALL_IF("openat", SECCOMP_CLEAR(2, SECCOMP_OPEN_WRITES)),
	CALL("statx"),
	CALL_IF("newfstatat", SECCOMP_CLEAR(3, AT_EMPTY_PATH)),
	CALL("fstatfs"),
	CALL("readlink"),
	CALL("readlinkat"),
	CALL("read"),
	CALL("pread64"),
	CALL("lseek"),
	CALL_IF("fcntl", SECCOMP_IS(1, F_DUPFD_CLOEXEC)),
	/* Making copies. */
	CALL("memfd_create"),
	CALL("ftruncate"),
	CALL("pwrite64"),
	CALL("flock"),
	CALL_IF("fcntl", SECCOMP_IS(1, F_ADD_SEALS)),
	/* Reading memory of processes. */
	CALL("process_vm_readv"),
	/* Giving up rights for a moment. No call can add any. */
	CALL("capset"),
	CALL_NUMBER("uretprobe", 335),
	CALL_NUMBER("uprobe", 336),
	SECCOMP_END,
};

struct worker {
	int socket, proc;
	struct mounts mounts;
	struct {
		struct work work;
		uint8_t bytes[WORK_BYTES];
	} request;
};

/* --- rights --- */

/* The most capabilities that this process may have. */
static struct __user_cap_data_struct permitted[_LINUX_CAPABILITY_U32S_3];

static void set_rights(enum opening_rights rights)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memcpy(data, permitted, sizeof(data));
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].effective = data[i].permitted;
	if (rights == OPENING_FILES_OF_ALL)
		data[CAP_TO_INDEX(CAP_DAC_READ_SEARCH)].effective &=
			~(CAP_TO_MASK(CAP_DAC_READ_SEARCH) | CAP_TO_MASK(CAP_DAC_OVERRIDE));
	/* If the call fails, a request that needs fewer rights must not be served at all. */
	if (syscall(SYS_capset, &head, data))
		_exit(EXITS_FAILED);
}

static int learn_rights(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &head, permitted) ? -errno : 0;
}

/* --- answers --- */

static void answer(struct worker *w, struct work_answer *a, const void *bytes, size_t size,
		   const int *fds, size_t count)
{
	struct {
		struct work_answer head;
		uint8_t bytes[WORK_BYTES];
	} m;

	m.head = *a;
	if (size)
		memcpy(m.bytes, bytes, size);
	if (scm_send(w->socket, &m, sizeof(m.head) + size, fds, count, 0) < 0)
		_exit(EXITS_DONE); /* prof-bpf has ended */
}

static void open_file(struct worker *w)
{
	const struct work *k = &w->request.work;
	struct opener_request q = k->q;
	struct opener_result result;
	struct opening o = {
		.proc = w->proc,
		.mounts = &w->mounts,
		.grants = k->grants,
		.may_copy = k->may_copy,
		.copy_max = k->copy_max,
		.set_rights = set_rights,
	};
	int fds[2];
	size_t count = 0;
	const uint64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	memcpy(o.granted, k->granted, sizeof(o.granted));
	q.path.data = (const char *)w->request.bytes;
	q.name.data = q.path.data + q.path.len + 1;
	q.build_id.data = (const uint8_t *)q.name.data + q.name.len + 1;
	opening_run(&o, &q, &result);
	struct work_answer a = { .kind = WORK_ANSWER,
				 .last = true,
				 .status = result.status,
				 .file = result.file,
				 .place = result.place,
				 .copy_bytes = o.copy_bytes,
				 .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns };

	if (!result.status && result.fd >= 0)
		fds[count++] = result.fd;
	if (count && o.probe >= 0)
		fds[count++] = o.probe;
	answer(w, &a, NULL, 0, fds, count);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	for (unsigned i = 0; i < o.laters; i++)
		close(o.later[i]);
}

/* --- reading --- */

struct worker_reading {
	uint32_t pieces;
	uint64_t addresses[WORK_PIECES], lengths[WORK_PIECES];
	uint8_t *to;
	size_t cap, len;
};

/* Reads as much as exists of each piece, up to its first unreadable page. */
static int read_memory(uint32_t pid, struct worker_reading *r)
{
	struct iovec remote[WORK_PIECES];

	for (uint32_t i = 0; i < r->pieces; i++)
		remote[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)r->addresses[i],
					    .iov_len = r->lengths[i] };
	memset(r->lengths, 0, sizeof(r->lengths));
	for (uint32_t i = 0; i < r->pieces;) {
		struct iovec local = { .iov_base = r->to + r->len, .iov_len = r->cap - r->len };
		ssize_t got = process_vm_readv((pid_t)pid, &local, 1, remote + i, r->pieces - i, 0);
		size_t left = got > 0 ? (size_t)got : 0;
		bool whole = true;

		if (got < 0 && errno != EFAULT)
			return -errno;
		while (i < r->pieces && whole) {
			r->lengths[i] = numbers_smaller(left, remote[i].iov_len);
			whole = r->lengths[i] == remote[i].iov_len;
			left -= r->lengths[i];
			r->len += r->lengths[i];
			i++;
		}
	}
	return 0;
}

static int read_file(int fd, struct worker_reading *r)
{
	for (uint32_t i = 0; i < r->pieces; i++) {
		ssize_t got = r->addresses[i] > INT64_MAX ? 0
							  : pread(fd, r->to + r->len, r->lengths[i],
								  (off_t)r->addresses[i]);

		if (got < 0)
			return -errno;
		r->lengths[i] = (uint64_t)got;
		r->len += (size_t)got;
	}
	return 0;
}

/* Finds the program of a process: its identity and its mode. Returns false if it is unknown. */
static bool find_exe(const struct worker *w, uint32_t pid, struct statx *ret)
{
	char path[16];

	snprintf(path, sizeof(path), "%u/exe", pid);
	return statx(w->proc, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE | STATX_INO, ret) ==
	       0;
}

static bool is_same_exe(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

static void read_some(struct worker *w, int fd)
{
	static struct worker_reading r;
	const struct work *k = &w->request.work;
	struct work_answer a = { .kind = WORK_ANSWER };
	struct statx before = { 0 }, after = { 0 };
	size_t sent = 0, head;

	r = (struct worker_reading){ .pieces = k->pieces };
	memcpy(r.addresses, w->request.bytes, k->pieces * sizeof(r.addresses[0]));
	memcpy(r.lengths, w->request.bytes + k->pieces * sizeof(r.addresses[0]),
	       k->pieces * sizeof(r.lengths[0]));
	for (uint32_t i = 0; i < r.pieces; i++)
		r.cap += r.lengths[i];
	r.to = malloc(r.cap + 1);
	if (!r.to) {
		a.status = -ENOMEM;
		memset(r.lengths, 0, sizeof(r.lengths));
	} else if (fd >= 0) {
		a.status = read_file(fd, &r);
	} else {
		const bool known = find_exe(w, k->pid, &before);

		a.status = read_memory(k->pid, &r);
		a.exe_same = known && find_exe(w, k->pid, &after) && is_same_exe(&before, &after);
		a.exe_mode = before.stx_mode;
	}
	if (a.status)
		r.len = 0;
	head = k->pieces * sizeof(r.lengths[0]);
	a.last = !r.len;
	answer(w, &a, r.lengths, head, NULL, 0);
	while (sent < r.len) {
		const size_t n = numbers_smaller(r.len - sent, WORK_BYTES);

		a.last = sent + n == r.len;
		answer(w, &a, r.to + sent, n, NULL, 0);
		sent += n;
	}
	free(r.to);
}

/* --- mappings --- */

struct listing {
	struct worker *worker;
	size_t len;
	uint8_t bytes[WORK_BYTES];
};

static void tell_mappings(struct listing *l, struct work_answer *a)
{
	answer(l->worker, a, l->bytes, l->len, NULL, 0);
	l->len = 0;
}

static void list_mapping(void *ctx, const struct procfs_mapping *from)
{
	struct listing *l = ctx;
	struct work_answer some = { .kind = WORK_ANSWER };
	const struct work_mapping m = { .start = from->start,
					.end = from->end,
					.offset = from->offset,
					.inode = from->inode,
					.dev_major = from->dev_major,
					.dev_minor = from->dev_minor,
					.name_len = (uint16_t)from->name.len,
					.kind = (uint8_t)from->kind,
					.deleted = from->deleted };

	static_assert(sizeof(m) + PROCFS_LINE_MAX <= WORK_BYTES && PROCFS_LINE_MAX <= UINT16_MAX,
		      "a mapping fits into a message");
	if (l->len + sizeof(m) + from->name.len > sizeof(l->bytes))
		tell_mappings(l, &some);
	memcpy(l->bytes + l->len, &m, sizeof(m));
	l->len += sizeof(m);
	memcpy(l->bytes + l->len, from->name.data, from->name.len);
	l->len += from->name.len;
}

static void read_maps(struct worker *w)
{
	static struct listing l;
	const uint64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct work_answer a = { .kind = WORK_ANSWER, .last = true };

	l.worker = w;
	l.len = 0;
	const ssize_t n = procfs_read_maps(w->proc, w->request.work.pid, w->request.work.mappings,
					   list_mapping, &l);

	a.status = n < 0 ? (int)n : 0;
	a.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns;
	tell_mappings(&l, &a);
}

/* --- environment and command line --- */

struct started {
	size_t len;
	uint8_t bytes[ENVIRONMENT_BYTES];
};

static void take_value(void *ctx, unsigned which, struct str value)
{
	struct started *s = ctx;

	s->len = environment_put(s->bytes, s->len, which, value);
}

static int open_of(const struct worker *w, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "%u/%s", w->request.work.pid, name);
	const int fd = openat(w->proc, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int read_environ(const struct worker *w, const char *const *names, struct started *s)
{
	static uint8_t piece[WORK_BYTES];
	struct environment_parser e = {
		.names = names, .count = w->request.work.names, .take = take_value, .ctx = s
	};
	const int fd = open_of(w, "environ");
	ssize_t n = 1;

	for (size_t done = 0; fd >= 0 && n > 0 && done < ENVIRONMENT_MAX; done += (size_t)n) {
		n = read(fd, piece, sizeof(piece));
		environment_feed(&e, (struct span){ .data = piece, .len = n > 0 ? (size_t)n : 0 });
	}
	const int r = fd < 0 ? fd : n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r;
}

static int read_command_line(const struct worker *w, struct started *s)
{
	/* More than a value holds, so that it is truncated between characters. */
	static char bytes[ENVIRONMENT_VALUE_MAX + 4];
	const int fd = open_of(w, "cmdline");
	size_t done = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && done < sizeof(bytes)) {
		n = read(fd, bytes + done, sizeof(bytes) - done);
		done += n > 0 ? (size_t)n : 0;
	}
	const int r = fd < 0 ? fd : n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	const struct str line = environment_command_line(bytes, r ? 0 : done);

	if (line.len)
		take_value(s, ENVIRONMENT_COMMAND_LINE, line);
	return r;
}

/* Takes the names that follow the request. Returns false if there are fewer. */
static bool take_names(const struct worker *w, size_t len, const char **ret)
{
	const char *at = (const char *)w->request.bytes;

	for (uint32_t i = 0; i < w->request.work.names; i++) {
		const size_t n = strnlen(at, len);

		if (n == len)
			return false;
		ret[i] = at;
		at += n + 1;
		len -= n + 1;
	}
	return true;
}

/* len: bytes of the request after its struct. */
static void read_startup(struct worker *w, size_t len)
{
	static struct started s;
	const struct work *k = &w->request.work;
	const char *names[SAMPLING_ENV_MAX];
	struct statx before = { 0 }, after = { 0 };
	struct work_answer a = { .kind = WORK_ANSWER, .last = true };
	const bool known = find_exe(w, k->pid, &before);

	static_assert(sizeof(s.bytes) <= WORK_BYTES, "all values fit into a message");
	s.len = 0;
	if (k->names > SAMPLING_ENV_MAX || !take_names(w, len, names))
		a.status = -EINVAL;
	if (!a.status && k->names)
		a.status = read_environ(w, names, &s);
	if (!a.status && k->command_line)
		a.status = read_command_line(w, &s);
	a.exe_same = known && find_exe(w, k->pid, &after) && is_same_exe(&before, &after);
	a.exe_mode = before.stx_mode;
	answer(w, &a, s.bytes, a.status ? 0 : s.len, NULL, 0);
}

int worker_serve(int socket, int proc)
{
	static struct worker w;

	w.socket = socket;
	w.proc = proc;
	if (learn_rights())
		return EXITS_FAILED;
	mounts_init(&w.mounts, proc);
	for (;;) {
		struct work_answer ready = { .kind = WORK_READY, .last = true };
		int fd = -1;
		const ssize_t n = scm_receive(socket, &w.request, sizeof(w.request), &fd, 1, 0);

		if (n < (ssize_t)sizeof(w.request.work))
			return EXITS_DONE;
		w.request.work.q.folder = fd;
		if (w.request.work.kind == WORK_OPEN)
			open_file(&w);
		else if (w.request.work.kind == WORK_MAPS)
			read_maps(&w);
		else if (w.request.work.kind == WORK_ENVIRONMENT)
			read_startup(&w, (size_t)n - sizeof(w.request.work));
		else
			read_some(&w, fd);
		if (fd >= 0)
			close(fd);
		if (w.request.work.slow)
			answer(&w, &ready, NULL, 0, NULL, 0);
	}
}
