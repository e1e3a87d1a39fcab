/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of the raw stream. Whole-tool tests have its samples. */
#include <criterion/criterion.h>
#include "common/base/system/clock.h"
#include "common/wire/epoch.h"
#include "common/wire/stream.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/stream/emit.h"

#define CEILING (1u << 20)

static int to_in(void *ctx, struct span batch)
{
	return stream_feed(ctx, batch);
}

/* The number of messages of a kind until the stream is empty. */
static unsigned count(struct stream_in *in, enum msg_id id)
{
	struct msg m;
	unsigned n = 0;
	int r;

	while ((r = stream_next(in, &m)) == 0)
		n += m.id == id;
	cr_assert_eq(r, STREAM_AGAIN);
	return n;
}

Test(emit, nothing_follows_the_end_until_another_peer_takes_the_stream)
{
	uint64_t sent = 0, generated = 0, charged = 0;
	bool changed = false;
	const struct emit_process p = { .def = { .id = 1, .pid = 10, .comm = STR_LIT("p") },
					.sent = &sent,
					.generated = &generated,
					.changed = &changed,
					.charged = &charged };
	const struct emit_file f = { .def = { .id = 2, .path = STR_LIT("/f") },
				     .sent = &generated };
	struct stream_in in;
	struct emit *e;

	stream_in_init(&in);
	cr_assert_eq(
		emit_new(&(struct emit_config){ .ceiling = CEILING, .flush = to_in, .ctx = &in },
			 &e),
		0);
	cr_assert_eq(emit_restart(e), 0);
	cr_assert_eq(emit_file(e, &f), 0);
	cr_assert_eq(emit_end(e, MSG_END_DONE), 0);
	cr_expect_eq(count(&in, MSG_FILE), 1);

	/* Any process of the host may end at this time. */
	sent = 1;
	cr_expect_eq(emit_process_end(e, &p, 1), 0);
	cr_expect_eq(emit_lost(e, &(struct msg_lost){ .reason = LOST_RING_FULL, .count = 1 }), 0);
	cr_expect_eq(emit_file(e, &f), 0);
	cr_expect_eq(emit_flush(e), 0);
	cr_expect_eq(count(&in, MSG_PROCESS_END) + count(&in, MSG_LOST), 0);

	stream_in_done(&in);
	stream_in_init(&in);
	cr_expect_eq(emit_restart(e), 0);
	cr_expect_eq(emit_lost(e, &(struct msg_lost){ .reason = LOST_RING_FULL, .count = 1 }), 0);
	cr_expect_eq(emit_end(e, MSG_END_DONE), 0);
	cr_expect_eq(count(&in, MSG_LOST), 1);
	stream_in_done(&in);
	emit_free(e);
}

/* --- room for definitions --- */

#define RECEIVER (3u << 20)

struct world {
	struct owners *owners;
	struct emit *emit;
	struct stream_in in;
	unsigned samples, epochs;
	uint64_t cost; /* of the present epoch's definitions, as the receiver counts them */
	uint64_t most;
};

static int receive(void *ctx, struct span batch)
{
	struct world *w = ctx;
	struct msg m;
	int r = stream_feed(&w->in, batch);

	while (!r && (r = stream_next(&w->in, &m)) == 0) {
		if (w->in.new_epoch) {
			w->epochs++;
			w->cost = 0;
			w->in.new_epoch = false;
		}
		w->samples += m.id == MSG_SAMPLE;
		w->cost += m.id == MSG_THREAD  ? EPOCH_THREAD
			   : m.id == MSG_FRAME ? EPOCH_FRAME
			   : m.id == MSG_STACK ? EPOCH_STACK + m.stack.frames.len * EPOCH_NUMBER
					       : 0;
		w->most = w->cost > w->most ? w->cost : w->most;
	}
	return r == STREAM_AGAIN ? 0 : r;
}

static bool no_file(void *ctx, uint16_t slot, struct emit_file *ret)
{
	return false;
}

static bool no_kernel(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
		      uint64_t *ret_start)
{
	return false;
}

static const struct runtime_config *no_runtime(void *ctx, uint16_t slot)
{
	return NULL;
}

static void world_init(struct world *w)
{
	*w = (struct world){ 0 };
	stream_in_init(&w->in);
	cr_assert_eq(owners_new(&w->owners), 0);
	const struct emit_config c = { .ceiling = CEILING,
				       .receiver = RECEIVER,
				       .owners = w->owners,
				       .flush = receive,
				       .file = no_file,
				       .kernel = no_kernel,
				       .runtime = no_runtime,
				       .ctx = w };

	cr_assert_eq(emit_new(&c, &w->emit), 0);
	cr_assert_eq(emit_restart(w->emit), 0);
}

