/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of the model, and its figures in one struct status. */
#include "common/base/bytes/numbers.h"
#include "common/status/account.h"
#include "common/wire/reason.h"
#include "tools/prof-export/model/label.h"
#include "tools/prof-export/model/model_internal.h"

/* --- what is known --- */

const struct model_header *model_header(const struct model *m)
{
	return &m->header;
}

struct msg model_hello(const struct model *m)
{
	const struct model_header *h = &m->header;

	return (struct msg){ .id = MSG_HELLO,
			     .hello = { .schema = MSG_SCHEMA,
					.build = msg_build(),
					.kind = h->kind,
					.producer = h->producer,
					.arch = h->arch,
					.kernel = h->kernel,
					.hostname = h->hostname,
					.event = h->event,
					.unit = h->unit,
					.host_id = h->host_id,
					.kernel_build_id = { .data = h->build_id,
							     .len = h->build_id_len },
					.cpus = h->cpus,
					.hz = h->hz,
					.period = h->period,
					.mono_ns = m->clock.mono_ns,
					.wall_ns = m->clock.wall_ns,
					.boot_ns = m->clock.boot_ns } };
}

const struct model_totals *model_totals(const struct model *m)
{
	return &m->totals;
}

const struct epoch_process *model_process(const struct model *m, uint64_t id)
{
	const uint32_t slot = table_ids_get(&m->epoch.process_ids, id);

	return slot == TABLE_NONE ? NULL : &m->epoch.processes.data[slot];
}

const struct annotations *model_annotations(const struct model *m)
{
	return &m->epoch.annotations;
}

const struct model_clock *model_clock(const struct model *m)
{
	return &m->clock;
}

uint64_t model_began_ns(const struct model *m)
{
	return m->sampler.began_ns;
}

uint64_t model_sampled_until_ns(const struct model *m)
{
	return m->uptime.until_ns;
}

const struct definitions *model_definitions(const struct model *m)
{
	return &m->definitions;
}

static uint64_t start_ns(const struct model *m)
{
	if (m->uptime.first_ns)
		return m->uptime.first_ns;
	return numbers_smaller(m->totals.first_ns, m->header.mono_ns);
}

uint64_t model_start_wall_ns(const struct model *m)
{
	return m->header.wall_ns - (m->header.mono_ns - start_ns(m));
}

uint64_t model_duration_ns(const struct model *m)
{
	const struct model_totals *t = &m->totals;
	const uint64_t start = start_ns(m);
	uint64_t end = uptime_end_ns(&m->uptime);

	if (!end)
		end = numbers_larger(t->end_ns, t->last_ns);
	return end > start ? end - start : 0;
}

uint64_t model_period(const struct model *m)
{
	const struct model_totals *t = &m->totals;

	return m->header.period || !t->of_event ? m->header.period : t->value / t->of_event;
}

/* Estimates the samples missed between two prof-bpfs, at the average rate. */
static uint64_t unsampled(const struct model *m)
{
	const double came = (double)(m->totals.samples + reason_lost_samples(m->totals.lost)),
		     sampled = (double)uptime_sampled_ns(&m->uptime),
		     away = (double)m->uptime.unsampled_ns,
		     most = away / 1e9 * (double)m->header.hz * (double)m->header.cpus,
		     n = sampled > 0 ? came / sampled * away : 0, least = n < most ? n : most;

	return least < 1e18 ? (uint64_t)least : (uint64_t)1e18;
}

#define ACCESSOR(name, type) \
	size_t model_##name(const struct model *m, const struct model_##type **ret) \
	{ \
		*ret = m->definitions.name.data; \
		return m->definitions.name.len; \
	}
ACCESSOR(files, file)
ACCESSOR(functions, function)
ACCESSOR(frames, frame)
ACCESSOR(stacks, stack)
ACCESSOR(processes, process)
ACCESSOR(threads, thread)
ACCESSOR(buckets, bucket)

size_t model_shares(const struct model *m, const struct share **ret)
{
	*ret = m->shares.at;
	return SHARES_OWNERS + 1;
}

