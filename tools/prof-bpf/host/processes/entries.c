/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/entries.h"

#include "common/base/bytes/numbers.h"
#include "tools/prof-bpf/host/processes/processes.h"

int entry_set(struct host *h, struct process *p, const struct tables_mapping *m, size_t n)
{
	/* A reading of /proc includes all earlier execs. */
	const uint64_t heard_ns = numbers_larger(h->heard_ns, p->scanned_ns);
	uint32_t generation;
	tables_charge_mappings(h->config.tables, p->pub.owner->number);
	int r = tables_process_set(h->config.tables, p->pub.pid, p->pub.start_ns, heard_ns, m, n,
				   p->pub.selected, &generation);

	if (r)
		return r;
	p->pub.generation = p->pub.last_generation = generation;
	p->entered = false;
	process_charge_entry(h, p);
	if (!p->pub.first_generation)
		p->pub.first_generation = generation;
	return 0;
}

/* Removes an entry: what the kernel's hook copied from its parent, what another program left, or
 * what names a slot that its file has lost. Its memory and slots may soon be used again. */
void entry_drop(struct host *h, struct process *p)
{
	/* A selected process is not sampled without an entry, so it gets an empty one. */
	if (h->config.only_selected && p->pub.selected && !entry_set(h, p, NULL, 0))
		return;
	if (p->entered || p->pub.generation)
		tables_process_drop(h->config.tables, p->pub.pid);
	p->entered = false;
	p->pub.generation = 0;
	process_charge_entry(h, p);
}