static void world_done(struct world *w)
{
	cr_assert_eq(emit_flush(w->emit), 0);
	emit_free(w->emit);
	owners_free(w->owners);
	stream_in_done(&w->in);
}

struct program {
	uint64_t sent, generated, charged;
	bool changed;
	struct emit_process process;
	uint64_t thread_sent;
	struct emit_thread thread;
	struct {
		struct sample s;
		uint64_t frames[64];
	} sample;
};

static void program_init(struct program *p, struct world *w, uint32_t uid)
{
	*p = (struct program){ .process = { .def = { .id = uid, .pid = uid, .comm = STR_LIT("p") },
					    .sent = &p->sent,
					    .generated = &p->generated,
					    .changed = &p->changed,
					    .charged = &p->charged,
					    .owner = owners_get(w->owners,
								(struct owner_key){ .uid = uid }) },
			       .thread = { .def = { .id = uid, .process = uid, .tid = uid },
					   .sent = &p->thread_sent },
			       .sample.s = { .user_frames = 64 } };
}

static void sample_of(struct world *w, struct program *p)
{
	cr_assert_eq(emit_sample(w->emit, &p->sample.s, WALK_COMPLETE, &p->process, &p->thread), 0);
}

Test(emit, thread_names_without_end_make_epochs_and_lose_no_sample)
{
	struct world w;
	static struct program p;

	world_init(&w);
	program_init(&p, &w, 1);
	for (unsigned i = 0; i < 100000; i++) {
		p.thread.def.id = 1 + i;
		p.thread_sent = 0;
		sample_of(&w, &p);
	}
	world_done(&w);
	cr_expect_eq(w.samples, 100000);
	cr_expect_gt(w.epochs, 5);
	cr_expect_lt(w.most, RECEIVER);
}

Test(emit, stacks_without_end_cost_only_their_owner)
{
	struct world w;
	static struct program attacker, victim;
	const uint64_t began_ns = clock_mono_ns();
	uint64_t next = 1;

	world_init(&w);
	program_init(&attacker, &w, 1);
	program_init(&victim, &w, 2);
	for (unsigned i = 0; i < 64; i++)
		victim.sample.frames[i] = 0x1000 + i * 16;
	for (unsigned i = 0; i < 20000; i++) {
		for (unsigned k = 0; k < 64; k++)
			attacker.sample.frames[k] = 0x100000 + 16 * next++;
		sample_of(&w, &attacker);
		victim.sample.frames[i % 64] += 4096 * (i % 97 == 0);
		sample_of(&w, &victim);
	}
	const struct emit_truncations truncated = emit_truncations(w.emit);
	const uint64_t attackers = attacker.process.owner->refused[OWNER_DEFINITIONS];
	const uint64_t victims = victim.process.owner->refused[OWNER_DEFINITIONS];

	world_done(&w);
	cr_expect_eq(w.samples, 40000);
	cr_expect_lt(w.most, RECEIVER);
	cr_expect_eq(truncated.uid, 1);
	cr_expect_gt(truncated.samples, 10000);
	cr_expect_eq(attackers, truncated.samples);
	cr_expect_eq(victims, 0);
	/* At most one a second. */
	cr_expect_leq(w.epochs, 2 + (clock_mono_ns() - began_ns) / 1000000000u);
}

Test(emit, an_owner_alone_begins_epochs_at_once)
{
	struct world w;
	static struct program p;
	uint64_t next = 1;

	world_init(&w);
	program_init(&p, &w, 1);
	for (unsigned i = 0; i < 5000; i++) {
		for (unsigned k = 0; k < 64; k++)
			p.sample.frames[k] = 0x100000 + 16 * next++;
		sample_of(&w, &p);
	}
	const struct emit_truncations truncated = emit_truncations(w.emit);

	world_done(&w);
	cr_expect_eq(truncated.samples, 0);
	cr_expect_eq(w.samples, 5000);
	cr_expect_gt(w.epochs, 5);
}

