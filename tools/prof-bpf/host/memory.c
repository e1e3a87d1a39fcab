/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/prof-bpf/host/memory.h"
#include "tools/prof-bpf/host/processes.h"

/* Programs with secrets in their memory, by the names of their files. docs/limits.md lists them. */
static const char *const denied[] = {
	"sshd", "sshd-session", "ssh-agent", "gpg-agent",      "polkitd", "polkit-agent-helper-1",
	"sudo", "su",		"login",     "systemd-logind",
};

/* The program as it is now: the record of an exec may still be on its way. */
static bool find_program(struct host *h, const struct process *p, struct stat *ret)
{
	char name[16];

	snprintf(name, sizeof(name), "%u/exe", p->pub.pid);
	return fstatat(h->proc, name, ret, 0) == 0;
}

/* A path that is NULL or has no slash is denied: the program is unknown or has no name. */
static bool is_denied_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	for (size_t i = 0; slash && i < sizeof(denied) / sizeof(denied[0]); i++) {
		size_t n = strlen(denied[i]);

		/* The kernel appends this to the name of a replaced program. */
		if (!strncmp(slash + 1, denied[i], n) &&
		    (!slash[1 + n] || !strcmp(slash + 1 + n, " (deleted)")))
			return true;
	}
	return !slash;
}

/* exe: from find_program. */
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

/* Whether the process may be dumped. If it changed its rights or asked not to be dumped, root owns
 * its folder in /proc; for root's own processes, the kernel's program tells. Its user is read
 * again, since it may have changed since the first sample. */
static bool is_dumpable(struct host *h, struct process *p)
{
	struct stat st;
	char name[16];
	uint32_t uid;

	if (p->undumpable || procfs_read_uid(h->proc, p->pub.pid, &uid) != 0)
		return false;
	process_describe(h, p, uid);
	snprintf(name, sizeof(name), "%u/mem", p->pub.pid);
	return fstatat(h->proc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == uid;
}

/* Whether it is still the same process. */
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

static int check_rights(struct host *h, struct process *p, uint64_t now_ns, struct stat *ret_exe)
{
	if (p->pub.flags & (PROCESS_SELF | PROCESS_KERNEL) || !p->interpreted_ns ||
	    now_ns - p->interpreted_ns > MEMORY_SAMPLED_NS || !find_program(h, p, ret_exe) ||
	    is_denied(h, p, ret_exe) || !has_runtime(h, p) || !is_dumpable(h, p))
		return -EACCES;
	return 0;
}

int memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		 struct memory_read *ret)
{
	size_t bytes = 0;
	struct stat exe;

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
	int r = check_rights(h, p, now_ns, &exe);
	if (r)
		return r;
	if (!within_rate(p, bytes, now_ns))
		return -EAGAIN;
	*ret = (struct memory_read){ .process = p->pub.id,
				     .pid = p->pub.pid,
				     .uid = p->pub.uid,
				     .exe_dev = exe.st_dev,
				     .exe_inode = exe.st_ino };
	return 0;
}

int memory_end(struct host *h, const struct memory_read *m)
{
	struct process *p = process_find_alive(h, m->pid);
	struct stat exe;

	if (!p || p->pub.id != m->process || !is_same(h, p) || !find_program(h, p, &exe) ||
	    exe.st_dev != m->exe_dev || exe.st_ino != m->exe_inode)
		return -ESRCH;
	return is_dumpable(h, p) ? 0 : -EACCES;
}

bool memory_may_take(const struct host_process *p)
{
	return !(p->flags & (PROCESS_SELF | PROCESS_KERNEL)) && p->exe &&
	       !(p->exe->mode & (S_ISUID | S_ISGID)) && !is_denied_name(p->exe->path);
}
