/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/model_internal.h"

#include <errno.h>
#include "common/base/bytes/numbers.h"
#include "common/cell/budget/budget.h"
#include "common/status/account.h"
#include "common/wire/reason.h"
#include "tools/prof-export/model/owners/weight.h"

/* Divides the memory: figures keep their fixed part, definitions get the rest. */
static void set_ceiling(struct model *m, size_t memory_max)
{
	struct pool *p = &m->definitions.pool;

	p->max = memory_max - m->own_figures.max;
	p->reserve = shares_reserve(p->max);
}

int model_new(const struct model_options *o, struct model **ret)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->options = *o;
	m->joins_sampler = m->joins_run = o->joins;
	m->witness_check.joins = o->joins;
	m->figures = o->aggregate ? &m->definitions.pool : &m->own_figures;
	m->own_figures.max = o->aggregate ? 0 : o->memory_max / MODEL_FIGURES_PART;
	set_ceiling(m, o->memory_max);
	m->folded = MODEL_NONE;
	m->definitions.detail = o->detail;
	m->totals.first_ns = UINT64_MAX;
	epoch_init(&m->epoch, &m->definitions,
		   &(struct epoch_options){ .names = o->names,
					    .interpreter_frames = o->interpreter_frames,
					    .code = o->code,
					    .lines = o->lines });
	if (definitions_begin(&m->definitions)) {
		model_free(m);
		return -EINVAL;
	}
	*ret = m;
	return 0;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	epoch_done(&m->epoch);
	definitions_done(&m->definitions);
	hottest_done(&m->hottest, m->figures);
	table_index_done(&m->seen, m->figures);
	free(m);
}

/* --- counting --- */

/* Counts a process or thread once, by a 64-bit hash. If there is no room for the hash, it may be
 * counted again. */
static void count_once(struct model *m, const uint64_t *numbers, size_t n, uint64_t *count)
{
	const uint64_t h = table_hash64(numbers, n * sizeof(*numbers));
	const uint32_t number = (uint32_t)(h >> 32) & 0x7fffffff;
	size_t cursor = SIZE_MAX;
	uint32_t i;

	for (i = table_index_next(&m->seen, (uint32_t)h, &cursor); i != TABLE_NONE;
	     i = table_index_next(&m->seen, (uint32_t)h, &cursor))
		if (i == number)
			return;
	table_index_add(&m->seen, m->figures, (uint32_t)h, number);
	++*count;
}

static int count_bucket(struct model *m, uint32_t thread, uint32_t stack, uint64_t value)
{
	uint32_t i;
	int r = definitions_bucket(&m->definitions, thread, stack, &i);

	if (r)
		return r;
	m->definitions.buckets.data[i].samples++;
	model_add(&m->definitions.buckets.data[i].value, value);
	return 0;
}

/* Notes that the ceiling was reached in this epoch. If later samples name an unknown id, the
 * ceiling is the reason. */
static void note_full(struct model *m, int r)
{
	if (r == -ENOBUFS)
		m->limit_hit = true;
}

/* --- samples --- */

static size_t reason_slot(uint64_t reason)
{
	return reason < STATUS_REASONS ? (size_t)reason : STATUS_REASONS - 1;
}

/* The runtime of a process is known only from its first sample with a runtime's frame. Counts of
 * earlier samples wait in *p. */
static void count_runtime(struct model *m, struct epoch_process *p, const struct model_stack *s)
{
	struct model_totals *t = &m->totals;

	p->samples++;
	p->truncated += s->generated &&
			(s->reason == WALK_NO_ROWS || s->reason == WALK_NO_MAPPING ||
			 s->reason == WALK_NO_PROGRESS || s->reason == WALK_STACK_UNREADABLE ||
			 s->reason == WALK_CALLER_UNSURE);
	p->unnamed += s->unnamed;
	if (p->runtime >= STATUS_RUNTIMES)
		p->runtime = s->runtime;
	if (p->runtime >= STATUS_RUNTIMES)
		return;
	t->runtime_samples[p->runtime] += p->samples;
	t->runtime_truncated[p->runtime] += p->truncated;
	t->runtime_unnamed[p->runtime] += p->unnamed;
	p->samples = p->truncated = p->unnamed = 0;
}

