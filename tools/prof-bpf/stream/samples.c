/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/mix.h"
#include "common/base/system/clock.h"
#include "common/walk/tables/tables.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/host/memory/attributes.h"
#include "tools/prof-bpf/host/memory/memory.h"
#include "tools/prof-bpf/host/publish/publish.h"
#include "tools/prof-bpf/kernel/kernel_names.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/record.h"
#include "tools/prof-bpf/kernel/sideband.h"
#include "tools/prof-bpf/limit/limit.h"
#include "tools/prof-bpf/limit/thinning.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/peers/parser_deaths.h"
#include "tools/prof-bpf/peers/row_server.h"
#include "tools/prof-bpf/stream/deferred.h"
#include "tools/prof-bpf/stream/definitions.h"
#include "tools/prof-bpf/stream/output.h"
#include "tools/prof-bpf/stream/witness_report.h"

static void on_sideband(void *ctx, const struct sideband_event *e)
{
	struct samples *samples = ctx;

	if (e->type == SIDEBAND_KSYMBOL)
		kernel_names_event(samples->names, e);
	else if (e->type == SIDEBAND_THROTTLE)
		samples->lost.throttled++;
	else
		host_event(samples->host, e);
}

/* Marks the process and the files of a sample as in use, and requests evicted rows again. */
static void touch_files(struct samples *samples, const struct sample *s,
			const struct host_process *process)
{
	const uint64_t *frames = sample_user_frames(s);
	uint16_t before = 0;

	tables_process_touch(samples->tables, s->pid, s->time_ns);
	for (unsigned i = 0; i < s->user_frames; i += sample_frame_words(frames[i])) {
		const uint16_t slot = sample_frame_slot(frames[i]);

		if (slot == before || slot >= SAMPLE_FRAME_TAKEN)
			continue;
		before = slot;
		tables_file_touch(samples->tables, slot, s->time_ns);
		if (process)
			host_slot_used(samples->host, slot, process);
		const enum file_state state = tables_file_state(samples->tables, slot);

		if (state != TABLES_FILE_EVICTED && state != TABLES_FILE_PENDING)
			continue;
		struct host_file *f = host_slot_file(samples->host, slot);
		const uint64_t needs = tables_file_needs(samples->tables, slot);

		if (needs)
			limit_again(samples->limit, needs, clock_mono_ns());
		if (f && tables_file_again(samples->tables, slot)) {
			tables_file_pending(samples->tables, slot);
			host_want_rows(samples->host, f);
		}
	}
}

/* Whether the walk ended in a file whose rows are missing for lack of memory. */
static bool lacks_rows(const struct samples *samples, const struct sample *s)
{
	return (s->reason == WALK_NO_ROWS || s->reason == WALK_ROWS_PENDING) &&
	       tables_file_lacks(samples->tables, s->at_slot);
}

/* Handles all events before the sample's time. */
static void catch_up(struct samples *samples, const struct sample *s)
{
	if (s->time_ns > samples->drained_ns) {
		sideband_drain(samples->sideband, s->time_ns, on_sideband, samples);
		samples->drained_ns = s->time_ns;
	}
}

/* The rest of a sample that was walked with another program's mappings: its kernel frames. */
struct user_less {
	struct sample sample;
	uint64_t kernel[SAMPLE_MAX_KERNEL + 1];
};

static const struct sample *without_user_part(const struct sample *s, struct user_less *ret)
{
	ret->sample = *s;
	/* Within exec it has no user stack any more, and does not have that of the next program
	 * yet. */
	ret->sample.reason = s->flags & SAMPLE_IN_EXEC ? WALK_COMPLETE : WALK_STALE;
	ret->sample.user_frames = ret->sample.items = ret->sample.at_slot = 0;
	memcpy(ret->kernel, sample_words(s), s->kernel_frames * sizeof(uint64_t));
	return &ret->sample;
}

/* Returns a copy of the sample, truncated after this many user frames; the caller frees it. NULL:
 * no memory. */
static struct sample *cut_behind(const struct sample *s, unsigned frames, enum walk_reason reason)
{
	size_t words = ((size_t)sample_head(s) + frames) * sizeof(uint64_t);
	struct sample *ret = malloc(sizeof(*ret) + words);

	if (!ret)
		return NULL;
	*ret = *s;
	ret->reason = (uint16_t)reason;
	ret->user_frames = (uint16_t)frames;
	ret->at_slot = 0;
	memcpy(ret + 1, sample_words(s), words);
	return ret;
}

