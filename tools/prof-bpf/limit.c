/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit.h"

#include <errno.h>
#include <fcntl.h>
#include "tools/prof-bpf/prof.h"

#define LOOK_NS 250000000ull  /* while something is short */
#define CALM_NS 1000000000ull /* else: a look costs half a millisecond */
#define HURRY_NS 100000000ull /* while prof-symd waits */

int limit_init(struct prof *p, uint64_t fixed, uint64_t tables)
{
	struct limit *l = &p->limit;

	*l = (struct limit){ .fixed = fixed,
			     .tables = tables,
			     .symd = p->budget.symd,
			     .export = p->budget.export,
			     .meter = { .deploy = &p->options.deploy } };
	l->meter.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return l->meter.proc < 0 ? -errno : 0;
}

void limit_run(struct prof *p, uint64_t now_ns)
{
	struct limit *l = &p->limit;
	struct limit_asked a = { .symd = 0 };
	struct tables_figures f;

	/* By hand nobody but prof-deltas is known, and the shares stand. */
	if (!p->filesrv)
		return;
	/* It may say anything. */
	a.symd = filesrv_wanted(p->filesrv);
	if (a.symd > 4 * p->budget.limit)
		a.symd = 4 * p->budget.limit;
	/* It waits for what it wants. */
	if (a.symd > l->symd && l->next_ns > l->looked_ns + HURRY_NS)
		l->next_ns = l->looked_ns + HURRY_NS;
	if (now_ns < l->next_ns)
		return;
	l->looked_ns = now_ns;
	a.lacking = tables_lacking(p->tables);
	meter_read(&l->meter, now_ns, a.held);
	tables_figures(p->tables, &f);
	a.tables = f.bytes;
	a.useful = tables_useful(p->tables);
	const uint64_t tables = limit_divide(l, &p->budget, &a);

	if (!p->options.table_bytes)
		tables_limit(p->tables, tables);
	filesrv_grant(p->filesrv, l->symd);
	l->next_ns = now_ns +
		     (a.lacking || tables < f.bytes + 2 * LIMIT_TABLES_MORE ? LOOK_NS : CALM_NS);
}