static uint32_t *blames_of(uint32_t counts[][STATUS_REASONS], const struct model *m,
			   const struct share *w)
{
	return counts[w - m->shares.at];
}

static void lose_to_limit(struct model *m)
{
	m->totals.unkept++;
	model_lose(m, LOST_LIMIT, 1);
}

static void lose_sample(struct model *m)
{
	if (m->limit_hit)
		lose_to_limit(m);
	else
		model_lose(m, m->gap_seen ? LOST_SEQUENCE : LOST_MALFORMED, 1);
}

/* Finds the annotations of a sample. Returns false if the sample is malformed. If labels or a link
 * did not arrive, or did not fit, the sample only lacks these. */
static bool annotate(struct model *m, const struct msg_sample *msg, bool plain,
		     struct annotations_found *ret)
{
	const enum annotations_verdict v = annotations_find(&m->epoch.annotations, msg, plain, ret);

	return !v || (v == ANNOTATIONS_NO_EXTRAS && (m->limit_hit || m->gap_seen));
}

static void pass_time(struct model *m, uint64_t time_ns)
{
	struct model_totals *t = &m->totals;

	t->first_ns = numbers_smaller(time_ns, t->first_ns);
	t->last_ns = numbers_larger(time_ns, t->last_ns);
	uptime_until(&m->uptime, time_ns);
}

/* Loses a sample that prof-bpf's report also counts. */
static void lose_seen(struct model *m, struct share *w)
{
	m->witness_check.unkept++;
	w->lost++;
	blames_add(blames_of(m->blames.lost, m, w), LOST_LIMIT, 1);
	lose_to_limit(m);
}

/* The stack of all samples whose own stack did not fit. Its only frame is the mark for that. */
static int folded_stack(struct model *m, uint32_t *ret)
{
	const struct model_frame f = { .offset = WALK_DEFINITIONS,
				       .file = MODEL_NONE,
				       .process = MODEL_NONE,
				       .kind = MODEL_TRUNCATED };
	uint32_t frame;
	int r = 0;

	if (m->folded == MODEL_NONE)
		r = definitions_frame(&m->definitions, f, NULL, &frame);
	if (!r && m->folded == MODEL_NONE)
		r = definitions_stack(&m->definitions, WALK_DEFINITIONS, true, &frame, 1,
				      &m->folded);
	if (!r)
		*ret = m->folded;
	return r;
}

/* Counts the sample in the model. -ENOBUFS. */
static int keep_now(struct model *m, uint32_t thread_at, uint32_t stack, uint64_t value)
{
	uint32_t thread = MODEL_NONE;

	if (thread_at != TABLE_NONE) {
		if (epoch_keep_thread(&m->epoch, &m->epoch.threads.data[thread_at]))
			return -ENOBUFS;
		thread = m->epoch.threads.data[thread_at].thread;
	}
	return count_bucket(m, thread, stack, value);
}

/* Counts the sample, if its owner's share allows it. */
static int keep(struct model *m, struct share *w, uint32_t thread_at, uint32_t stack,
		uint64_t value)
{
	struct pool *p = &m->definitions.pool;
	const struct weight before = weight_of(&m->definitions, &m->epoch);

	p->frugal = true;
	int r = keep_now(m, thread_at, stack, value);

	p->frugal = false;
	if (r && shares_may_take(&m->shares, w, p, SHARE_COUNT))
		r = keep_now(m, thread_at, stack, value);
	weight_charge(&m->definitions, &m->epoch, w, before);
	return r;
}

static void see(struct model *m, const struct msg_sample *msg, uint32_t thread_at)
{
	const struct epoch_thread *d = &m->epoch.threads.data[thread_at];

	witness_check_sample(
		&m->witness_check,
		&(struct witness_sample){ .pid = m->epoch.processes.data[d->process].pid,
					  .tid = d->tid,
					  .cpu = msg->cpu,
					  .time_ns = msg->time_ns,
					  .value = msg->value,
					  .source = msg->source,
					  .count = msg->count,
					  .labels = msg->labels,
					  .link = msg->link });
}

