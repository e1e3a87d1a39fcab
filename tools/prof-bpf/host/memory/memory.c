/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/processes/reach.h"
#include "tools/prof-bpf/host/shares/statuses.h"

/* Programs with secrets in their memory, by the names of their files. docs/limits.md lists them. */
#define MEMORY_PIECE_COST 64 /* a piece costs about as much as this many bytes */

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

/* Checks the program that runs now, since the record of an exec may not have arrived yet. Only the
 * name of its file is read: the file itself may lie on a file system that does not answer. */
static bool is_denied_now(struct host *h, const struct process *p)
{
	char path[PATH_MAX + 1];
	const ssize_t n = procfs_read_link(h->proc, p->pub.pid, "exe", path);

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
		const struct files_backing *b = p->maps->at[i].backing;

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

	if (p->undumpable || statuses_read_uid(h, p->pub.owner, p->pub.pid, &uid) != 0)
		return false;
	process_describe(h, p, uid);
	snprintf(name, sizeof(name), "%u/mem", p->pub.pid);
	return fstatat(h->proc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == uid;
}

/* Whether the pid still belongs to the same process. */
static bool is_same(struct host *h, const struct process *p)
{
	struct procfs_stat st;

	return procfs_read_thread_stat(h->proc, p->pub.pid, &st) == 0 &&
	       (st.start_ns == p->pub.start_ns ||
		(p->start_guessed && st.start_ns <= p->pub.start_ns));
}

/* Returns what a process has left of a rate, including what it has earned since. */
static int64_t left_of(int64_t left, uint64_t since_ns, uint64_t rate, int64_t burst)
{
	const uint64_t earned = since_ns / 1000 * rate / 1000000;

	return earned > (uint64_t)(burst - left) ? burst : left + (int64_t)earned;
}

static bool within_rate(struct process *p, size_t bytes, uint64_t now_ns)
{
	const uint64_t since_ns = p->memory_ns ? now_ns - p->memory_ns : UINT64_MAX / MEMORY_RATE;

	p->memory_left = (uint32_t)left_of(p->memory_left, since_ns, MEMORY_RATE, MEMORY_BURST);
	p->memory_long = (int32_t)left_of(p->memory_long, since_ns, MEMORY_LONG_RATE,
					  MEMORY_LONG_BURST);
	p->memory_ns = now_ns;
	if (p->memory_long < 0 || p->memory_left < bytes)
		return false;
	p->memory_left -= (uint32_t)bytes;
	return true;
}

static int check_rights(struct host *h, struct process *p, uint64_t now_ns)
{
	if (p->pub.flags & (MSG_PROCESS_SELF | MSG_PROCESS_KERNEL) || !p->interpreted_ns ||
	    now_ns - p->interpreted_ns > MEMORY_SAMPLED_NS || is_denied(h, p) || !has_runtime(p) ||
	    !is_dumpable(h, p))
		return -EACCES;
	return 0;
}

static struct reach_rule rule_of(void *ctx, uint16_t slot)
{
	const struct host *h = ctx;
	const struct file *f = files_by_slot(h->files, slot);
	const struct runtime_config *c = f ? f->runtime : NULL;

	return (struct reach_rule){ .copy = c ? &c->copy : NULL,
				    .need = runtime_need(c ? c->runtime : RUNTIME_NONE) };
}

/* Whether there is space for more of the process's addresses. */
static bool may_grow(struct host *h, const struct process *p)
{
	const uint64_t more = reach_bytes(p->reach) + REACH_FIRST * 16,
		       then = owners_held(h->owners, OWNER_REACH) + more;

	return then <= MEMORY_PLACES ||
	       p->pub.owner->held[OWNER_REACH] + more <=
		       owners_share(h->owners, p->pub.owner, OWNER_REACH, MEMORY_PLACES);
}

/* Charges the growth of its addresses. */
static void charge_reach(struct host *h, struct process *p, size_t before)
{
	if (!p->reach)
		return;
	if (!p->reach_by)
		p->reach_by = owner_get(p->pub.owner);
	owner_hold(h->owners, p->reach_by, OWNER_REACH, reach_bytes(p->reach) - before);
}

int memory_begin(struct host *h, const struct msg_memory_request *m, uint64_t now_ns,
		 struct memory_read *ret)
{
	const struct reach_rules rules = { .of = rule_of, .ctx = h };
	size_t bytes = 0, within = 0;
	uint32_t keys = 0;

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
	*ret = (struct memory_read){ .process = p->pub.id,
				     .pid = p->pub.pid,
				     .payer = p->pub.owner,
				     .asked = m->addresses.len };
	for (uint32_t i = 0; i < m->addresses.len; i++) {
		const uint64_t n = reach_of(p->reach, m->addresses.data[i], m->lengths.data[i],
					    &rules);

		if (m->addresses.data[i] >= RUNTIME_KEYS)
			ret->keys[keys++] = m->addresses.data[i];
		if (!n)
			continue;
		ret->places[ret->pieces] = (uint8_t)i;
		ret->addresses[ret->pieces] = m->addresses.data[i];
		ret->lengths[ret->pieces++] = n;
		within += n;
	}
	within += keys ? MEMORY_KEYS + keys * MEMORY_KEY : 0;
	if (!within_rate(p, within, now_ns))
		return -EAGAIN;
	ret->key_count = keys;
	p->pub.owner->caused += within + ret->pieces * MEMORY_PIECE_COST;
	return ret->pieces || !ret->asked ? 0 : -EFAULT;
}

size_t memory_was_read(struct host *h, const struct memory_read *m, uint32_t piece,
		       struct span bytes)
{
	const struct reach_rules rules = { .of = rule_of, .ctx = h };
	struct process *p = process_find_alive(h, m->pid);

	if (!p || p->pub.id != m->process)
		return 0;
	const size_t before = reach_bytes(p->reach);
	const size_t n = reach_read(&p->reach, m->addresses[piece], bytes, &rules, may_grow(h, p));

	charge_reach(h, p, before);
	if (n > MEMORY_LONG)
		p->memory_long -= (int32_t)(n - MEMORY_LONG);
	return n;
}

static void item_was_sampled(struct process *p, uint64_t item, uint64_t time_ns, bool grow)
{
	if (item >> RUNTIME_ITEM_SHIFT == RUNTIME_FRAME ||
	    item >> RUNTIME_ITEM_SHIFT == RUNTIME_SECOND)
		reach_add(&p->reach, item & RUNTIME_ADDRESS_MASK,
			  item >> RUNTIME_ITEM_SLOT_SHIFT & RUNTIME_ITEM_SLOT_MASK, time_ns, grow);
}

void memory_was_sampled(struct host *h, const struct host_process *of, const struct sample *s)
{
	const bool taken = s->flags & SAMPLE_TAKEN;
	struct process *p = s->items || taken ? process_find_alive(h, of->pid) : NULL;
	const uint64_t *items = sample_items(s), *frames = sample_user_frames(s);

	if (!p || &p->pub != of)
		return;
	const size_t before = reach_bytes(p->reach);
	const bool grow = may_grow(h, p);

	for (uint32_t i = 0; i < s->items; i++)
		item_was_sampled(p, items[2 * i], s->time_ns, grow);
	for (uint32_t i = 0; taken && i < s->user_frames; i += sample_frame_words(frames[i])) {
		for (uint32_t k = 1; k < sample_frame_words(frames[i]) && i + k < s->user_frames;
		     k += 2)
			item_was_sampled(p, frames[i + k], s->time_ns, grow);
	}
	charge_reach(h, p, before);
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
	return !(p->flags & (MSG_PROCESS_SELF | MSG_PROCESS_KERNEL)) && p->exe &&
	       !(p->exe->mode & (S_ISUID | S_ISGID)) && !is_denied_name(p->exe->path);
}
