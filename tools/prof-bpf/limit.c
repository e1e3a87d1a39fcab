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

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Divides. more: bytes of rows that have come, and have no room yet. */
static void look(struct prof *p, uint64_t now_ns, uint64_t more)
{
	struct limit *l = &p->limit;
	struct limit_asked a = { .symd = 0 };
	struct tables_figures f;
	uint64_t held = 0;

	/* It may say anything. */
	a.symd = filesrv_wanted(p->filesrv);
	if (a.symd > 4 * p->budget.limit)
		a.symd = 4 * p->budget.limit;
	l->looked_ns = now_ns;
	a.lacking = tables_lacking(p->tables, &a.refused) + more;
	a.refused += more;
	meter_read(&l->meter, now_ns, a.held);
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		held += a.held[i];
	a.swing = limit_swing(&l->past, p->budget.limit, held, now_ns);
	tables_figures(p->tables, &f);
	a.tables = f.bytes;
	l->peak = larger(l->peak, l->fixed + p->budget.launcher + held + f.bytes);
	a.useful = tables_useful(p->tables);
	const uint64_t tables = limit_divide(l, &p->budget, &a);

	if (!p->options.table_bytes)
		tables_limit(p->tables, tables);
	filesrv_grant(p->filesrv, l->symd);
	l->next_ns = now_ns +
		     (a.lacking || tables < f.bytes + 2 * LIMIT_TABLES_MORE ? LOOK_NS : CALM_NS);
}

void limit_run(struct prof *p, uint64_t now_ns)
{
	struct limit *l = &p->limit;

	/* By hand nobody but prof-deltas is known, and the shares stand. */
	if (!p->filesrv)
		return;
	/* It waits for what it wants. */
	if (filesrv_wanted(p->filesrv) > l->symd && filesrv_wanted(p->filesrv) > p->budget.symd &&
	    l->next_ns > l->looked_ns + HURRY_NS)
		l->next_ns = l->looked_ns + HURRY_NS;
	if (now_ns >= l->next_ns)
		look(p, now_ns, 0);
}

void limit_rows(struct prof *p, uint64_t bytes, uint64_t now_ns)
{
	/* What is granted to prof-symd, and not taken, goes to rows. */
	if (p->filesrv && !tables_fit(p->tables, bytes))
		look(p, now_ns, bytes);
}

void limit_again(struct prof *p, uint64_t bytes, uint64_t now_ns)
{
	if (now_ns > p->limit.looked_ns + HURRY_NS)
		limit_rows(p, bytes, now_ns);
}