size_t model_strings(const struct model *m)
{
	return m->definitions.strings.len;
}

struct str model_string(const struct model *m, uint32_t i)
{
	return table_strings_get(&m->definitions.strings, i);
}

const uint32_t *model_frames_of(const struct model *m, const struct model_stack *s)
{
	return m->definitions.numbers.data + s->frames;
}

const uint32_t *model_functions_of(const struct model *m, const struct model_frame *f)
{
	return m->definitions.numbers.data + f->calls;
}

const uint32_t *model_lines_of(const struct model *m, const struct model_frame *f)
{
	return m->definitions.numbers.data + f->calls + f->count;
}

/* --- all figures --- */

static enum status_kind top_kind(const struct model_frame *f)
{
	return f->kind == MODEL_NATIVE	      ? STATUS_NATIVE
	       : f->kind == MODEL_KERNEL      ? STATUS_KERNEL
	       : f->kind == MODEL_INTERPRETED ? STATUS_INTERPRETED
					      : STATUS_OTHER;
}

void model_add_leaves(const struct model *m, struct hottest *h, struct pool *p)
{
	struct buf name = BUF_INIT(0);

	for (size_t i = 0; i < m->definitions.self.len; i++) {
		const struct model_frame *f = &m->definitions.frames.data[i];

		if (!m->definitions.self.data[i] || f->kind == MODEL_TRUNCATED)
			continue;
		buf_reset(&name);
		if (label_plain(&name, &m->definitions, f, 0) ||
		    !hottest_add(h, p, &name, top_kind(f), m->definitions.self.data[i]))
			break;
	}
	buf_done(&name);
}

static uint64_t sum(const uint64_t n[static 2])
{
	uint64_t both = n[0];

	model_add(&both, n[1]);
	return both;
}

static void fill_top(const struct model *m, struct status_top top[static STATUS_TOP])
{
	struct pool p = { .max = m->definitions.pool.max };
	struct hottest h = { 0 };

	hottest_add_all(&h, &p, &m->hottest);
	model_add_leaves(m, &h, &p);
	hottest_top(&h, top);
	hottest_done(&h, &p);
}

void model_status(const struct model *m, struct status *st, bool with_top)
{
	const struct model_totals *t = &m->totals;

	*st = (struct status){ .samples = t->samples,
			       .user_stacks = t->user_stacks,
			       .complete = t->complete,
			       .processes = t->processes,
			       .threads = t->threads,
			       .bpf_runs = t->bpf_runs,
			       .bpf_ns = t->bpf_ns,
			       .map_bytes = t->map_bytes,
			       .enough = t->memory_enough,
			       .memory_peak = t->memory_peak,
			       .first_complete_ns = t->first_complete_ns,
			       .duration_ns = model_duration_ns(m),
			       .unsampled_ns = m->uptime.unsampled_ns,
			       .unsampled = unsampled(m),
			       .witness_more = t->witness.more,
			       .witness_fewer = t->witness.fewer,
			       .witness_losses = t->witness.losses,
			       .left_out = t->left_out,
			       .skipped_messages = sum(t->skipped_messages),
			       .skipped_fields = sum(t->skipped_fields) };
	memcpy(st->truncated, t->truncated, sizeof(st->truncated));
	memcpy(st->lost, t->lost, sizeof(st->lost));
	memcpy(st->unnamed, t->unnamed, sizeof(st->unnamed));
	memcpy(st->restarts, m->launched.restarts, sizeof(st->restarts));
	memcpy(st->runtime_samples, t->runtime_samples, sizeof(st->runtime_samples));
	memcpy(st->runtime_truncated, t->runtime_truncated, sizeof(st->runtime_truncated));
	memcpy(st->runtime_unnamed, t->runtime_unnamed, sizeof(st->runtime_unnamed));
	const struct str event = str_cut(m->header.event, STATUS_EVENT - 1);

	if (event.len)
		memcpy(st->event, event.data, event.len);
	blames_most(&m->blames, &m->shares, st->blames);
	if (with_top)
		fill_top(m, st->top);
}