static int take_sample(struct model *m, const struct msg_sample *msg, struct model_sample *ret)
{
	struct model_totals *t = &m->totals;
	uint32_t stack = table_ids_get(&m->epoch.stack_ids, msg->stack),
		 thread_at = table_ids_get(&m->epoch.thread_ids, msg->thread);
	const uint64_t owner =
		thread_at == TABLE_NONE
			? 0
			: m->epoch.processes.data[m->epoch.threads.data[thread_at].process].owner;
	struct share *w = shares_get(&m->shares, owner);
	/* prof-bpf sends no count, no labels and no link (witness.h). So ignore them, also in runs
	 * in which the samples cannot be compared. */
	const bool plain = model_has_witness(m);
	struct annotations_found found;
	bool folds = false;

	if (msg->stack && stack == TABLE_NONE && w->refused)
		folds = !folded_stack(m, &stack);
	if ((msg->thread && thread_at == TABLE_NONE) || (msg->stack && stack == TABLE_NONE)) {
		if (m->limit_hit && thread_at != TABLE_NONE) {
			w->lost++;
			blames_add(blames_of(m->blames.lost, m, w), LOST_LIMIT, 1);
		}
		lose_sample(m);
		return 0;
	}
	if (!annotate(m, msg, plain, &found)) {
		lose_sample(m);
		return 0;
	}
	if (msg->thread)
		see(m, msg, thread_at);
	else
		m->witness_check.came.samples++; /* prof-bpf sends no sample without a thread */
	if (m->options.aggregate && found.source != MODEL_NONE) {
		t->left_out++;
		pass_time(m, msg->time_ns);
		return 0;
	}
	if (!msg->stack && definitions_stack(&m->definitions, 0, false, NULL, 0, &stack)) {
		lose_seen(m, w);
		return 0;
	}
	if (m->options.aggregate && keep(m, w, thread_at, stack, msg->value)) {
		folds = !folds && !folded_stack(m, &stack) &&
			!keep(m, w, thread_at, stack, msg->value);
		if (!folds) {
			lose_seen(m, w);
			return 0;
		}
	}
	w->samples++;
	w->folded += folds;
	const struct model_stack *s = &m->definitions.stacks.data[stack];

	*ret = (struct model_sample){ .cpu = msg->cpu,
				      .time_ns = msg->time_ns,
				      .value = msg->value,
				      .count = plain || !msg->count ? 1 : msg->count,
				      .source = found.source,
				      .labels = found.labels,
				      .link = found.link,
				      .stack = s };
	if (msg->thread) {
		struct epoch_thread *d = &m->epoch.threads.data[thread_at];
		struct epoch_process *p = &m->epoch.processes.data[d->process];

		if (!d->counted)
			count_once(m, (uint64_t[]){ p->pid, p->start_ns, d->tid }, 3, &t->threads);
		d->counted = true;
		ret->comm = epoch_thread_name(&m->epoch, d);
		ret->pid = p->pid;
		ret->tid = d->tid;
		ret->process = p;
		count_runtime(m, p, s);
	}
	t->samples++;
	if (found.source == MODEL_NONE) {
		t->of_event++;
		model_add(&t->value, msg->value);
	}
	t->user_stacks += s->user;
	if (s->lacks) {
		t->unnamed[s->lacks]++;
		blames_add(m->blames.unnamed[w - m->shares.at], s->lacks, 1);
	}
	if (s->reason) {
		t->truncated[reason_slot(s->reason)]++;
		blames_add(blames_of(m->blames.truncated, m, w), reason_slot(s->reason), 1);
	} else {
		t->complete++;
		if (!t->first_complete_ns || msg->time_ns < t->first_complete_ns)
			t->first_complete_ns = msg->time_ns;
	}
	pass_time(m, msg->time_ns);
	if (s->count && found.source == MODEL_NONE)
		m->definitions.self.data[m->definitions.numbers.data[s->frames]]++;
	return MODEL_SAMPLE;
}

/* --- the rest --- */

