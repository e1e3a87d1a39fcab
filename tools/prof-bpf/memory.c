/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "tools/prof-bpf/memory.h"
#include "tools/prof-bpf/processes.h"

/* Programs whose memory holds secrets, by their file's name. */
static const char *const denied[] = {
	"sshd", "sshd-session", "ssh-agent", "gpg-agent",      "polkitd", "polkit-agent-helper-1",
	"sudo", "su",		"login",     "systemd-logind",
};

/* Its program as it is now: the record of an exec may not have been heard yet. */
static bool find_program(struct host *h, const struct process *p, struct stat *ret)
{
	char name[16];

	snprintf(name, sizeof(name), "%u/exe", p->pub.pid);
	return fstatat(h->proc, name, ret, 0) == 0;
}

/* path: NULL or without a slash: of a program that is not known yet, or has no name. */
static bool is_denied_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	for (size_t i = 0; slash && i < sizeof(denied) / sizeof(denied[0]); i++) {
		size_t n = strlen(denied[i]);

		/* The kernel's word for a program that was replaced. */
		if (!strncmp(slash + 1, denied[i], n) &&
		    (!slash[1 + n] || !strcmp(slash + 1 + n, " (deleted)")))
			return true;
	}
	return !slash;
}

/* exe: what find_program found. */
static bool is_denied(struct host *h, const struct process *p, const struct stat *exe)
{
	char name[16], path[HOST_PATH_MAX + 1];

	snprintf(name, sizeof(name), "%u/exe", p->pub.pid);
	ssize_t n = readlinkat(h->proc, name, path, sizeof(path) - 1);
	if (n < 0)
		return true;
	path[n] = '\0';
	return is_denied_name(path) || is_denied_name(p->pub.exe ? p->pub.exe->path : NULL) ||
	       exe->st_mode & (S_ISUID | S_ISGID);
}

static bool has_runtime(struct host *h, const struct process *p)
{
	for (uint32_t i = 0; p->maps && i < p->maps->len; i++) {
		const struct backing *b = p->maps->at[i].backing;

		if (b && b->file && tables_runtime(h->config.tables, b->file->pub.slot))
			return true;
	}
	return false;
}

/* A process that changed its rights, or asked not to be dumped, has its folder of /proc given to
 * root. Its user is asked for now: it may have been another's when it was sampled first. */
static bool is_dumpable(struct host *h, struct process *p)
{
	struct stat st;
	char name[16];
	uint32_t uid;

	if (procfs_read_uid(h->proc, p->pub.pid, &uid) != 0)
		return false;
	process_describe(h, p, uid);
	snprintf(name, sizeof(name), "%u/mem", p->pub.pid);
	return fstatat(h->proc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == uid;
}

/* Still the process that it was. */
static bool is_same(struct host *h, const struct process *p)
{
	struct procfs_stat st;

	return procfs_read_stat(h->proc, p->pub.pid, &st) == 0 &&
	       (st.start_ns == p->pub.start_ns ||
		(p->start_guessed && st.start_ns <= p->pub.start_ns));
}

static bool within_rate(struct process *p, size_t bytes, uint64_t now_ns)
{
	uint64_t earned = (now_ns - p->memory_ns) / 1000 * MEMORY_RATE / 1000000;

	if (!p->memory_ns || earned + p->memory_left > MEMORY_BURST)
		p->memory_left = MEMORY_BURST;
	else
		p->memory_left += (uint32_t)earned;
	p->memory_ns = now_ns;
	if (p->memory_left < bytes)
		return false;
	p->memory_left -= (uint32_t)bytes;
	return true;
}

/* Reads what is there of each piece. */
static int read_pieces(uint32_t pid, const struct msg_memory_request *m, struct buf *b,
		       uint64_t lengths[static MEMORY_PIECES])
{
	struct iovec remote[MEMORY_PIECES];
	uint32_t n = m->addresses.len;

	for (uint32_t i = 0; i < n; i++)
		remote[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)m->addresses.data[i],
					    .iov_len = m->lengths.data[i] };
	memset(lengths, 0, MEMORY_PIECES * sizeof(*lengths));
	for (uint32_t i = 0; i < n;) {
		struct iovec local = { .iov_base = b->data + b->len, .iov_len = b->cap - b->len };
		ssize_t got = process_vm_readv((pid_t)pid, &local, 1, remote + i, n - i, 0);

		if (got < 0 && errno != EFAULT)
			return -errno;
		/* Reading ends at the first page that is not there: that piece stays as it is, and
		 * the next begins anew. */
		size_t left = got > 0 ? (size_t)got : 0;
		bool whole = true;
		while (i < n && whole) {
			lengths[i] = left < remote[i].iov_len ? left : remote[i].iov_len;
			whole = lengths[i] == remote[i].iov_len;
			left -= lengths[i];
			b->len += lengths[i];
			i++;
		}
	}
	return 0;
}

int memory_read(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		struct buf *ret_bytes, uint64_t ret_lengths[static MEMORY_PIECES])
{
	size_t bytes = 0;

	if (m->addresses.len != m->lengths.len || m->addresses.len > MEMORY_PIECES ||
	    m->pid > INT32_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < m->lengths.len; i++) {
		if (m->lengths.data[i] == 0 || m->lengths.data[i] > MEMORY_BYTES - bytes)
			return -EINVAL;
		bytes += m->lengths.data[i];
	}
	struct process *p = process_find_alive(h, (uint32_t)m->pid);
	if (!p || p->pub.id != m->process || !is_same(h, p))
		return -ESRCH;
	struct stat before, after;
	if (p->pub.flags & (PROCESS_SELF | PROCESS_KERNEL) || !find_program(h, p, &before) ||
	    is_denied(h, p, &before) || !has_runtime(h, p) || !is_dumpable(h, p))
		return -EACCES;
	if (!within_rate(p, bytes, now_ns))
		return -EAGAIN;
	buf_reset(ret_bytes);
	int r = buf_reserve(ret_bytes, bytes);
	if (!r)
		r = read_pieces(p->pub.pid, m, ret_bytes, ret_lengths);
	/* Its number may have become another's meanwhile, or it may run another program. */
	if (!r && (!is_same(h, p) || !find_program(h, p, &after) || after.st_dev != before.st_dev ||
		   after.st_ino != before.st_ino))
		r = -ESRCH;
	if (!r && !is_dumpable(h, p))
		r = -EACCES;
	if (r)
		buf_reset(ret_bytes);
	return r;
}
