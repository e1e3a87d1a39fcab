/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/system/procfs.h"
#include "common/names/jit/jitfinder.h"
#include "tools/prof-dump/space/space.h"

#define NICENESS (-15)
#define IMAGES 256 /* files that cannot be opened, whose pieces are sent */
#define FORKS 4	   /* how many parents to try, up to one that has written a map */

/* Checks the type before opening: opening a device or a FIFO can have effects. */
static int open_regular(const char *path)
{
	char self[64];
	struct stat st;
	int at = open(path, O_PATH | O_CLOEXEC);

	if (at < 0)
		return -errno;
	int fd = -EINVAL;

	if (fstat(at, &st) == 0 && S_ISREG(st.st_mode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			fd = -errno;
	}
	close(at);
	return fd;
}

/* --- a process --- */

struct sending {
	int socket, error;
	const struct live *live;
	uint64_t dev, inode; /* of the newest file sent */
	unsigned images;
};

/* Opens `path` if it is the mapping's file. The device in maps may differ from fstat's, so it is
 * not compared. */
static int open_if_same(const char *path, const struct procfs_mapping *m)
{
	struct stat st;
	int fd = open_regular(path);

	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino != m->inode)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* map_files leads to the right file, even if that is deleted or in another mount namespace. But it
 * takes privileges. */
int caller_open(pid_t pid, const struct procfs_mapping *m)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start,
		 m->end);
	int fd = open_regular(path);

	if (fd != -EPERM && fd != -EACCES)
		return fd;
	if (!m->deleted) {
		snprintf(path, sizeof(path), "/proc/%d/root%.*s", pid, (int)m->name.len,
			 m->name.data);
		fd = open_if_same(path, m);
		if (fd >= 0)
			return fd;
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	int exe = open_if_same(path, m);

	return exe >= 0 ? exe : fd;
}

static uint64_t device(const struct procfs_mapping *m)
{
	return (uint64_t)m->dev_major << 32 | m->dev_minor;
}

static void send_piece(void *ctx, const struct procfs_mapping *m)
{
	struct sending *s = ctx;
	const struct message out = {
		.kind = MESSAGE_PIECE,
		.mapping = { .start = m->start, .end = m->end, .offset = m->offset },
	};

	/* Pages that the process can write may differ from the file. */
	if (!s->error && m->kind == PROCFS_FILE && m->readable && !m->writable &&
	    m->inode == s->inode && device(m) == s->dev)
		s->error = message_send(s->socket, &out, -1);
}

/* Sends all mapped pieces of a file that cannot be opened. */
static void send_pieces(struct sending *s)
{
	int proc = s->images++ < IMAGES ? open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (proc < 0)
		return;
	(void)procfs_read_all_maps(proc, (uint32_t)s->live->alive, SPACE_MAX_MAPPINGS, send_piece,
				   s);
	close(proc);
}

static void send_mapping(void *ctx, const struct procfs_mapping *m)
{
	struct sending *s = ctx;
	uint64_t dev = device(m);
	struct message out = {
		.kind = MESSAGE_MAPPING,
		.mapping = { .start = m->start,
			     .end = m->end,
			     .offset = m->offset,
			     .inode = m->inode,
			     .dev = dev,
			     .kind = m->kind },
		.text_len = m->name.len < MESSAGE_TEXT ? m->name.len : MESSAGE_TEXT - 1,
	};
	int fd = -1;

	if (s->error)
		return;
	memcpy(out.text, m->name.data, out.text_len);
	if (m->kind == PROCFS_FILE && (dev != s->dev || m->inode != s->inode)) {
		fd = caller_open(s->live->alive, m);
		out.error = fd < 0 ? fd : 0;
		s->dev = dev;
		s->inode = m->inode;
		if (fd < 0 && fd != -EINVAL)
			send_pieces(s);
		if (s->error)
			return;
	}
	s->error = message_send(s->socket, &out, fd);
	if (fd >= 0)
		close(fd);
}

static int send_kind(int socket, enum message_kind kind, int fd)
{
	const struct message out = { .kind = kind };

	return message_send(socket, &out, fd);
}

/* Whether two processes run the same program. */
static bool same_program(uint32_t a, uint32_t b)
{
	struct stat st[2];
	char path[32];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", i ? b : a);
		if (stat(path, &st[i]) < 0)
			return false;
	}
	return st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
}

/* Follows the rules of the deployment (tools/prof-bpf/host/lookups/jitfiles.h): a fork that wrote
 * no map of its own uses its parent's. */
