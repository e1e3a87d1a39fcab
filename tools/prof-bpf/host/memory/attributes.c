/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/memory/attributes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/memory/memory.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/open/readers/startreader.h"

/* Keys from OpenTelemetry's conventions. */
#define KEY_COMMAND_LINE "process.command_args"
#define KEY_VARIABLE "process.environment_variable."
#define KEY_MAX (sizeof(KEY_VARIABLE) + SAMPLING_ENV_NAME_MAX)

static void reading_free(struct process_attributes_reading *r)
{
	if (r->process)
		r->process->attributes_reading = NULL;
	if (r->host)
		DL_DELETE(r->host->attributes_readings, r);
	free(r->got);
	free(r);
}

/* Copies the values that a worker found. NULL: there are none, or no memory. */
static struct process_attributes *collect(const struct startreader_result *result, bool variables)
{
	struct process_attributes *a = malloc(sizeof(*a) + result->values.len);
	struct span rest = result->values;
	unsigned which;
	struct str value;

	if (!a)
		return NULL;
	*a = (struct process_attributes){ .owner = NULL };
	while (environment_next(&rest, &which, &value)) {
		if (a->count == ENVIRONMENT_VALUES ||
		    (which != ENVIRONMENT_COMMAND_LINE && !variables))
			continue;
		memcpy(a->text + a->bytes, value.data, value.len);
		a->at[a->count++] = (struct process_attributes_value){ .which = (uint16_t)which,
								       .len = (uint16_t)value.len };
		a->bytes += value.len;
	}
	if (a->count)
		return a;
	free(a);
	return NULL;
}

static void on_done(void *ctx, const struct startreader_result *result)
{
	struct process_attributes_reading *r = ctx;

	if (r->process && !result->status && result->exe_same)
		r->got = collect(result, !(result->exe_mode & (S_ISUID | S_ISGID)));
	if (!r->got) {
		reading_free(r);
		return;
	}
	r->done_ns = clock_mono_ns();
}

static void on_drop(void *ctx)
{
	reading_free(ctx);
}

void attributes_want(struct host *h, struct process *p)
{
	struct startreader_request q = {
		.pid = p->pub.pid,
		.payer = p->pub.owner,
		.wanted = h->config.environment,
		.done = on_done,
		.drop = on_drop,
	};

	if ((!q.wanted.count && !q.wanted.command_line) || p->attributes || p->attributes_reading ||
	    p->pub.end_ns || p->pub.flags & (MSG_PROCESS_KERNEL | MSG_PROCESS_SELF))
		return;
	if (q.wanted.count && !memory_may_look(h, &p->pub))
		q.wanted.count = 0;
	if (!q.wanted.count && !q.wanted.command_line)
		return;
	struct process_attributes_reading *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->host = h;
	r->process = p;
	p->attributes_reading = r;
	DL_APPEND(h->attributes_readings, r);
	q.ctx = r;
	if (startreader_submit(h->config.pool, &q))
		reading_free(r);
}

/* Whether the owner may have this many more bytes. An eighth is left to those with less than their
 * share. */
static bool has_room(const struct host *h, const struct owner *w, uint64_t n)
{
	const uint64_t then = owners_held(h->owners, OWNER_ATTRIBUTES) + n,
		       open = h->attributes_max / 8 * 7;

	return then <= open || (then <= h->attributes_max &&
				w->held[OWNER_ATTRIBUTES] + n <=
					owners_share(h->owners, w, OWNER_ATTRIBUTES, open));
}

static void keep(struct host *h, struct process *p, struct process_attributes *a)
{
	struct owner *w = p->pub.owner;

	if (!has_room(h, w, a->bytes)) {
		owner_refuse(w, OWNER_ATTRIBUTES, 1);
		h->figures.limit++;
		free(a);
		return;
	}
	a->owner = owner_get(w);
	owner_hold(h->owners, w, OWNER_ATTRIBUTES, a->bytes);
	p->attributes = a;
	p->pub.has_attributes = true;
	if (h->config.attributes_known)
		h->config.attributes_known(h->config.ctx, &p->pub);
}

void attributes_tick(struct host *h)
{
	struct process_attributes_reading *r, *next;

	DL_FOREACH_SAFE(h->attributes_readings, r, next) {
		struct process *p = r->process;

		if (!r->done_ns || h->heard_ns < r->done_ns)
			continue;
		struct process_attributes *a = r->got;

		r->got = NULL;
		reading_free(r);
		/* Otherwise the process ran another program by then, or another process has its
		 * pid. */
		if (p && process_find(h, p->pub.pid) == p)
			keep(h, p, a);
		else
			free(a);
	}
}

void attributes_free(struct host *h)
{
	struct process_attributes_reading *r, *next;

	DL_FOREACH_SAFE(h->attributes_readings, r, next) {
		if (r->process)
			r->process->attributes_reading = NULL;
		r->process = NULL;
		if (r->done_ns) {
			reading_free(r);
			continue;
		}
		DL_DELETE(h->attributes_readings, r);
		r->host = NULL;
	}
}

void attributes_each(const struct host *h, const struct host_process *p, attributes_fn *fn,
		     void *ctx)
{
	const struct process_attributes *a = ((const struct process *)p)->attributes;
	const char *at = a ? a->text : NULL;

	for (unsigned i = 0; a && i < a->count; i++) {
		const struct process_attributes_value *v = &a->at[i];
		const struct str value = { .data = at, .len = v->len };
		char key[KEY_MAX] = KEY_COMMAND_LINE;

		if (v->which != ENVIRONMENT_COMMAND_LINE)
			snprintf(key, sizeof(key), KEY_VARIABLE "%s",
				 v->which < h->config.environment.count
					 ? h->config.environment.names[v->which]
					 : "");
		at += v->len;
		fn(ctx, str_from(key), value);
	}
}
