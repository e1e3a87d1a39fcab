/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/meter.h"

#include <string.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"

#define SEARCH_NS 10000000000ull /* the end of a tool makes it search sooner */
#define LIST_NS 3000000000ull
#define SIBLINGS 1024 /* the command may leave its orphans to the launcher */
#define CHILDREN 160  /* children of one process of a tool; the keeper has most (workerpool.h) */
/* How long a proportional set size is used, and by which part or by how many bytes the resident set
 * size may change until then. */
#define PSS_NS 30000000000ull
#define PSS_PART 8
#define PSS_BYTES (256u << 10)

static const char *const names[METER_TOOLS] = {
	[DEPLOY_DELTAS] = "prof-deltas",  [DEPLOY_SYMD] = "prof-symd",
	[DEPLOY_EXPORT] = "prof-export",  [DEPLOY_SEND] = "prof-send",
	[METER_METRICS] = "prof-metrics",
};

static void add(struct meter_tool *t, uint32_t pid)
{
	if (t->pids < METER_PIDS)
		t->pid[t->pids++] = pid;
}

static void add_child(void *ctx, uint32_t pid)
{
	add(ctx, pid);
}

static uid_t user_of(const struct meter *m, int tool)
{
	const struct deploy *d = m->deploy;

	if (tool == METER_METRICS)
		return d->ids_given ? d->gid + DEPLOY_IDS_METRICS : d->uid[DEPLOY_BPF];
	return d->uid[tool];
}

static bool is_tool(const struct meter *m, int tool, uint32_t pid, const struct procfs_stat *st)
{
	uint32_t uid;

	return strlen(names[tool]) == st->comm_len &&
	       memcmp(names[tool], st->comm, st->comm_len) == 0 &&
	       procfs_read_uid(m->proc, pid, &uid) == 0 && uid == user_of(m, tool);
}

/* Adds a process that is one of the tools. */
static void look_at(void *ctx, uint32_t pid)
{
	struct meter *m = ctx;
	struct procfs_stat st;

	if (procfs_read_stat(m->proc, pid, &st))
		return;
	for (int i = 0; i < METER_TOOLS; i++)
		if (names[i] && is_tool(m, i, pid, &st))
			add(&m->tool[i], pid);
}

static void search(struct meter *m)
{
	memset(m->tool, 0, sizeof(m->tool));
	add(&m->tool[DEPLOY_BPF], (uint32_t)getpid());
	(void)procfs_each_child(m->proc, (uint32_t)getppid(), SIBLINGS, look_at, m);
}

/* Copies the cpu times of processes that still exist. */
static void keep_cpu(const struct meter_tool *then, const struct meter_tool *now,
		     uint64_t cpu_ns[static METER_PIDS])
{
	uint64_t was_ns[METER_PIDS];

	memcpy(was_ns, cpu_ns, sizeof(was_ns));
	for (unsigned k = 0; k < now->pids; k++) {
		unsigned at = 0;

		while (at < then->pids && then->pid[at] != now->pid[k])
			at++;
		cpu_ns[k] = at < then->pids ? was_ns[at] : 0;
	}
}

static void forget(struct meter_read *at)
{
	if (!at->pid)
		return;
	if (at->statm >= 0)
		close(at->statm);
	if (at->children >= 0)
		close(at->children);
	at->pid = 0;
}

/* Returns the entry of a process, which may be new and in place of the one unused for longest. */
static struct meter_read *entry_of(struct meter *m, uint32_t pid, uint64_t now_ns)
{
	struct meter_read *at = &m->reads[0];

	for (unsigned i = 0; i < METER_READS && at->pid != pid; i++) {
		struct meter_read *other = &m->reads[i];

		if (other->pid == pid || (at->pid && (!other->pid || other->used_ns < at->used_ns)))
			at = other;
	}
	if (at->pid != pid) {
		forget(at);
		*at = (struct meter_read){ .pid = pid,
					   .statm = procfs_open_statm(m->proc, pid),
					   .children = procfs_open_children(m->proc, pid) };
	}
	at->used_ns = now_ns;
	return at;
}

/* Finds the processes of the tools, and all their children, which come and go. */
static void list(struct meter *m, uint64_t now_ns)
{
	if (!m->searched_ns || now_ns - m->searched_ns > SEARCH_NS) {
		m->searched_ns = now_ns;
		search(m);
	}
	m->listed_ns = now_ns;
	for (int i = 0; i < METER_TOOLS; i++) {
		struct meter_tool *t = &m->family[i];
		const struct meter_tool then = *t;

		*t = m->tool[i];
		for (unsigned k = 0; k < t->pids; k++)
			(void)procfs_children_each(entry_of(m, t->pid[k], now_ns)->children,
						   CHILDREN, add_child, t);
		keep_cpu(&then, t, m->cpu_ns[i]);
	}
}

/* Handles the exit of a tool's process, which may have a successor. */
static void gone(struct meter *m, int tool, unsigned k)
{
	m->listed_ns = 0;
	if (k < m->tool[tool].pids)
		m->searched_ns = 0;
}

/* Adds what each process has used since it was last read. The time of processes that have exited
 * remains in the sum. If it fell, the total of the remaining processes would later count as used
 * now. */
static void read_cpu(struct meter *m, int tool)
{
	const struct meter_tool *t = &m->family[tool];

	for (unsigned k = 0; k < t->pids; k++) {
		uint64_t *was = &m->cpu_ns[tool][k];
		const uint64_t now = clock_cpu_ns((pid_t)t->pid[k]);

		if (!now) {
			gone(m, tool, k);
			continue;
		}
		m->spent_ns[tool] += now > *was ? now - *was : 0;
		*was = now;
	}
}

/* Reads the proportional set size. Between two readings, the change of the resident set size is
 * added to it. That is correct for private memory; other memory is mostly text, which hardly
 * changes. */
static int read_memory(struct meter *m, uint32_t pid, uint64_t now_ns, uint64_t *ret)
{
	struct meter_read *at = entry_of(m, pid, now_ns);
	uint64_t resident;
	int r = procfs_statm_resident(at->statm, &resident);

	if (r) {
		forget(at);
		return r;
	}
	const uint64_t change = resident > at->resident ? resident - at->resident
							: at->resident - resident;

	if (at->read_ns && now_ns - at->read_ns < PSS_NS &&
	    change <= numbers_larger(at->resident / PSS_PART, PSS_BYTES)) {
		*ret = resident > at->resident ? at->pss + change
		       : at->pss > change      ? at->pss - change
					       : 0;
		return 0;
	}
	r = procfs_read_pss(m->proc, pid, &at->pss);
	if (r) {
		forget(at);
		return r;
	}
	at->read_ns = now_ns;
	at->resident = resident;
	*ret = at->pss;
	return 0;
}

void meter_cpu(struct meter *m, uint64_t now_ns, uint64_t ret[static METER_TOOLS])
{
	if (!m->listed_ns || now_ns - m->listed_ns >= LIST_NS)
		list(m, now_ns);
	for (int i = 0; i < METER_TOOLS; i++) {
		read_cpu(m, i);
		ret[i] = m->spent_ns[i];
	}
}

void meter_read(struct meter *m, uint64_t now_ns, uint64_t ret[static METER_TOOLS])
{
	list(m, now_ns);
	for (int i = 0; i < METER_TOOLS; i++) {
		const struct meter_tool *t = &m->family[i];

		ret[i] = 0;
		for (unsigned k = 0; k < t->pids; k++) {
			uint64_t n;

			if (read_memory(m, t->pid[k], now_ns, &n))
				gone(m, i, k);
			else
				ret[i] += n;
		}
	}
}
