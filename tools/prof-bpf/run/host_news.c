/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/host_news.h"

#include "tools/prof-bpf/open/closing.h"
#include "tools/prof-bpf/run/prof.h"
#include "tools/prof-bpf/run/starting.h"
#include "tools/prof-bpf/stream/definitions.h"

/* Interpreters, and files of the selected programs, get their rows before the first sample. */
bool host_news_file_known(void *ctx, struct host_file *f)
{
	struct prof *p = ctx;
	const bool chosen = starting_takes_file(p);

	p->early_ticks.new_files = true;
	starting_load_early(p, f);
	offers_add(&p->offers, f, starting_is_chosen(p), clock_mono_ns());
	return chosen || f->offered;
}

void host_news_file_needs_rows(void *ctx, struct host_file *f, int fd)
{
	struct prof *p = ctx;
	const struct quarantine_key of = parser_deaths_key(f);

	p->routes.rows.due = p->early_ticks.new_files = true;
	if (parser_deaths_refuse(&p->deaths, QUARANTINE_ROWS, &of)) {
		closing_give(fd);
		tables_file_none(p->tables, f->slot);
		return;
	}
	(void)row_server_request(p->row_server, f->slot, fd, &of,
				 (struct str){ .data = f->path, .len = f->path_len },
				 host_file_owner(f));
}

void host_news_file_gone(void *ctx, struct host_file *f)
{
	struct prof *p = ctx;

	if (!p->output.emit)
		return;
	const struct emit_file gone = definition_of_file(f);

	output_emitted(&p->output, emit_file_end(p->output.emit, &gone));
}

void host_news_process_gone(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;
	struct emit_file exe;

	/* prof-bpf is still starting, on a host with more processes than it keeps. This process was
	 * not sent to any receiver. */
	if (!p->output.emit)
		return;
	struct emit_process gone = definition_of_process(h, &exe);

	output_emitted(&p->output, emit_process_end(p->output.emit, &gone, h->end_ns));
}

void host_news_attributes_known(void *ctx, struct host_process *h)
{
	struct prof *p = ctx;

	if (p->output.emit)
		samples_send_attributes(&p->samples, h);
}

void host_news_thread_gone(void *ctx, struct host_thread *t)
{
	struct prof *p = ctx;
	struct emit_file exe;
	struct emit_process of = definition_of_process(t->process, &exe);
	struct emit_thread gone = definition_of_thread(t);

	output_emitted(&p->output, emit_thread_end(p->output.emit, &of, &gone));
}

bool host_news_is_wanted(void *ctx, uint32_t pid, uint64_t exec_ns)
{
	const struct prof *p = ctx;

	return loader_wants(p->loader, pid, exec_ns);
}
