/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/summary/summary.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/log.h"
#include "common/cell/deploy.h"
#include "common/status/account.h"
#include "common/wire/msg.h"
#include "common/wire/reason.h"

#define OWNER_LINES 6

static void print_bytes(FILE *out, uint64_t n)
{
	if (n >= 10u << 20)
		fprintf(out, "%.0f MiB", (double)n / (1 << 20));
	else if (n >= 1u << 20)
		fprintf(out, "%.1f MiB", (double)n / (1 << 20));
	else
		fprintf(out, "%.0f KiB", (double)n / 1024);
}

static struct str top_name(const struct status_top *t)
{
	return (struct str){ .data = t->name, .len = (uint32_t)strnlen(t->name, sizeof(t->name)) };
}

static struct str event_name(const struct status *f)
{
	return (struct str){ .data = f->event,
			     .len = (uint32_t)strnlen(f->event, sizeof(f->event)) };
}

/* Adds a name. The tool should have escaped it, but an attacker may control the tool. Escaping it
 * again also makes it valid UTF-8. */
static void add_name(cJSON *to, const char *key, struct str name)
{
	struct buf b = BUF_INIT(0);

	if (log_escape_again(&b, name, STATUS_NAME) == 0 && buf_append(&b, "", 1) == 0)
		cJSON_AddStringToObject(to, key, (const char *)b.data);
	buf_done(&b);
}

static void print_name(FILE *out, const char *before, struct str name)
{
	struct buf b = BUF_INIT(0);

	if (log_escape_again(&b, name, STATUS_NAME) == 0)
		fprintf(out, "%s%.*s", before, (int)b.len, (const char *)b.data);
	buf_done(&b);
}

/* If one part is unknown, the sum would be misleading. */
static bool memory_is_known(const struct summary *s)
{
	for (unsigned i = 0; i < s->cost_count; i++)
		if (!s->costs[i].pss_peak)
			return false;
	return true;
}

static void add_memory(cJSON *to, uint64_t bytes, bool known)
{
	if (known)
		cJSON_AddNumberToObject(to, "pss_bytes", (double)bytes);
	else
		cJSON_AddNullToObject(to, "pss_bytes");
}

static void print_notes(FILE *out, const struct summary *s)
{
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	const size_t n = account_notes(&s->figures, notes);

	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s\n", notes[i]);
	if (s->suspended_s > 0)
		fprintf(out,
			"the host was suspended for %.1f s in between, which no time here counts\n",
			s->suspended_s);
}

/* Prints the buffer and frees it. */
static void print_words(FILE *out, struct buf *b)
{
	fwrite(b->data, 1, b->len, out);
	buf_done(b);
}

static void print_count(FILE *out, uint64_t n, const char *noun)
{
	struct buf b = BUF_INIT(0);

	(void)account_count(&b, n, noun);
	print_words(out, &b);
}

static void print_lines(FILE *out, const char *head, const struct status *f, enum account_kind kind)
{
	struct account_line lines[ACCOUNT_LINES];
	const size_t n = account_lines(f, lines);
	char share[ACCOUNT_SHARE];

	for (size_t i = 0; i < n; i++) {
		const struct account_line *l = &lines[i];

		if (l->kind != kind)
			continue;
		fprintf(out, "%s  %8lu", head, l->count);
		head = "";
		account_share(share, l->count, f->samples);
		if (kind == ACCOUNT_TRUNCATED || kind == ACCOUNT_UNNAMED)
			fprintf(out, "  %8s", share);
		if (l->what)
			fprintf(out, "  %s, %s: %s\n", l->word, l->what, l->text);
		else
			fprintf(out, "  %s: %s\n", l->word, l->text);
	}
}

/* Prints the owners whose samples were truncated, lost or left without names for lack of shared
 * resources. */
static void print_owners(FILE *out, const struct status *f)
{
	const char *head = "for lack of shared resources, by owner:\n";

	for (unsigned i = 0, shown = 0; i < STATUS_BLAMES && shown < OWNER_LINES; i++) {
		const struct status_blame *b = &f->blames[i];

		if (!account_is_share(b))
			continue;
		fprintf(out,
			deploy_is_tool(account_uid(b)) ? "%s  %8lu  profpipe (user %u)"
						       : "%s  %8lu  user %u",
			head, b->samples, account_uid(b));
		if (account_container(b))
			fprintf(out, " in container %u", account_container(b));
		fprintf(out, ": %s: %s\n", account_harm_word(b), account_blame_word(b));
		head = "";
		shown++;
	}
}