/* Whether the walk ended at a file without a slot, so that the last frame belongs to no file. */
static bool ends_unasked(const struct sample *s)
{
	const uint64_t *frames = sample_user_frames(s);
	unsigned last = s->user_frames ? s->user_frames - 1u : 0;

	/* The last word may belong to a frame before it. */
	if (s->flags & SAMPLE_TAKEN) {
		for (unsigned i = 0; i < s->user_frames; i += sample_frame_words(frames[i]))
			last = i;
	}
	return s->user_frames && last == s->user_frames - 1u &&
	       sample_frame_slot(frames[last]) == TABLES_UNASKED;
}

struct samples_mapped {
	struct samples *samples;
	struct host_process *process;
};

static void send_mapping(void *ctx, struct host_file *f, uint64_t start, uint64_t end,
			 uint64_t offset)
{
	const struct samples_mapped *by = ctx;
	struct emit_file exe, file = definition_of_file(f);
	struct emit_process process = definition_of_process(by->process, &exe);
	const struct msg_mapping m = { .process = by->process->id,
				       .file = f->id,
				       .start = start,
				       .end = end,
				       .offset = offset };

	output_emitted(by->samples->output,
		       emit_mapping(by->samples->output->emit, &process, &file, &m));
}

static void hash_mapping(void *ctx, struct host_file *f, uint64_t start, uint64_t end,
			 uint64_t offset)
{
	const uint64_t numbers[] = { f->id, start, end, offset };
	uint64_t *h = ctx;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		*h = (*h ^ numbers[i]) * MIX_GOLDEN;
}

/* Sends where a process has mapped its runtimes, once per epoch and whenever that changes. */
static void send_mappings(struct samples *samples, struct host_process *h)
{
	struct samples_mapped by = { samples, h };
	const uint64_t mark = emit_mark(samples->output->emit);
	uint64_t hash = 1;

	if (h->mappings_sent == mark && h->mappings_as_of == h->generation)
		return;
	host_runtime_mappings(h, hash_mapping, &hash);
	if (h->mappings_sent != mark || h->mappings_hash != hash)
		host_runtime_mappings(h, send_mapping, &by);
	h->mappings_sent = mark;
	h->mappings_as_of = h->generation;
	h->mappings_hash = hash;
}

struct samples_described {
	struct samples *samples;
	struct host_process *process;
};

static void send_attribute(void *ctx, struct str key, struct str value)
{
	const struct samples_described *by = ctx;
	struct emit_file exe;
	const struct emit_process process = definition_of_process(by->process, &exe);

	output_emitted(by->samples->output,
		       emit_attribute(by->samples->output->emit, &process, key, value));
}

void samples_send_attributes(struct samples *samples, struct host_process *h)
{
	struct samples_described by = { samples, h };
	const uint64_t mark = emit_mark(samples->output->emit);

	/* Only if the process is already in this epoch, with a sample. */
	if (samples->ended || !h->has_attributes || h->sent != mark || h->attributes_sent == mark)
		return;
	h->attributes_sent = mark;
	attributes_each(samples->host, h, send_attribute, &by);
}

/* Counts the sample as lost, also for its owner. */
static void lose(struct samples *samples, const struct sample *s, uint64_t *count,
		 enum owner_loss l)
{
	++*count;
	owners_lose(host_owners(samples->host),
		    (struct owner_key){ .uid = s->owner_uid, .container = s->owner_container }, l);
}

