/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-metrics/page.h"

#include <inttypes.h>
#include "common/wire/msg.h"
#include "common/wire/reason.h"

static const char *const names[METRICS_TOOLS] = { "prof-bpf",	 "prof-deltas", "prof-symd",
						  "prof-export", "prof-send",	"prof-metrics",
						  "profpipe" };

static int head(struct buf *b, const char *name, const char *type, const char *help)
{
	return buf_printf(b, "# HELP profpipe_%s %s\n# TYPE profpipe_%s %s\n", name, help, name,
			  type);
}

/* Appends a metric with one value. */
static int one(struct buf *b, const char *name, const char *type, const char *help, uint64_t value)
{
	const int r = head(b, name, type, help);

	return r ? r : buf_printf(b, "profpipe_%s %" PRIu64 "\n", name, value);
}

static int print_lost(struct buf *b, const struct metrics_word *w)
{
	static const char name[] = "lost_total";
	int r = head(b, name, "counter", "Lost samples and other lost events, by reason.");

	for (unsigned i = 0; !r && i < STATUS_REASONS; i++) {
		const char *word = reason_lost_word(i);

		if (word && (w->lost[i] || reason_lost_is_samples(i)))
			r = buf_printf(b, "profpipe_%s{reason=\"%s\"} %" PRIu64 "\n", name, word,
				       w->lost[i]);
	}
	return r;
}

enum field { RUNS, RESTARTS, MEMORY };

/* Appends a metric with one value for each tool. */
static int each(struct buf *b, const struct metrics_word *w, const char *name, const char *type,
		const char *help, enum field field)
{
	int r = head(b, name, type, help);

	for (int i = 0; !r && i < METRICS_TOOLS; i++) {
		const struct metrics_tool *t = &w->tools[i];
		const uint64_t value = field == RUNS	   ? t->runs
				       : field == RESTARTS ? t->restarts
							   : t->memory_bytes;

		r = buf_printf(b, "profpipe_%s{tool=\"%s\"} %" PRIu64 "\n", name, names[i], value);
	}
	return r;
}

static int print_cpu(struct buf *b, const struct metrics_word *w)
{
	static const char name[] = "cpu_seconds_total";
	int r = head(b, name, "counter", "Cpu time of each tool.");

	for (int i = 0; !r && i < METRICS_TOOLS; i++)
		r = buf_printf(b, "profpipe_%s{tool=\"%s\"} %" PRIu64 ".%03u\n", name, names[i],
			       w->tools[i].cpu_ns / 1000000000u,
			       (unsigned)(w->tools[i].cpu_ns / 1000000u % 1000u));
	return r;
}

int page_print(struct buf *b, const struct metrics_word *w, bool up)
{
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} figures[] = {
		{ "up", "gauge",
		  "1 if the launcher reported within the last seconds, and prof-send, if there is "
		  "one, does not keep ending.",
		  up && !w->send_failed },
		{ "sampling", "gauge", "1 while samples are taken, 0 while sampling pauses.",
		  w->sampling },
		{ "samples_total", "counter", "Samples taken, including those lost later.",
		  w->samples },
		{ "samples_kept_total", "counter", "Samples that reached prof-export.",
		  w->written },
		{ "requests_total", "counter", "OTLP requests made.", w->requests },
		{ "requests_dropped_total", "counter",
		  "Requests dropped because there was no prof-send.", w->dropped },
		{ "requests_delivered_total", "counter",
		  "Requests that receivers took, over all endpoints.", w->delivered },
		{ "requests_lost_total", "counter", "Requests lost, over all endpoints.",
		  w->undelivered },
		{ "requests_retries_total", "counter", "Failed attempts that are repeated.",
		  w->retries },
		{ "requests_queued", "gauge", "Waiting requests, over all endpoints.", w->queued },
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(figures) / sizeof(figures[0]); i++)
		r = one(b, figures[i].name, figures[i].type, figures[i].help, figures[i].value);
	if (!r)
		r = print_lost(b, w);
	if (!r)
		r = each(b, w, "tool_up", "gauge", "1 if the tool runs.", RUNS);
	if (!r)
		r = each(b, w, "restarts_total", "counter", "Starts after the first.", RESTARTS);
	if (!r)
		r = each(b, w, "memory_bytes", "gauge", "Proportional set size.", MEMORY);
	return r ? r : print_cpu(b, w);
}