Test(emit, threads_that_ended_cost_nothing)
{
	struct world w;
	static struct program p;

	world_init(&w);
	program_init(&p, &w, 1);
	for (unsigned i = 0; i < 100000; i++) {
		p.thread.def.id = 1 + i;
		p.thread_sent = 0;
		sample_of(&w, &p);
		cr_assert_eq(emit_thread_end(w.emit, &p.process, &p.thread), 0);
	}
	world_done(&w);
	cr_expect_eq(w.samples, 100000);
	cr_expect_eq(w.epochs, 0);
}

/* The end of a thread that this epoch does not know is not sent. */
Test(emit, only_what_was_defined_ends)
{
	uint64_t sent = 0, generated = 0, charged = 0, thread_sent = 0, cgroup_sent = 0;
	bool changed = false;
	const struct emit_process p = { .def = { .id = 1, .pid = 10, .cgroup = 3 },
					.sent = &sent,
					.generated = &generated,
					.changed = &changed,
					.charged = &charged,
					.cgroup = { .id = 3, .path = STR_LIT("/c") },
					.cgroup_sent = &cgroup_sent };
	const struct emit_thread t = { .def = { .id = 1, .process = 1 }, .sent = &thread_sent };
	const struct emit_file f = { .def = { .id = 2, .path = STR_LIT("/f") },
				     .sent = &generated };
	const struct msg_mapping mapping = { .process = 1, .file = 2, .start = 1, .end = 2 };
	struct stream_in in;
	struct emit *e;

	stream_in_init(&in);
	cr_assert_eq(
		emit_new(&(struct emit_config){ .ceiling = CEILING, .flush = to_in, .ctx = &in },
			 &e),
		0);
	cr_assert_eq(emit_restart(e), 0);
	cr_expect_eq(emit_thread_end(e, &p, &t), 0);
	cr_expect_eq(emit_flush(e), 0);
	cr_expect_eq(count(&in, MSG_THREAD_END), 0);
	cr_expect_eq(emit_file_end(e, &f), 0);
	cr_expect_eq(emit_flush(e), 0);
	cr_expect_eq(count(&in, MSG_FILE_END), 0);
	/* A mapping needs its process and its file; the process needs its cgroup. */
	cr_expect_eq(emit_mapping(e, &p, &f, &mapping), 0);
	cr_expect_eq(emit_flush(e), 0);
	struct msg m;
	const enum msg_id want[] = { MSG_FILE, MSG_CGROUP, MSG_PROCESS, MSG_MAPPING };

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		cr_assert_eq(stream_next(&in, &m), 0);
		cr_expect_eq(m.id, want[i]);
	}
	cr_expect_eq(emit_file_end(e, &f), 0);
	cr_expect_eq(emit_flush(e), 0);
	cr_expect_eq(emit_restart(e), 0);
	cr_expect_eq(emit_file_end(e, &f), 0, "it ended in the former epoch");
	cr_expect_eq(emit_flush(e), 0);
	cr_expect_eq(count(&in, MSG_FILE_END), 1);
	stream_in_done(&in);
	emit_free(e);
}

Test(emit, attributes_of_processes_that_ended_cost_nothing)
{
	struct world w;
	static struct program p;

	world_init(&w);
	program_init(&p, &w, 1);
	p.sample.s.user_frames = 0;
	for (unsigned i = 0; i < 20000; i++) {
		p.process.def.id = 1 + i;
		p.thread.def.id = 1 + i;
		p.thread.def.process = 1 + i;
		p.sent = p.thread_sent = 0;
		sample_of(&w, &p);
		cr_assert_eq(emit_attribute(w.emit, &p.process, STR_LIT("process.command_args"),
					    STR_LIT("/bin/program --option")),
			     0);
		cr_assert_eq(emit_process_end(w.emit, &p.process, 1), 0);
	}
	world_done(&w);
	cr_expect_eq(w.samples, 20000);
	cr_expect_leq(w.epochs, 1);
}

Test(emit, processes_that_ended_cost_nothing)
{
	struct world w;
	static struct program p;

	world_init(&w);
	program_init(&p, &w, 1);
	p.sample.s.user_frames = 0;
	for (unsigned i = 0; i < 50000; i++) {
		p.process.def.id = 1 + i;
		p.thread.def.id = 1 + i;
		p.thread.def.process = 1 + i;
		p.sent = p.thread_sent = 0;
		sample_of(&w, &p);
		cr_assert_eq(emit_process_end(w.emit, &p.process, 1), 0);
	}
	world_done(&w);
	cr_expect_eq(w.samples, 50000);
	cr_expect_leq(w.epochs, 1);
}