static void send_sample(struct samples *samples, const struct sample *s)
{
	struct host_sample_ref ref;

	if (samples->ended)
		return;
	const int r = host_sample(samples->host, s, &ref);
	touch_files(samples, s, r ? NULL : ref.process);
	struct owner *owner = r ? NULL : ref.process->owner;

	if (samples->output->bus && (!output_peer_takes_of(samples->output, owner) ||
				     !bus_connected(samples->output->bus))) {
		lose(samples, s, &samples->lost.queue_full, OWNER_LOST_QUEUE_FULL);
		if (owner && samples->output->has_peer)
			owner_refuse(owner, OWNER_OUTBOX, 1);
		return;
	}
	samples->passed_on++;
	if (r) {
		lose(samples, s, &samples->lost.unkept, OWNER_LOST_LIMIT);
		return;
	}
	struct user_less less;
	struct sample *shorter = NULL;
	const unsigned hold = host_frames_that_hold(ref.process, s);
	if (s->generation && !host_walked_with(ref.process, s->generation)) {
		s = without_user_part(s, &less);
	} else if (hold < s->user_frames) {
		shorter = cut_behind(s, hold, WALK_STALE);
		s = shorter ? shorter : without_user_part(s, &less);
	} else if (ends_unasked(s)) {
		host_is_behind(samples->host, ref.process);
		shorter = cut_behind(s, s->user_frames - 1u, s->reason);
		s = shorter ? shorter : without_user_part(s, &less);
	}
	memory_was_sampled(samples->host, ref.process, s);
	samples->command_runs |= ref.process->execs || s->pid != samples->command;
	struct emit_file exe;
	struct emit_process process = definition_of_process(ref.process, &exe);
	struct emit_thread thread = definition_of_thread(ref.thread);
	enum walk_reason reason = !lacks_rows(samples, s) ? s->reason
				  : tables_file_lacks_rules(samples->tables, s->at_slot)
					  ? WALK_TABLES_FULL
					  : WALK_MEMORY_LIMIT;
	if (reason == WALK_NO_MAPPING && !s->generation &&
	    host_mapped_since(ref.process, s->time_ns))
		reason = WALK_STALE;
	const uint64_t at = output_at(samples->output);

	if (s->items)
		send_mappings(samples, ref.process);
	const int emitted = emit_sample(samples->output->emit, s, reason, &process, &thread);

	if (!emitted)
		samples_send_attributes(samples, ref.process);
	output_charge(samples->output, owner, at);
	if (!emitted)
		witness_report_sample(samples->witness_report, s, &process, &thread);
	output_emitted(samples->output, emitted);
	free(shorter);
}

#define HELD_BYTES (2u << 20) /* limit of bytes of samples that wait for names */

struct samples_held {
	struct samples_held *next;
	struct sample sample; /* followed by its words */
};

void samples_walked(void *ctx, const struct sample *s)
{
	struct samples *samples = ctx;
	size_t words = ((size_t)sample_head(s) + s->user_frames) * sizeof(uint64_t);
	struct samples_held *h = NULL;

	if (samples->names->reading && samples->held_bytes < HELD_BYTES)
		h = malloc(sizeof(*h) + words);
	if (!h) {
		send_sample(samples, s);
		return;
	}
	h->next = NULL;
	h->sample = *s;
	memcpy(h + 1, sample_words(s), words);
	samples->held_bytes += sizeof(*h) + words;
	*(samples->held ? samples->held_end : &samples->held) = h;
	samples->held_end = &h->next;
}

/* Sends the samples that waited for kernel names, which are available now. */
static void send_held(struct samples *samples)
{
	while (samples->held) {
		struct samples_held *h = samples->held;

		samples->held = h->next;
		send_sample(samples, &h->sample);
		free(h);
	}
	samples->held_bytes = 0;
}

#define RENEW_NS 1000000000ull /* interval between two renewals of all objects */

/* Takes the kernel program's copy of an interpreted frame's object. */
static void on_object(struct samples *samples, const struct sample *s)
{
	struct host_sample_ref ref;
	struct record_object keep;
	struct msg_object m;

	if (samples->without_objects || !record_object(s, &keep, &m) ||
	    host_sample(samples->host, s, &ref))
		return;
	/* Empty, so that prof-symd need not wait for the memory. */
	if (!memory_may_take(ref.process) ||
	    parser_deaths_refuse_process(samples->deaths, ref.process->id)) {
		m.bytes.len = 0;
		m.addresses.len = m.lengths.len = 0;
	}
	if (samples->output->bus && !output_peer_takes_of(samples->output, ref.process->owner)) {
		samples->output->objects_lost = true;
		return;
	}
	m.process = ref.process->id;
	const uint64_t at = output_at(samples->output);

	output_emitted(samples->output, emit_object(samples->output->emit, &m));
	output_charge(samples->output, ref.process->owner, at);
}

static void on_title(struct samples *samples, const struct sample *s)
{
	struct host_sample_ref ref;
	struct record_title title;

	if (!samples->without_objects && record_title(s, &title) &&
	    !host_sample(samples->host, s, &ref) && memory_may_take(ref.process))
		host_title(samples->host, s, &title);
}