static void print_delivery(FILE *out, const struct delivery *d)
{
	struct buf b = BUF_INIT(0);

	if (!d || !d->endpoints)
		return;
	(void)delivery_print(&b, d);
	print_words(out, &b);
	fputs("\n", out);
}

void summary_print(FILE *out, const struct summary *s)
{
	const struct status *f = &s->figures;
	struct buf scope = BUF_INIT(0);
	char share[ACCOUNT_SHARE];

	print_count(out, f->samples, "sample");
	fprintf(out, " in %.1f s at %u Hz", (double)f->duration_ns / 1e9, s->hz);
	if (f->event[0])
		print_name(out, " of ", event_name(f));
	fputs(", ", out);
	(void)account_scope(&scope, f);
	print_words(out, &scope);
	fputs("\n", out);
	print_lines(out, "truncated:\n", f, ACCOUNT_TRUNCATED);
	print_lines(out, "without some of their names:\n", f, ACCOUNT_UNNAMED);
	print_lines(out, "remedies:\n", f, ACCOUNT_REMEDY);
	if (!reason_lost_samples(f->lost) || account_falsified(f))
		fprintf(out, "%s\n", account_loss(f));
	print_lines(out, "lost:\n", f, ACCOUNT_LOST);
	print_owners(out, f);
	print_lines(out, "other losses:\n", f, ACCOUNT_MISSED);
	print_notes(out, s);
	if (f->cut)
		fputs("the stream ended early: the part that arrived was written\n", out);
	print_delivery(out, s->delivery);
	if (f->top[0].self)
		fputs("hottest functions (samples in the function itself):\n", out);
	for (unsigned i = 0; i < STATUS_TOP && f->top[i].self; i++) {
		account_share(share, f->top[i].self, f->samples);
		fprintf(out, "  %8lu  %8s", f->top[i].self, share);
		print_name(out, "  ", top_name(&f->top[i]));
		fprintf(out, "%s\n", account_mark(f->top[i].kind));
	}
	fputs("cost:", out);
	double cpu = 0, start = 0;
	for (unsigned i = 0; i < s->cost_count; i++) {
		const struct summary_cost *c = &s->costs[i];

		fprintf(out, "%s %s %.2f s", i ? ";" : "", c->tool, c->cpu_s);
		if (c->pss_peak) {
			fputs(", ", out);
			print_bytes(out, c->pss_peak);
		}
		cpu += c->cpu_s;
		start += c->start_cpu_s;
	}
	fprintf(out, "\n      in all %.2f s of cpu, %.2f s of it until sampling began; ", cpu,
		start);
	if (memory_is_known(s)) {
		print_bytes(out, s->pss_peak);
		fputs(" of memory and ", out);
	} else {
		fputs("an unknown amount of memory (not every tool's can be read), and ", out);
	}
	print_bytes(out, f->map_bytes);
	fputs(" of BPF maps", out);
	if (f->memory_peak) {
		fputs(", at most ", out);
		print_bytes(out, f->memory_peak);
		fputs(" at one time", out);
	}
	if (f->bpf_runs)
		fprintf(out, "; BPF %.1f us a sample, %.3f s in all",
			(double)f->bpf_ns / (double)f->bpf_runs / 1000.0, (double)f->bpf_ns / 1e9);
	fputs("\n", out);
}

void summary_progress(FILE *out, double elapsed_s, const struct status *st, const char *what)
{
	char share[ACCOUNT_SHARE];

	account_share(share, st->complete, st->samples);
	fprintf(out, "\r\033[K%s %.1f s  ", what, elapsed_s);
	print_count(out, st->samples, "sample");
	fputs("  ", out);
	print_count(out, st->processes, "process");
	fprintf(out, "  %s complete  %lu lost", share, reason_lost_samples(st->lost));
	fflush(out);
}

static void add_remedy(cJSON *to, const struct account_line *l)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "name", l->word);
	cJSON_AddNumberToObject(o, "samples", (double)l->count);
	cJSON_AddStringToObject(o, "what", l->what);
	cJSON_AddStringToObject(o, "remedy", l->text);
	cJSON_AddItemToArray(to, o);
}

