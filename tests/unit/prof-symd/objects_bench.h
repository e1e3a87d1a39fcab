/* SPDX-License-Identifier: Apache-2.0 */
/* Naming in batches for a process that is a capture of Python's memory, with a fake clock. */
#ifndef TESTS_UNIT_PROF_SYMD_OBJECTS_BENCH_H
#define TESTS_UNIT_PROF_SYMD_OBJECTS_BENCH_H

#include <criterion/criterion.h>
#include "tests/unit/pycapture.h"
#include "tools/prof-symd/objects/objects.h"

#define SECOND 1000000000ull
#define P 7 /* the process */
#define Q 8 /* another one, of another owner */
#define PID 70
#define POSITION 3

struct asked {
	struct objects_request rq;
	uint64_t addresses[OBJECTS_PIECES], lengths[OBJECTS_PIECES];
};

struct bench {
	struct capture *k;
	struct objects *o;
	struct asked asked[32];
	unsigned count;
	int refuse; /* what ask says */
	struct names names;
	bool withheld; /* answers contain only the first object's own memory */
};

static inline int ask(void *ctx, const struct objects_request *rq)
{
	struct bench *b = ctx;
	struct asked *a = &b->asked[b->count];

	if (b->refuse)
		return b->refuse;
	cr_assert_lt(b->count, 32);
	cr_assert_eq(rq->addresses.len, rq->lengths.len);
	a->rq = *rq;
	memcpy(a->addresses, rq->addresses.data, rq->addresses.len * 8);
	memcpy(a->lengths, rq->lengths.data, rq->lengths.len * 8);
	b->count++;
	return 0;
}

static inline struct bench *bench_new(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	cr_assert(b);
	b->k = capture_open("tests/data/python/3.11.txt");
	cr_assert_eq(objects_new(ask, b, &b->o), 0);
	return b;
}

static inline void bench_free(struct bench *b)
{
	objects_drop(b->o, P);
	cr_expect_eq(objects_counts(b->o).kept, 0);
	objects_relieve(b->o); /* copies outlive their process */
	cr_expect_eq(objects_counts(b->o).held_bytes, 0);
	objects_free(b->o);
	capture_close(b->k);
	free(b);
}

/* Answers the oldest request. */
static inline void answer(struct bench *b, uint64_t status, uint64_t now_ns)
{
	static uint8_t bytes[OBJECTS_BYTES];
	uint64_t lengths[OBJECTS_PIECES];
	struct msg_memory_answer m = { .status = status };
	struct asked a;
	size_t used = 0;

	cr_assert_gt(b->count, 0);
	a = b->asked[0];
	memmove(b->asked, b->asked + 1, --b->count * sizeof(a));
	for (uint32_t i = 0; i < a.rq.addresses.len && !status; i++) {
		struct span s = capture_read(b->k, a.addresses[i], a.lengths[i]);

		if (b->withheld && a.addresses[i] != b->k->objects[0].address)
			s.len = 0;
		cr_assert_leq(used + s.len, sizeof(bytes));
		if (s.len)
			memcpy(bytes + used, s.data, s.len);
		used += s.len;
		lengths[i] = s.len;
	}
	m.id = a.rq.id;
	if (!status) {
		m.lengths = (struct msg_list){ .data = lengths, .len = a.rq.addresses.len };
		m.bytes = (struct span){ .data = bytes, .len = used };
	}
	cr_assert_eq(objects_answer(b->o, &m, now_ns), 0);
}

/* Answers requests until there are none. Returns the number of rounds. */
static inline unsigned settle(struct bench *b, uint64_t now_ns)
{
	unsigned rounds = 0;

	for (;;) {
		cr_assert_eq(objects_send(b->o, now_ns), 0);
		if (!b->count)
			return rounds;
		answer(b, 0, now_ns);
		rounds++;
	}
}

static inline uint64_t mark_of(const struct bench *b, size_t i)
{
	return check_of(b->k, b->k->objects[i].address) << RUNTIME_CHECK_SHIFT | POSITION;
}

static inline int look(struct bench *b, size_t i, bool give_up, uint64_t now_ns)
{
	return objects_lookup(b->o, &b->k->build, P, PID, b->k->objects[i].address, mark_of(b, i),
			      give_up, now_ns, &b->names);
}

static inline bool is_called(const struct bench *b, const char *name)
{
	return b->names.count == 1 && str_eq(b->names.calls[0].system_name, str_from(name));
}

enum { OBJECT, NAME, SOURCE, LINES, PIECES_TAKEN };

/* Takes this much of the object, its strings and its lines, like the kernel's program. */
static inline void take_most(struct bench *b, uint64_t process, size_t i,
			     const uint64_t most[static PIECES_TAKEN])
{
	uint64_t at[4] = { b->k->objects[i].address }, len[4];
	static uint8_t bytes[4096];
	struct msg_object m = { .process = process,
				.address = at[0],
				.check = check_of(b->k, at[0]),
				.addresses = { at, 4 },
				.lengths = { len, 4 } };
	struct python_naming naming;
	size_t n = 0;

	memcpy(&naming, b->k->build.naming, sizeof(naming));
	const struct runtime_copy c = python_copy(&naming);
	for (int piece = 0; piece < 4; piece++) {
		struct span s;

		if (piece)
			memcpy(&at[piece],
			       capture_read(b->k, at[0], c.step[0].bytes).data +
				       c.step[piece].pointer,
			       8);
		s = capture_read(b->k, at[piece], most[piece]);
		len[piece] = s.len;
		memcpy(bytes + n, s.data, s.len);
		n += s.len;
	}
	m.bytes = (struct span){ bytes, n };
	cr_assert_eq(objects_take(b->o, &m), 0);
}

static inline void take_of(struct bench *b, uint64_t process, size_t i, uint64_t lines)
{
	struct python_naming n;

	memcpy(&n, b->k->build.naming, sizeof(n));
	take_most(b, process, i, (uint64_t[]){ n.code_bytes, 128, 192, lines });
}

static inline void take(struct bench *b, size_t i, uint64_t lines)
{
	take_of(b, P, i, lines);
}

#endif
