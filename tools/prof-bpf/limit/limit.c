/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include "common/base/bytes/numbers.h"
#include "common/walk/tables/tables.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/peers/file_server.h"

#define LOOK_NS 250000000ull  /* interval while memory is short */
#define CALM_NS 1000000000ull /* interval otherwise: a look costs half a millisecond */
#define REST_NS 3000000000ull /* interval while much is free */
#define HURRY_NS 100000000ull /* interval while prof-symd waits */
#define TRIM_NS 2000000000ull /* interval between two trims: a trim visits all free memory */

int limit_init(struct limit *l, const struct budget *budget, const struct deploy *deploy,
	       uint64_t fixed, uint64_t sure)
{
	l->budget = budget;
	l->fixed = fixed;
	l->sure = sure;
	l->symd = budget->symd;
	l->export = budget->export;
	l->meter.deploy = deploy;
	l->meter.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return l->meter.proc < 0 ? -errno : 0;
}

/* Divides the memory. more: bytes of arriving rows that do not fit yet. */
static void look(struct limit *l, uint64_t now_ns, uint64_t more)
{
	struct limit_asked a = { .symd = 0 };
	struct opener_figures copies;
	struct tables_figures f;
	uint64_t held = 0;

	/* Limited, since prof-symd may send any number. */
	a.symd = file_server_wanted(l->file_server);
	if (a.symd > 4 * l->budget->limit)
		a.symd = 4 * l->budget->limit;
	l->looked_ns = now_ns;
	a.lacking = tables_lacking(l->tables, &a.refused) + more;
	a.refused += more;
	meter_read(&l->meter, now_ns, a.held);
	/* No process maps the copies, so no process's memory includes them. */
	opener_figures(l->opener, &copies);
	if (a.held[DEPLOY_BPF])
		a.held[DEPLOY_BPF] += copies.copy_bytes;
	for (int i = 0; i < METER_TOOLS; i++)
		held += a.held[i];
	a.swing = limit_swing(&l->past, l->budget->limit, held, now_ns);
	tables_figures(l->tables, &f);
	a.tables = f.bytes;
	l->peak = numbers_larger(l->peak, l->fixed + l->budget->launcher + held + f.bytes);
	a.useful = tables_useful(l->tables);
	const uint64_t tables = limit_divide(l, l->budget, &a);

	if (!l->tables_fixed)
		tables_limit(l->tables, tables);
	file_server_grant(l->file_server, l->symd);
	const uint64_t used = l->fixed + l->budget->launcher + held + f.bytes;

	/* Memory that prof-bpf held for many owners may be free by now, but not yet returned to the
	 * kernel. Return it, so that the next look counts less. */
	if (a.lacking && a.held[DEPLOY_BPF] > l->budget->bpf && now_ns >= l->trimmed_ns + TRIM_NS) {
		l->trimmed_ns = now_ns;
		malloc_trim(0);
	}
	l->next_ns = now_ns + (a.lacking || tables < f.bytes + 2 * LIMIT_TABLES_MORE ? LOOK_NS
			       : used < l->budget->limit / 4 * 3		     ? REST_NS
										     : CALM_NS);
}

void limit_run(struct limit *l, uint64_t now_ns)
{
	/* By hand only prof-deltas is known, and the shares are fixed. */
	if (!l->file_server)
		return;
	/* prof-symd waits for memory, so look sooner. */
	if (now_ns >= l->asked_ns + HURRY_NS && l->next_ns > l->looked_ns + HURRY_NS) {
		const uint64_t wanted = file_server_wanted(l->file_server);

		l->asked_ns = now_ns;
		if (wanted > l->symd && wanted > l->budget->symd)
			l->next_ns = l->looked_ns + HURRY_NS;
	}
	if (now_ns >= l->next_ns)
		look(l, now_ns, 0);
}

void limit_rows(struct limit *l, uint64_t bytes, uint64_t now_ns)
{
	/* Memory that was granted to prof-symd but not taken goes to rows. */
	if (l->file_server && !tables_fit(l->tables, bytes))
		look(l, now_ns, bytes);
}

void limit_again(struct limit *l, uint64_t bytes, uint64_t now_ns)
{
	if (now_ns > l->looked_ns + HURRY_NS)
		limit_rows(l, bytes, now_ns);
}