static void take_hello(struct model *m, const struct msg_hello *msg)
{
	struct model_header *h = &m->header;
	char hex[DEFINITIONS_HEX];
	const struct str from[] = { msg->producer, msg->arch,
				    msg->kernel,   msg->hostname,
				    msg->event,	   msg->unit,
				    msg->host_id,  definitions_hex(hex, msg->kernel_build_id) };
	struct str *const to[] = { &h->producer, &h->arch, &h->kernel,	&h->hostname,
				   &h->event,	 &h->unit, &h->host_id, &h->kernel_build_id };

	m->clock = (struct model_clock){ msg->mono_ns, msg->wall_ns, msg->boot_ns };
	if (h->seen)
		return;
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		const struct str s = str_cut(from[i], sizeof(m->header_text[i]));

		if (s.len)
			memcpy(m->header_text[i], s.data, s.len);
		*to[i] = (struct str){ .data = m->header_text[i], .len = s.len };
	}
	h->build_id_len = (uint8_t)numbers_smaller(msg->kernel_build_id.len, sizeof(h->build_id));
	if (h->build_id_len)
		memcpy(h->build_id, msg->kernel_build_id.data, h->build_id_len);
	h->kind = msg->kind;
	h->cpus = msg->cpus;
	h->hz = msg->hz;
	h->period = msg->period;
	h->mono_ns = msg->mono_ns;
	h->wall_ns = msg->wall_ns;
	h->boot_ns = msg->boot_ns;
	h->seen = true;
}

/* Samples that arrived, and losses that are known. */
static uint64_t came_of(const struct model_totals *t)
{
	return t->samples + t->left_out + reason_lost_samples(t->lost);
}

/* Samples that arrived, and losses that were reported. */
static uint64_t accounted(const struct model_totals *t)
{
	return came_of(t) - t->lost[LOST_RESTART];
}

/* prof-bpf took these samples, but they never came, because the tool that held them ended. Their
 * number is known only when nothing more can come: when that prof-bpf or the stream ends. */
static void settle(struct model *m)
{
	const uint64_t came = m->sampler.handed_on + accounted(&m->totals) - m->sampler.accounted;

	if (m->sampler.taken > came)
		model_lose(m, LOST_RESTART, m->sampler.taken - came);
	m->sampler.taken = 0;
}

/* At its end prof-bpf reports all samples that it took; the launcher's count is slightly older. */
static void end_sampler(struct model *m)
{
	uint64_t taken = m->sampler.launched;

	model_add(&taken, m->sampler.taken);
	if (m->launched.taken < taken)
		m->launched.taken = taken;
	settle(m);
}

static void begin_sampler(struct model *m, uint64_t began_ns)
{
	if (m->sampler.began_ns == began_ns)
		return;
	settle(m);
	uptime_next(&m->uptime);
	m->sampler = (struct model_sampler){ .began_ns = began_ns,
					     .accounted = accounted(&m->totals),
					     .launched = m->launched.taken,
					     .bpf_runs = m->totals.bpf_runs,
					     .bpf_ns = m->totals.bpf_ns };
}

/* Sets the ceiling to the memory that the other tools leave to prof-export, but never below the
 * initial one. */
static void grant(struct model *m, uint64_t share)
{
	uint64_t granted = budget_model(numbers_smaller(share, m->options.share_most));

	granted -= numbers_smaller(granted, m->options.others);
	if (m->options.share_most)
		set_ceiling(m, numbers_larger(granted, m->options.memory_max));
}

/* This output joins a stream that began earlier. The first counts tell how many samples former
 * outputs contain: of the present prof-bpf, and of all of them. */
static void join(struct model *m, const struct msg_figure *msg)
{
	const uint64_t came = accounted(&m->totals),
		       before = msg->value > came ? msg->value - came : 0;

	if (m->joins_sampler && str_eq(msg->name, STR_LIT("taken"))) {
		m->joins_sampler = false;
		m->sampler.handed_on = before;
	} else if (m->joins_run && str_eq(msg->name, STR_LIT("run_taken"))) {
		m->joins_run = false;
		m->former.came = before;
	}
}