static int open_generated(int proc, const struct live *l, enum msg_jit_kind kind)
{
	struct msg_process p = { .pid = (uint32_t)l->pid, .uid = l->uid, .start_ns = l->start_ns };
	struct procfs_stat st;
	int fd = jitfinder_open(kind, &p, true);

	for (int i = 0; fd == -ENOENT && kind == MSG_JIT_PERF_MAP && i < FORKS; i++) {
		uint32_t pid = (uint32_t)p.pid;

		if (procfs_read_stat(proc, pid, &st) || !same_program(pid, st.parent_pid))
			break;
		p.pid = st.parent_pid;
		if (procfs_read_stat(proc, (uint32_t)p.pid, &st))
			break;
		p.start_ns = st.start_ns;
		fd = jitfinder_open(kind, &p, true);
	}
	return fd;
}

/* Sends the files that exist. Without them, generated code has no names. */
static int send_generated(int socket, int proc, const struct live *l)
{
	int r = 0;

	for (unsigned kind = 0; !r && kind < MSG_JIT_KINDS; kind++) {
		const struct message out = { .kind = MESSAGE_GENERATED, .generated = kind };
		int fd = open_generated(proc, l, (enum msg_jit_kind)kind);

		if (fd >= 0) {
			r = message_send(socket, &out, fd);
			close(fd);
		}
	}
	return r;
}

static int send_process(int socket, const struct live *l)
{
	struct sending s = { .socket = socket, .live = l };
	int fd = live_memory(l);

	if (fd < 0)
		return fd == -EACCES || fd == -EPERM ? LIVE_DENIED : fd;
	int r = send_kind(socket, MESSAGE_MEMORY, fd);

	close(fd);
	if (r)
		return r;
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0)
		return -errno;
	r = send_generated(socket, proc, l);
	ssize_t n = r ? r
		      : procfs_read_maps(proc, (uint32_t)l->alive, SPACE_MAX_MAPPINGS, send_mapping,
					 &s);

	close(proc);
	if (n == -EACCES || n == -EPERM)
		return LIVE_DENIED;
	if (n < 0)
		return (int)n;
	return s.error ? s.error : send_kind(socket, MESSAGE_MAPS_END, -1);
}

/* Receives the next message, which must be one of two kinds. */
static int expect(int socket, int timeout_ms, enum message_kind a, enum message_kind b,
		  enum message_kind *ret)
{
	struct message in;
	int fd, r = message_receive(socket, timeout_ms, &in, &fd);

	if (r)
		return r;
	if (fd >= 0)
		close(fd);
	if (in.kind != a && in.kind != b)
		return -EPROTO;
	*ret = in.kind;
	return 0;
}

static int send_threads(int socket, const struct live *l)
{
	int r = 0;

	for (size_t i = 0; !r && i < l->count; i++) {
		struct message out = { .kind = MESSAGE_THREAD, .thread = l->threads[i].registers };

		if (l->threads[i].state != LIVE_GONE)
			r = message_send(socket, &out, -1);
	}
	return r ? r : send_kind(socket, MESSAGE_STOPPED, -1);
}

/* Raises the priority of both halves while threads are stopped, if permitted. Prefers a
 * real-time policy: where the kernel groups tasks by session, nice counts only within a session. */
static void hurry(pid_t walker, bool on)
{
	static int nice;
	static bool changed[2];
	const struct sched_param p = { .sched_priority = on ? 1 : 0 };
	const pid_t half[] = { 0, walker };

	if (on)
		nice = getpriority(PRIO_PROCESS, 0);
	for (unsigned i = 0; i < 2; i++) {
		if (on || changed[i])
			changed[i] = sched_setscheduler(half[i], on ? SCHED_RR : SCHED_OTHER, &p) ==
				     0;
		if (!on || !changed[i])
			(void)setpriority(PRIO_PROCESS, (id_t)half[i], on ? NICENESS : nice);
	}
}

int caller_process(int socket, pid_t walker, struct live *l, bool all)
{
	enum message_kind answer = MESSAGE_AGAIN;
	int r = 0;

	for (int round = 0; !r && answer == MESSAGE_AGAIN && round < MESSAGE_ROUNDS; round++) {
		r = send_process(socket, l);
		if (!r)
			r = expect(socket, -1, MESSAGE_READY, MESSAGE_READY, &answer);
		if (r)
			return r;
		hurry(walker, true);
		r = live_stop(l, all);
		if (!r)
			r = send_threads(socket, l);
		if (!r)
			r = expect(socket, CALLER_PATIENCE_MS, MESSAGE_WALKED, MESSAGE_AGAIN,
				   &answer);
		live_resume(l);
		hurry(walker, false);
	}
	return r;
}
