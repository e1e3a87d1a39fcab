/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/host/each_mapping.h"

#include "tools/prof-bpf/host/processes/processes.h"

void host_each_mapping(struct host *h, uint32_t pid,
		       void (*fn)(void *ctx, const struct host_process *p, uint64_t start,
				  uint64_t end, uint64_t offset, const struct host_file *file,
				  bool pending),
		       void *ctx)
{
	struct process *p, *next;

	HASH_ITER(hh, h->by_pid, p, next) {
		if (p->pub.end_ns || (pid && p->pub.pid != pid))
			continue;
		process_settle(h, p);
		for (uint32_t i = 0; p->maps && i < p->maps->len; i++) {
			const struct map *m = &p->maps->at[i];
			bool ready = m->backing && m->backing->state == FILES_BACKING_READY;

			fn(ctx, &p->pub, m->start, m->end, m->offset,
			   ready ? &m->backing->file->pub : NULL,
			   m->backing && !ready && m->backing->state != FILES_BACKING_FAILED);
		}
	}
}