static void take_figure(struct model *m, const struct msg_figure *msg)
{
	struct model_totals *t = &m->totals;
	const struct {
		const char *name;
		uint64_t *value, before;
	} kept[] = {
		{ "taken", &m->sampler.taken, 0 },
		{ "bpf_runs", &t->bpf_runs, m->sampler.bpf_runs },
		{ "bpf_ns", &t->bpf_ns, m->sampler.bpf_ns },
		{ "map_bytes", &t->map_bytes, 0 },
		{ "memory_enough", &t->memory_enough, 0 },
		{ "memory_peak", &t->memory_peak, 0 },
		{ "run_taken", &m->launched.taken, 0 },
		{ "run_until", &m->uptime.run_until_ns, 0 },
		{ "witness_more", &t->witness.more, 0 },
		{ "witness_fewer", &t->witness.fewer, 0 },
		{ "witness_losses", &t->witness.losses, 0 },
		{ "skipped_messages", &t->skipped_messages[1], 0 },
		{ "skipped_fields", &t->skipped_fields[1], 0 },
		{ "restarts_bpf", &m->launched.restarts[0], 0 },
		{ "restarts_deltas", &m->launched.restarts[1], 0 },
		{ "restarts_symd", &m->launched.restarts[2], 0 },
		{ "restarts_export", &m->launched.restarts[3], 0 },
	};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (str_eq(msg->name, str_from(kept[i].name)))
			*kept[i].value = kept[i].before + msg->value;
	join(m, msg);
	if (str_eq(msg->name, STR_LIT("began")))
		begin_sampler(m, msg->value);
	else if (str_eq(msg->name, STR_LIT("sampling_since")))
		uptime_since(&m->uptime, msg->value);
	else if (str_eq(msg->name, STR_LIT("sampled_until")))
		uptime_until(&m->uptime, msg->value);
	else if (str_eq(msg->name, STR_LIT("memory_export")))
		grant(m, msg->value);
}

static int define(struct model *m, const struct msg *msg)
{
	switch (msg->id) {
	case MSG_PROCESS:
		return epoch_process(&m->epoch, &msg->process);
	case MSG_THREAD:
		return epoch_thread(&m->epoch, &msg->thread);
	case MSG_FILE:
		return epoch_file(&m->epoch, &msg->file);
	case MSG_FUNCTION:
		return epoch_function(&m->epoch, &msg->function);
	case MSG_FRAME:
		return epoch_frame(&m->epoch, &msg->frame);
	case MSG_CGROUP:
		return epoch_cgroup(&m->epoch, &msg->cgroup);
	case MSG_ATTRIBUTE:
		return epoch_attribute(&m->epoch, &msg->attribute);
	case MSG_SOURCE:
	case MSG_LABEL:
	case MSG_LABELS:
	case MSG_LINK:
		return annotations_take(&m->epoch.annotations, &m->definitions, msg);
	default:
		return epoch_stack(&m->epoch, &msg->stack);
	}
}

static enum share_use use_of(const struct msg *msg)
{
	return msg->id == MSG_STACK				 ? SHARE_STACK
	       : msg->id == MSG_PROCESS || msg->id == MSG_THREAD ? SHARE_COUNT
								 : SHARE_DEFINITION;
}

/* The stream does not say which owner needs a cgroup, a label and the like. So all of them are
 * charged to one owner. If one user makes endless ones, only these names are missing for others. */
#define OWNER_OF_ALL UINT64_MAX

/* Takes a definition and charges it to this owner. */
static void take_definition(struct model *m, const struct msg *msg, uint64_t owner)
{
	struct share *w = shares_get(&m->shares, owner);
	struct pool *p = &m->definitions.pool;
	const struct weight before = weight_of(&m->definitions, &m->epoch);

	p->frugal = true;
	int r = define(m, msg);

	p->frugal = false;
	if (r == -ENOBUFS && shares_may_take(&m->shares, w, p, use_of(msg)))
		r = define(m, msg);
	w->refused |= r == -ENOBUFS;
	note_full(m, r);
	weight_charge(&m->definitions, &m->epoch, w, before);
}

/* The owner of a process that is known in this epoch. */
static uint64_t owner_of(const struct model *m, uint64_t process)
{
	const uint32_t slot = table_ids_get(&m->epoch.process_ids, process);

	return slot == TABLE_NONE ? 0 : m->epoch.processes.data[slot].owner;
}

