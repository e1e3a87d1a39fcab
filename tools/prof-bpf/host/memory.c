/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/prof-bpf/host/memory.h"
#include "tools/prof-bpf/host/processes.h"
#include "tools/prof-bpf/host/reach.h"

/* Programs with secrets in their memory, by the names of their files. docs/limits.md lists them. */
static const char *const denied[] = {
	"sshd", "sshd-session", "ssh-agent", "gpg-agent",      "polkitd", "polkit-agent-helper-1",
	"sudo", "su",		"login",     "systemd-logind",
};

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

/* By the program as it is now: the record of an exec may still be on its way. Only its name is
 * read, since its file may lie on a file system that keeps us waiting. */
static bool is_denied_now(struct host *h, const struct process *p)
{
	char name[16], path[HOST_PATH_MAX + 1];

	snprintf(name, sizeof(name), "%u/exe", p->pub.pid);
	ssize_t n = readlinkat(h->proc, name, path, sizeof(path) - 1);
	if (n < 0)
		return true;
	path[n] = '\0';
	return is_denied_name(path);
}

static bool is_denied(struct host *h, const struct process *p)
{
	return is_denied_now(h, p) || is_denied_name(p->pub.exe ? p->pub.exe->path : NULL);
}

static bool has_runtime(const struct process *p)
{
	for (uint32_t i = 0; p->maps && i < p->maps->len; i++) {
		const struct backing *b = p->maps->at[i].backing;

		if (b && b->file && b->file->runtime)
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

static int check_rights(struct host *h, struct process *p, uint64_t now_ns)
{
	if (p->pub.flags & (PROCESS_SELF | PROCESS_KERNEL) || !p->interpreted_ns ||
	    now_ns - p->interpreted_ns > MEMORY_SAMPLED_NS || is_denied(h, p) || !has_runtime(p) ||
	    !is_dumpable(h, p))
		return -EACCES;
	return 0;
}

int memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		 struct memory_read *ret)
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
	int r = check_rights(h, p, now_ns);
	if (r)
		return r;
	if (!within_rate(p, bytes, now_ns))
		return -EAGAIN;
	*ret = (struct memory_read){ .process = p->pub.id,
				     .pid = p->pub.pid,
				     .payer = p->pub.owner,
				     .asked = m->addresses.len };
	for (uint32_t i = 0; i < m->addresses.len; i++) {
		if (reach_of(p->reach, m->addresses.data[i], m->lengths.data[i]) < 0)
			continue;
		ret->places[ret->pieces] = (uint8_t)i;
		ret->addresses[ret->pieces] = m->addresses.data[i];
		ret->lengths[ret->pieces++] = m->lengths.data[i];
	}
	return ret->pieces || !ret->asked ? 0 : -EFAULT;
}

void memory_was_read(struct host *h, const struct memory_read *m, uint32_t piece, struct span bytes)
{
	struct process *p = process_find_alive(h, m->pid);

	if (p && p->pub.id == m->process)
		reach_read(&p->reach, m->addresses[piece], bytes);
}

void memory_was_copied(struct host *h, const struct host_process *of, const struct msg_object *m)
{
	struct process *p = process_find_alive(h, of->pid);
	struct span rest = m->bytes, bytes;

	if (!p || &p->pub != of)
		return;
	reach_add(&p->reach, m->address, 0);
	for (uint32_t i = 0; i < m->addresses.len; i++) {
		if (!span_take(&rest, (size_t)m->lengths.data[i], &bytes))
			return;
		reach_read(&p->reach, m->addresses.data[i], bytes);
	}
}

static void item_was_sampled(struct process *p, uint64_t item)
{
	if (item >> RUNTIME_ITEM_SHIFT == RUNTIME_FRAME ||
	    item >> RUNTIME_ITEM_SHIFT == RUNTIME_SECOND)
		reach_add(&p->reach, item & RUNTIME_ADDRESS_MASK, 0);
}

void memory_was_sampled(struct host *h, const struct host_process *of, const struct sample *s)
{
	const bool taken = s->flags & SAMPLE_TAKEN;
	struct process *p = s->items || taken ? process_find_alive(h, of->pid) : NULL;
	const uint64_t *items = sample_items(s), *frames = sample_user_frames(s);

	if (!p || &p->pub != of)
		return;
	for (uint32_t i = 0; i < s->items; i++)
		item_was_sampled(p, items[2 * i]);
	for (uint32_t i = 0; taken && i < s->user_frames; i += sample_frame_words(frames[i])) {
		for (uint32_t k = 1; k < sample_frame_words(frames[i]) && i + k < s->user_frames;
		     k += 2)
			item_was_sampled(p, frames[i + k]);
	}
}

int memory_end(struct host *h, const struct memory_read *m, uint32_t exe_mode)
{
	struct process *p = process_find_alive(h, m->pid);

	if (!p || p->pub.id != m->process || !is_same(h, p) || !exe_mode)
		return -ESRCH;
	if (exe_mode & (S_ISUID | S_ISGID) || is_denied(h, p))
		return -EACCES;
	return is_dumpable(h, p) ? 0 : -EACCES;
}

bool memory_may_look(struct host *h, struct host_process *p)
{
	/* At its first sample, the file of its program may not be open yet. */
	return !is_denied_now(h, (struct process *)p) && is_dumpable(h, (struct process *)p);
}

bool memory_may_take(const struct host_process *p)
{
	return !(p->flags & (PROCESS_SELF | PROCESS_KERNEL)) && p->exe &&
	       !(p->exe->mode & (S_ISUID | S_ISGID)) && !is_denied_name(p->exe->path);
}
