/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/meter.h"

#include <string.h>
#include <unistd.h>
#include "common/walk/procfs.h"

#define SEARCH_NS 3000000000ull
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

/* Adds a sibling process that is a tool. */
static void look_at(void *ctx, uint32_t pid)
{
	struct meter *m = ctx;
	struct procfs_stat st;
	uint32_t uid;

	if (procfs_read_stat(m->proc, pid, &st))
		return;
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		if (names[i] && strlen(names[i]) == st.comm_len &&
		    memcmp(names[i], st.comm, st.comm_len) == 0 &&
		    procfs_read_uid(m->proc, pid, &uid) == 0 && uid == m->deploy->uid[i])
			add(&m->tool[i], pid);
	}
}

static void search(struct meter *m)
{
	memset(m->tool, 0, sizeof(m->tool));
	add(&m->tool[DEPLOY_BPF], (uint32_t)getpid());
	(void)procfs_each_child(m->proc, (uint32_t)getppid(), SIBLINGS, look_at, m);
}

void meter_read(struct meter *m, uint64_t now_ns, uint64_t ret[static DEPLOY_TOOLS])
{
	if (!m->searched_ns || now_ns - m->searched_ns > SEARCH_NS) {
		m->searched_ns = now_ns;
		search(m);
	}
	for (int i = 0; i < DEPLOY_TOOLS; i++) {
		/* Children come and go, so find them each time. */
		struct meter_tool t = m->tool[i];

		ret[i] = 0;
		for (unsigned k = 0; k < t.pids; k++) {
			uint64_t bytes;

			(void)procfs_each_child(m->proc, t.pid[k], CHILDREN, add_child, &t);
			if (procfs_read_pss(m->proc, t.pid[k], &bytes) == 0)
				ret[i] += bytes;
			else if (k < m->tool[i].pids)
				m->searched_ns = 0; /* it has exited, and may have a successor */
		}
	}
}
