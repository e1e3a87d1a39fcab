/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/meter.h"

#include <string.h>
#include <unistd.h>
#include "common/walk/procfs.h"

#define SEARCH_NS 3000000000ull
#define SCAN_MAX_NS 300000000000ull
#define SIBLINGS 1024 /* searched: init may have many */
#define CHILDREN 16   /* of one process of a tool */
/* How long a proportional set size holds, and by which part of the resident one it may differ. */
#define PSS_NS 10000000000ull
#define PSS_PART 8

static const char *const names[DEPLOY_USERS] = {
	[DEPLOY_DELTAS] = "prof-deltas",
	[DEPLOY_SYMD] = "prof-symd",
	[DEPLOY_EXPORT] = "prof-export",
	[DEPLOY_SEND] = "prof-send",
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
	for (int i = 0; i < DEPLOY_USERS; i++) {
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

	for (int i = 0; i < DEPLOY_USERS; i++) {
		m->wanted[i] = names[i] && m->deploy->uid[i] && !m->tool[i].pids &&
			       (i != DEPLOY_SEND || m->deploy->send_given);
		any |= m->wanted[i];
	}
	return any;
}

static void search(struct meter *m, uint64_t now_ns)
{
	memset(m->tool, 0, sizeof(m->tool));
	add(&m->tool[DEPLOY_BPF], (uint32_t)getpid());
	for (int i = 0; i < DEPLOY_USERS; i++)
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
static void read_all(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_USERS],
		     int (*read)(struct meter *m, uint32_t pid, uint64_t now_ns, uint64_t *ret))
{
	if (!m->searched_ns || now_ns - m->searched_ns > SEARCH_NS) {
		m->searched_ns = now_ns;
		search(m, now_ns);
	}
	for (int i = 0; i < DEPLOY_USERS; i++) {
		/* Children come and go, so find them each time. */
		struct meter_tool t = m->tool[i];

		ret[i] = 0;
		for (unsigned k = 0; k < t.pids; k++) {
			uint64_t n;

			(void)procfs_each_child(m->proc, t.pid[k], CHILDREN, add_child, &t);
			if (read(m, t.pid[k], now_ns, &n) == 0)
				ret[i] += n;
			else if (k < m->tool[i].pids)
				m->searched_ns = 0;
		}
	}
}

static int read_cpu(struct meter *m, uint32_t pid, uint64_t now_ns, uint64_t *ret)
{
	struct procfs_stat st;
	const int r = procfs_read_stat(m->proc, pid, &st);

	(void)now_ns;
	if (!r)
		*ret = st.cpu_ns;
	return r;
}

/* What is known of a process, or else the place of the one that was read longest ago. */
static struct meter_read *place_of(struct meter *m, uint32_t pid)
{
	struct meter_read *oldest = &m->reads[0];

	for (unsigned i = 0; i < METER_READS; i++) {
		if (m->reads[i].pid == pid)
			return &m->reads[i];
		if (m->reads[i].read_ns < oldest->read_ns)
			oldest = &m->reads[i];
	}
	return oldest;
}

/* The proportional set size. Between two readings it has changed by as much as the resident set
 * size. That is so for private memory; other memory is mostly text, which hardly changes. */
static int read_memory(struct meter *m, uint32_t pid, uint64_t now_ns, uint64_t *ret)
{
	struct meter_read *at = place_of(m, pid), new = { .pid = pid, .read_ns = now_ns };
	int r = procfs_read_resident(m->proc, pid, &new.resident);

	if (r)
		return r;
	const uint64_t change = new.resident > at->resident ? new.resident - at->resident
							    : at->resident - new.resident;

	if (at->pid == pid && now_ns - at->read_ns < PSS_NS && change <= at->resident / PSS_PART) {
		*ret = new.resident > at->resident ? at->pss + change
		       : at->pss > change	   ? at->pss - change
						   : 0;
		return 0;
	}
	r = procfs_read_pss(m->proc, pid, &new.pss);
	if (r)
		return r;
	*at = new;
	*ret = new.pss;
	return 0;
}

void meter_cpu(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_USERS])
{
	read_all(m, now_ns, ret, read_cpu);
}

void meter_read(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_USERS])
{
	read_all(m, now_ns, ret, read_memory);
}