/* Adds the truncated, lost and unnamed samples of each owner, by reason. */
static void add_owners(cJSON *to, const struct status *f)
{
	for (unsigned i = 0; i < STATUS_BLAMES && f->blames[i].samples; i++) {
		const struct status_blame *b = &f->blames[i];
		cJSON *o = NULL, *at;

		cJSON_ArrayForEach(at, to)
		{
			const cJSON *uid = cJSON_GetObjectItem(at, "uid"),
				    *container = cJSON_GetObjectItem(at, "container");

			if (uid->valuedouble == account_uid(b) &&
			    container->valuedouble == account_container(b))
				o = at;
		}
		if (!o) {
			o = cJSON_CreateObject();
			cJSON_AddNumberToObject(o, "uid", account_uid(b));
			cJSON_AddNumberToObject(o, "container", account_container(b));
			cJSON_AddObjectToObject(o, "truncated");
			cJSON_AddObjectToObject(o, "lost");
			cJSON_AddObjectToObject(o, "unnamed");
			cJSON_AddItemToArray(to, o);
		}
		cJSON_AddNumberToObject(cJSON_GetObjectItem(o, account_harm_word(b)),
					account_blame_word(b), (double)b->samples);
	}
}

static void add_delivery(cJSON *to, const struct delivery *d)
{
	if (!d || !d->endpoints)
		return;
	cJSON *o = cJSON_AddObjectToObject(to, "otlp");
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = { { "endpoints", d->endpoints },
		       { "requests", d->requests },
		       { "samples", d->samples },
		       { "delivered", d->delivered },
		       { "delivered_samples", d->delivered_samples },
		       { "lost", d->lost },
		       { "kept", d->kept },
		       { "unknown", d->unknown },
		       { "dropped_away", d->away },
		       { "dropped_slow", d->slow },
		       { "dropped_samples", d->dropped_samples },
		       { "outside", d->outside },
		       { "restarts", d->restarts } };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		cJSON_AddNumberToObject(o, counts[i].name, (double)counts[i].n);
}