static void take_lost(struct model *m, const struct msg_lost *msg)
{
	const size_t reason = reason_slot(msg->reason);

	model_lose(m, (enum lost_reason)reason, msg->count);
	if (msg->owner)
		blames_add(blames_of(m->blames.lost, m, shares_get(&m->shares, msg->owner - 1)),
			   reason, msg->count);
}

static void end_process(struct model *m, const struct msg_process_end *msg)
{
	struct share *w = shares_get(&m->shares, owner_of(m, msg->id));
	const struct weight before = weight_of(&m->definitions, &m->epoch);

	epoch_process_end(&m->epoch, msg);
	weight_charge(&m->definitions, &m->epoch, w, before);
}

static void end_thread(struct model *m, const struct msg_thread_end *msg)
{
	const uint32_t slot = table_ids_get(&m->epoch.thread_ids, msg->id);

	if (slot == TABLE_NONE)
		return;
	const struct epoch_thread *t = &m->epoch.threads.data[slot];
	struct share *w = shares_get(&m->shares, m->epoch.processes.data[t->process].owner);
	const struct weight before = weight_of(&m->definitions, &m->epoch);

	epoch_thread_end(&m->epoch, msg);
	weight_charge(&m->definitions, &m->epoch, w, before);
}

int model_take(struct model *m, const struct msg *msg, struct model_sample *ret_sample)
{
	switch (msg->id) {
	case MSG_HELLO:
		take_hello(m, &msg->hello);
		break;
	case MSG_CLOCK:
		m->clock = (struct model_clock){ msg->clock.mono_ns, msg->clock.wall_ns,
						 msg->clock.boot_ns };
		break;
	case MSG_PROCESS:
		if (table_ids_get(&m->epoch.process_ids, msg->process.id) == TABLE_NONE)
			count_once(m, (uint64_t[]){ msg->process.pid, msg->process.start_ns }, 2,
				   &m->totals.processes);
		take_definition(m, msg, msg->process.owner);
		break;
	case MSG_PROCESS_END:
		end_process(m, &msg->process_end);
		break;
	case MSG_THREAD_END:
		end_thread(m, &msg->thread_end);
		break;
	case MSG_MAPPING:
	case MSG_FILE_END:
		break; /* only recordings contain these */
	case MSG_SOURCE:
	case MSG_LABEL:
	case MSG_LABELS:
	case MSG_LINK:
		take_definition(m, msg, OWNER_OF_ALL);
		break;
	case MSG_CGROUP:
		if (m->options.surroundings)
			take_definition(m, msg, OWNER_OF_ALL);
		break;
	case MSG_ATTRIBUTE:
		if (m->options.surroundings)
			take_definition(m, msg, owner_of(m, msg->attribute.process));
		break;
	case MSG_THREAD:
		take_definition(m, msg, owner_of(m, msg->thread.process));
		break;
	case MSG_FILE:
		take_definition(m, msg, msg->file.payer);
		break;
	case MSG_FUNCTION:
		take_definition(m, msg, msg->function.payer);
		break;
	case MSG_FRAME:
		take_definition(m, msg, msg->frame.payer);
		break;
	case MSG_STACK:
		take_definition(m, msg, msg->stack.payer);
		break;
	case MSG_SAMPLE:
		return take_sample(m, &msg->sample, ret_sample);
	case MSG_LOST:
		take_lost(m, &msg->lost);
		break;
	case MSG_FIGURE:
		take_figure(m, &msg->figure);
		break;
	case MSG_END:
		if (msg->end.reason != MSG_END_PEER_LOST)
			end_sampler(m);
		else
			m->witness_check.broken = true;
		m->totals.ended = true;
		m->totals.end_reason = msg->end.reason;
		m->totals.end_ns = msg->end.time_ns;
		break;
	default:
		model_lose(m, LOST_MALFORMED, 1); /* no stream may contain this message */
	}
	return 0;
}

bool model_ended_well(const struct model *m)
{
	const struct model_totals *t = &m->totals;

	return t->ended && t->end_reason != MSG_END_PEER_LOST && t->end_reason != MSG_END_FAILED;
}

