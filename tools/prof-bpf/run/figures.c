/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/figures.h"

#include "tools/prof-bpf/run/prof.h"

/* Includes samples that the ring lost: a loss is sent only once, perhaps to a prof-symd that dies
 * after that. */
uint64_t figures_taken(struct prof *p)
{
	struct loader_figures l;

	loader_figures(p->loader, &l);
	return p->samples.passed_on + p->samples.lost.queue_full + p->samples.lost.cpu_limited +
	       l.ring_full + loader_malformed(p->loader);
}

void figures_send(struct prof *p)
{
	struct loader_figures l;
	struct tables_figures t;
	struct host_figures h;
	struct row_server_figures r;
	struct opener_figures copies;
	struct workerpool_figures pool;

	loader_figures(p->loader, &l);
	tables_figures(p->tables, &t);
	host_figures(p->host, &h);
	row_server_figures(p->row_server, &r);
	opener_figures(p->opener, &copies);
	workerpool_figures(p->pool, &pool);
	p->status.ticks = l.ticks;
	const struct {
		const char *name;
		uint64_t value;
	} figures[] = {
		{ "bpf_runs", l.runs },
		{ "bpf_ns", l.ns },
		{ "map_bytes", l.map_bytes + t.bytes },
		{ "taken", figures_taken(p) },
		{ "skipped", l.skipped },
		{ "sampled_until",
		  p->lifecycle.sampled_ns ? p->lifecycle.sampled_ns : p->samples.drained_ns },
		{ "rows", t.rows },
		{ "rules", t.rules },
		{ "files", t.files },
		{ "evictions", t.evictions },
		{ "memory_enough", p->limit.enough },
		{ "memory_peak", p->limit.peak },
		{ "memory_export", p->limit.export },
		{ "processes", h.processes },
		{ "files_opened", h.opens },
		{ "rows_answered", r.answered },
		{ "rows_full", r.full },
		{ "copied_bytes", copies.copy_bytes },
		{ "copies_refused", copies.no_room },
		{ "openings_hung", pool.given_up },
		{ "openings_refused", pool.refused },
		{ "routes_failed", p->routes.rows.failures + p->routes.files.failures },
		{ "kernel_names_failed", kernel_names_failures(&p->names) },
		{ "quarantined", r.quarantined },
		{ "quarantine_refused", p->deaths.refused },
		{ "rows_aside", r.aside },
		{ "rows_cpu_ns", r.cpu_ns },
	};
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		output_emitted(&p->output,
			       emit_figure(p->output.emit, figures[i].name, figures[i].value));
}
