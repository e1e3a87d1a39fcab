/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/meter.h"

#include <string.h>
#include <unistd.h>
#include "common/walk/procfs.h"

#define SEARCH_NS 3000000000ull
#define SCAN_MAX_NS 300000000000ull
#define SIBLINGS 1024 /* searched: init may have many */
#define CHILDREN 16   /* of one process of a tool */

static const char *const names[DEPLOY_TOOLS] = {
	[DEPLOY_DELTAS] = "prof-deltas",
	[DEPLOY_SYMD] = "prof-symd",
	[DEPLOY_EXPORT] = "prof-export",
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

static bool is_tool(const struct meter *m, int tool, uint32_t pid, const struct procfs_stat *st)
{
	uint32_t uid;

	return strlen(names[tool]) == st->comm_len &&
	       memcmp(names[tool], st->comm, st->comm_len) == 0 &&
	       procfs_read_uid(m->proc, pid, &uid) == 0 && uid == m->deploy->uid[tool];
}

/* Adds a process that is one of the wanted tools. A child of a tool is counted with it. */
static void look_at(void *ctx, uint32_t pid)
{
	struct meter *m = ctx;
	struct procfs_stat st, parent;

	if (procfs_read_stat(m->proc, pid, &st))
		return;
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		if (m->wanted[i] && is_tool(m, i, pid, &st) &&
		    (procfs_read_stat(m->proc, st.parent_pid, &parent) ||
		     !is_tool(m, i, st.parent_pid, &parent)))
			add(&m->tool[i], pid);
	}
}

/* Notes which tools were not found. One that has no user of its own would not be known among all
 * processes. */
static bool is_any_missing(struct meter *m)
{
	bool any = false;

	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		m->wanted[i] = names[i] && m->deploy->uid[i] && !m->tool[i].pids;
		any |= m->wanted[i];
	}
	return any;
}

static void search(struct meter *m, uint64_t now_ns)
{
	memset(m->tool, 0, sizeof(m->tool));
	add(&m->tool[DEPLOY_BPF], (uint32_t)getpid());
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		m->wanted[i] = names[i];
	(void)procfs_each_child(m->proc, (uint32_t)getppid(), SIBLINGS, look_at, m);
	if (!is_any_missing(m)) {
		m->scan_every_ns = 0;
		return;
	}
	if (m->scan_every_ns && now_ns - m->scanned_ns < m->scan_every_ns)
		return;
	(void)procfs_each(m->proc, look_at, m);
	m->scanned_ns = now_ns;
	/* Less and less often, since a host may have many processes. */
	m->scan_every_ns = !is_any_missing(m)			? 0
			   : 2 * m->scan_every_ns > SCAN_MAX_NS ? SCAN_MAX_NS
								: 2 * m->scan_every_ns + SEARCH_NS;
}

/* Reads a figure of each process of each tool. If that fails, the process has exited and may have a
 * successor. */
static void read_all(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_TOOLS],
		     int (*read)(int proc, uint32_t pid, uint64_t *ret))
{
	if (!m->searched_ns || now_ns - m->searched_ns > SEARCH_NS) {
		m->searched_ns = now_ns;
		search(m, now_ns);
	}
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		/* Children come and go, so find them each time. */
		struct meter_tool t = m->tool[i];

		ret[i] = 0;
		for (unsigned k = 0; k < t.pids; k++) {
			uint64_t n;

			(void)procfs_each_child(m->proc, t.pid[k], CHILDREN, add_child, &t);
			if (read(m->proc, t.pid[k], &n) == 0)
				ret[i] += n;
			else if (k < m->tool[i].pids)
				m->searched_ns = 0;
		}
	}
}

static int read_cpu(int proc, uint32_t pid, uint64_t *ret)
{
	struct procfs_stat st;
	const int r = procfs_read_stat(proc, pid, &st);

	if (!r)
		*ret = st.cpu_ns;
	return r;
}

void meter_cpu(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_TOOLS])
{
	read_all(m, now_ns, ret, read_cpu);
}

void meter_read(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_TOOLS])
{
	read_all(m, now_ns, ret, procfs_read_pss);
}