/* Whether to drop a sample for the cpu limit. */
static bool drops(struct samples *samples, const struct sample *s)
{
	if (!samples->thinning)
		return false;
	const struct owner_key key = owners_key(
		host_owners(samples->host),
		(struct owner_key){ .uid = s->owner_uid, .container = s->owner_container });
	const bool ret = thinning_drops(samples->thinning, key.uid, key.container);

	if (ret)
		lose(samples, s, &samples->lost.cpu_limited, OWNER_LOST_CPU_LIMIT);
	return ret;
}

static void on_sample(void *ctx, const struct sample *s)
{
	struct samples *samples = ctx;

	if (s->flags & SAMPLE_THREAD) {
		catch_up(samples, s);
		on_title(samples, s);
		return;
	}
	if (s->flags & SAMPLE_OBJECT) {
		catch_up(samples, s);
		on_object(samples, s);
		return;
	}
	if (s->flags & (SAMPLE_ITEMS | SAMPLE_FETCHED)) {
		deferred_ahead(samples->deferred, s);
		return;
	}
	if (drops(samples, s))
		return;
	catch_up(ctx, s);
	send_sample(ctx, s);
}

/* While kernel names are being read, samples with kernel frames wait for them. */
static void on_early_sample(void *ctx, const struct sample *s)
{
	if (s->flags & (SAMPLE_ITEMS | SAMPLE_FETCHED) || !s->kernel_frames) {
		on_sample(ctx, s);
		return;
	}
	catch_up(ctx, s);
	samples_walked(ctx, s);
}

/* Tells the row server whose sample stopped at a file whose rows are still to come. */
static void want_rows(struct samples *samples, const struct sample *s)
{
	struct host_sample_ref ref;

	if (tables_file_state(samples->tables, s->at_slot) != TABLES_FILE_PENDING)
		return;
	tables_file_touch(samples->tables, s->at_slot, s->time_ns);
	if (!host_sample(samples->host, s, &ref) && ref.process->owner)
		row_server_wanted(samples->row_server, s->at_slot, ref.process->owner,
				  clock_mono_ns());
}

static void on_deferred(void *ctx, const struct deferred_sample *d)
{
	struct samples *samples = ctx;

	if (drops(samples, &d->sample))
		return;
	catch_up(samples, &d->sample);
	want_rows(samples, &d->sample);
	deferred_put(samples->deferred, d);
}

ssize_t samples_mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			 bool *ret_whole)
{
	struct samples *samples = ctx;
	struct host_sample_ref ref;

	if (host_sample(samples->host, s, &ref))
		return -ESRCH;
	return publish_mappings(samples->host, ref.process, s->time_ns, ret, ret_whole);
}

uint64_t samples_changes(void *ctx, const struct sample *s)
{
	return host_changes(((struct samples *)ctx)->host, s);
}

void samples_want(void *ctx, const struct sample *s, const uint64_t *addresses, size_t n)
{
	struct samples *samples = ctx;
	struct host_sample_ref ref;

	if (n && !host_sample(samples->host, s, &ref))
		publish_wants(samples->host, ref.process, addresses, n);
}

void samples_are_behind(void *ctx, const struct sample *s)
{
	struct samples *samples = ctx;
	struct host_sample_ref ref;

	if (!host_sample(samples->host, s, &ref))
		host_is_behind(samples->host, ref.process);
}

/* Makes lost copies of objects again, once there is a receiver that keeps up. */
static void renew_objects(struct samples *samples, uint64_t now)
{
	if (!samples->output->objects_lost || now - samples->renewed_ns < RENEW_NS ||
	    !output_peer_takes(samples->output))
		return;
	samples->output->objects_lost = loader_forget_objects(samples->loader) != 0;
	samples->renewed_ns = now;
}

void samples_drain(struct samples *samples)
{
	uint64_t now = clock_mono_ns();

	if (!samples->names->reading)
		send_held(samples);
	renew_objects(samples, now);
	loader_drain(samples->loader, samples->names->reading ? on_early_sample : on_sample,
		     on_deferred, samples);
	sideband_drain(samples->sideband, now, on_sideband, samples);
	samples->drained_ns = now;
	tables_tick(samples->tables, now);
	host_tick(samples->host, now, now);
	deferred_run(samples->deferred, now, false);
}

void samples_done(struct samples *samples)
{
	while (samples->held) {
		struct samples_held *h = samples->held;

		samples->held = h->next;
		free(h);
	}
}