int summary_json(int fd, const struct summary *s)
{
	const struct status *f = &s->figures;
	cJSON *j = cJSON_CreateObject();
	double cpu = 0, start = 0;

	cJSON_AddNumberToObject(j, "samples", (double)f->samples);
	cJSON_AddNumberToObject(j, "user_stacks", (double)f->user_stacks);
	cJSON_AddNumberToObject(j, "complete", (double)f->complete);
	char share[ACCOUNT_SHARE];

	account_share(share, f->complete, f->samples);
	cJSON_AddNumberToObject(j, "complete_percent", strtod(share, NULL));
	cJSON_AddNumberToObject(j, "processes", (double)f->processes);
	cJSON_AddNumberToObject(j, "threads", (double)f->threads);
	cJSON *truncated = cJSON_AddObjectToObject(j, "truncated"),
	      *unnamed = cJSON_AddObjectToObject(j, "unnamed"),
	      *lost = cJSON_AddObjectToObject(j, "lost"),
	      *missed = cJSON_AddObjectToObject(j, "missed");
	cJSON *remedies = cJSON_AddArrayToObject(j, "remedies");
	struct account_line lines[ACCOUNT_LINES];
	const size_t n = account_lines(f, lines);
	cJSON *const kinds[ACCOUNT_KINDS] = { truncated, unnamed, lost, missed };

	for (size_t i = 0; i < n; i++) {
		const struct account_line *l = &lines[i];

		if (l->kind == ACCOUNT_REMEDY)
			add_remedy(remedies, l);
		else
			cJSON_AddNumberToObject(kinds[l->kind], l->word, (double)l->count);
	}
	add_owners(cJSON_AddArrayToObject(j, "owners"), f);
	cJSON_AddStringToObject(j, "loss", account_loss(f));
	cJSON *noted = cJSON_AddArrayToObject(j, "notes");
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	const size_t note_count = account_notes(f, notes);

	for (size_t i = 0; i < note_count; i++)
		cJSON_AddItemToArray(noted, cJSON_CreateString(notes[i]));
	if (account_enough_mib(f))
		cJSON_AddNumberToObject(j, "memory_enough_mib", (double)account_enough_mib(f));
	cJSON_AddNumberToObject(j, "lost_total", (double)reason_lost_samples(f->lost));
	cJSON *restarts = cJSON_AddObjectToObject(j, "restarts");
	for (unsigned i = 0; i < STATUS_TOOLS; i++)
		if (f->restarts[i])
			cJSON_AddNumberToObject(restarts, account_tool(i), (double)f->restarts[i]);
	add_delivery(j, s->delivery);
	cJSON *witness = cJSON_AddObjectToObject(j, "witness");

	cJSON_AddNumberToObject(witness, "more", (double)f->witness_more);
	cJSON_AddNumberToObject(witness, "fewer", (double)f->witness_fewer);
	cJSON_AddNumberToObject(witness, "losses", (double)f->witness_losses);
	cJSON_AddNumberToObject(j, "unsampled_s", (double)f->unsampled_ns / 1e9);
	cJSON_AddNumberToObject(j, "unsampled_samples", (double)f->unsampled);
	cJSON_AddNumberToObject(j, "left_out", (double)f->left_out);
	cJSON_AddNumberToObject(j, "skipped_messages", (double)f->skipped_messages);
	cJSON_AddNumberToObject(j, "skipped_fields", (double)f->skipped_fields);
	cJSON_AddNumberToObject(j, "suspended_s", s->suspended_s);
	cJSON_AddBoolToObject(j, "cut", f->cut != 0);
	add_name(j, "event", event_name(f));
	cJSON_AddNumberToObject(j, "hz", s->hz);
	cJSON_AddNumberToObject(j, "duration_s", (double)f->duration_ns / 1e9);
	if (s->first_complete_s >= 0)
		cJSON_AddNumberToObject(j, "first_complete_sample_s", s->first_complete_s);
	cJSON_AddStringToObject(j, "format", s->format);
	cJSON *top = cJSON_AddArrayToObject(j, "top");
	for (unsigned i = 0; i < STATUS_TOP && f->top[i].self; i++) {
		cJSON *t = cJSON_CreateObject();
		add_name(t, "name", top_name(&f->top[i]));
		cJSON_AddStringToObject(t, "kind", account_top_kind(f->top[i].kind));
		cJSON_AddNumberToObject(t, "self", (double)f->top[i].self);
		cJSON_AddItemToArray(top, t);
	}
	cJSON *cost = cJSON_AddObjectToObject(j, "cost"),
	      *tools = cJSON_AddObjectToObject(cost, "tools");
	for (unsigned i = 0; i < s->cost_count; i++) {
		cJSON *t = cJSON_AddObjectToObject(tools, s->costs[i].tool);

		cJSON_AddNumberToObject(t, "cpu_s", s->costs[i].cpu_s);
		cJSON_AddNumberToObject(t, "start_cpu_s", s->costs[i].start_cpu_s);
		add_memory(t, s->costs[i].pss_peak, s->costs[i].pss_peak != 0);
		cpu += s->costs[i].cpu_s;
		start += s->costs[i].start_cpu_s;
	}
	cJSON_AddNumberToObject(cost, "cpu_s", cpu);
	cJSON_AddNumberToObject(cost, "start_cpu_s", start);
	add_memory(cost, s->pss_peak, memory_is_known(s));
	cJSON_AddNumberToObject(cost, "map_bytes", (double)f->map_bytes);
	if (f->memory_peak)
		cJSON_AddNumberToObject(cost, "memory_peak_bytes", (double)f->memory_peak);
	cJSON_AddNumberToObject(cost, "bpf_ns_total", (double)f->bpf_ns);
	cJSON_AddNumberToObject(cost, "bpf_runs", (double)f->bpf_runs);
	cJSON_AddNumberToObject(cost, "bpf_ns_per_sample",
				f->bpf_runs ? (double)f->bpf_ns / (double)f->bpf_runs : 0);
	cJSON_AddNumberToObject(cost, "output_bytes", (double)f->bytes);

	char *text = cJSON_Print(j);
	cJSON_Delete(j);
	if (!text)
		return -ENOMEM;
	int r = dprintf(fd, "%s\n", text) < 0 ? -errno : 0;
	free(text);
	return r;
}
