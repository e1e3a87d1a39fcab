/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/extractor_watch.h"

#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "tools/prof-bpf/peers/row_server.h"

void extractor_watch_look(struct extractor_watch *w, int proc, struct row_server *r,
			  uint64_t now_ns)
{
	if (now_ns < w->looked_ns + EXTRACTOR_WATCH_NS)
		return;
	w->looked_ns = now_ns;
	const uint32_t pid = row_server_pid(r);
	struct procfs_stat st;

	if (!pid || procfs_read_stat(proc, pid, &st) != 0 || st.state != 'D') {
		w->looks = 0;
		return;
	}
	/* prof-deltas takes some microseconds between two reads of a slow disk. The stat file
	 * counts in ticks, and does not show them. */
	const uint64_t cpu_ns = clock_cpu_ns((pid_t)pid);

	w->looks = pid == w->pid && cpu_ns == w->cpu_ns ? w->looks + 1 : 1;
	w->pid = pid;
	w->cpu_ns = cpu_ns;
	if (w->looks < EXTRACTOR_WATCH_LOOKS)
		return;
	w->looks = 0;
	row_server_blocked(r, now_ns);
}