void model_witness(struct model *m, const struct witness_word *w)
{
	(void)witness_check_word(&m->witness_check, w);
}

bool model_has_witness(const struct model *m)
{
	return m->witness_check.lives;
}

bool model_has_final_word(const struct model *m)
{
	return m->witness_check.word.final;
}

void model_over(struct model *m)
{
	m->witness_check.over = true;
}

void model_interrupted(struct model *m, bool replayed)
{
	m->witness_check.broken = true;
	m->witness_check.replayed |= replayed;
}

void model_judge(struct model *m)
{
	uint64_t lost[STATUS_REASONS];

	for (int i = 0; i < STATUS_REASONS; i++)
		lost[i] = m->former.lost[i] + m->totals.lost[i];
	/* If the stream lacks its end, its last samples may be missing. */
	m->witness_check.broken |= !model_ended_well(m);
	witness_check_judge(&m->witness_check, lost);
	if (m->witness_check.judged)
		m->totals.witness = m->witness_check.verdict;
}

void model_conclude(struct model *m)
{
	const uint64_t came = m->former.came + came_of(&m->totals),
		       taken = witness_check_taken(&m->witness_check);

	model_judge(m);
	if (m->launched.taken < taken)
		m->launched.taken = taken;
	/* prof-bpf told the launcher about these samples, but no message mentions them. */
	if (m->launched.taken > came)
		model_lose(m, LOST_RESTART, m->launched.taken - came);
	uptime_conclude(&m->uptime, model_ended_well(m), m->totals.end_ns);
}

void model_hand_on(struct model *m)
{
	m->totals.ended = true;
	m->totals.end_reason = MSG_END_DONE;
	m->totals.end_ns = uptime_end_ns(&m->uptime);
}

static void forget_all(struct model *m)
{
	epoch_forget(&m->epoch);
	table_index_done(&m->seen, m->figures);
	hottest_done(&m->hottest, m->figures);
	/* Cannot fail: it needs less memory than was just freed. */
	definitions_begin(&m->definitions);
	m->shares = (struct shares){ 0 };
	m->blames = (struct blames){ 0 };
	m->folded = MODEL_NONE;
	m->gap_seen = m->limit_hit = false;
}

void model_next(struct model *m)
{
	const struct model_totals t = m->totals;

	m->sampler.handed_on += accounted(&t) - m->sampler.accounted;
	m->sampler.accounted = 0;
	m->former.came += came_of(&t);
	for (int i = 0; i < STATUS_REASONS; i++)
		m->former.lost[i] += t.lost[i];
	forget_all(m);
	uptime_divide(&m->uptime);
	m->totals = (struct model_totals){ .first_ns = UINT64_MAX,
					   .first_complete_ns = t.first_complete_ns,
					   .bpf_runs = t.bpf_runs,
					   .bpf_ns = t.bpf_ns,
					   .map_bytes = t.map_bytes,
					   .memory_enough = t.memory_enough,
					   .memory_peak = t.memory_peak };
	memcpy(m->totals.skipped_messages, t.skipped_messages, sizeof(t.skipped_messages));
	memcpy(m->totals.skipped_fields, t.skipped_fields, sizeof(t.skipped_fields));
}

void model_forget(struct model *m)
{
	epoch_forget(&m->epoch);
	shares_forget(&m->shares, !m->options.aggregate);
	if (!m->options.aggregate) {
		model_add_leaves(m, &m->hottest, m->figures);
		/* Cannot fail: it needs less memory than was just freed. */
		definitions_begin(&m->definitions);
		m->folded = MODEL_NONE;
	}
	m->gap_seen = m->limit_hit = false;
}

void model_missing(struct model *m, uint64_t n)
{
	m->gap_seen = m->gap_seen || n;
	model_add(&m->totals.lost[LOST_SEQUENCE], n);
}

void model_skipped(struct model *m, uint64_t messages, uint64_t fields)
{
	m->totals.skipped_messages[0] = messages;
	m->totals.skipped_fields[0] = fields;
}

void model_lose(struct model *m, enum lost_reason reason, uint64_t n)
{
	model_add(&m->totals.lost[reason], n);
}
