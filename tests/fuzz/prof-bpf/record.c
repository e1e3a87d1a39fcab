/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a record of a ring, of either kind. A sample is woven, and each of its frames comes from
 * the input. An object goes on as one message to the code that names it, which uses only the memory
 * in it.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "tools/prof-bpf/kernel/record.h"
#include "common/walk/weave.h"
#include "tools/prof-symd/objects/objects.h"
#include "common/names/runtime/python/python.h"

#define FIRST_MINOR 6
#define MINORS 7 /* to 3.12: later versions describe their layouts themselves */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct runtime_config *runtime(void *ctx, uint16_t slot)
{
	return slot & 1 ? ctx : NULL;
}

static void weave_sample(const struct sample *s)
{
	static struct weave_frame frames[WEAVE_MAX];
	struct runtime_config r = { .runtime = RUNTIME_PYTHON,
				    .ranges = 1,
				    .by_loop = s->cpu % RUNTIME_BY_LOOPS,
				    .loop = { { 0x1000, 0x2000 } } };
	const struct weave_config c = { .runtime = runtime, .ctx = &r };
	uint32_t interpreted = 0, native = 0, plain = 0, count;
	const uint64_t *words = sample_user_frames(s);
	bool cut;

	count = weave(s, &c, frames, &cut);
	assert(count <= WEAVE_MAX && count <= (uint32_t)s->items + s->user_frames);
	for (uint32_t i = 0; i < count; i++) {
		interpreted += frames[i].interpreted;
		native += !frames[i].interpreted;
	}
	for (uint32_t i = 0; i < s->user_frames; i += sample_frame_words(words[i]))
		plain += !sample_frame_items(words[i]);
	assert(native <= plain && interpreted <= s->items + (s->user_frames - plain) / 2);
	assert(count == WEAVE_MAX || native == plain);
}

static int ask(void *ctx, const struct objects_request *rq)
{
	unsigned *asked = ctx;

	assert(rq->addresses.len && rq->addresses.len == rq->lengths.len);
	(*asked)++;
	return 0;
}

static void name_object(struct msg_object *m)
{
	struct runtime_build b = { .known = true, .config.runtime = RUNTIME_PYTHON };
	static struct names names;
	struct python_config c;
	struct python_naming n;
	struct objects *o;
	unsigned asked = 0;

	if (!python_layout(FIRST_MINOR + m->address % MINORS, 0, NULL, &c, &n))
		abort();
	memcpy(b.config.own, &c, sizeof(c));
	memcpy(b.naming, &n, sizeof(n));
	if (m->lengths.len > 1 && m->lengths.data[0] >= n.code_bytes)
		m->check = python_sum(&n, m->bytes.data,
				      (struct span){ .data = m->bytes.data + m->lengths.data[0],
						     .len = m->lengths.data[1] });
	m->process = 1;
	if (objects_new(ask, &asked, &o) || objects_take(o, m))
		abort();
	int r = objects_lookup(o, &b, 1, 1, m->address, m->check << RUNTIME_CHECK_SHIFT | 3, false,
			       1, &names);

	assert(r >= 0 && r <= OBJECTS_UNNAMED);
	if (r == OBJECTS_LATER) {
		assert(objects_send(o, 1) == 0 && asked == 1);
		r = objects_lookup(o, &b, 1, 1, m->address, m->check << RUNTIME_CHECK_SHIFT | 3,
				   true, 1, &names);
	}
	/* If memory can no longer be read, the reason takes the place of the name. */
	assert(r == OBJECTS_HIDDEN ||
	       ((r == 0 || r == OBJECTS_UNNAMED) && names.count == 1 && names.calls[0].name.len));
	objects_free(o);
}

static void pass_object(const struct sample *s)
{
	struct msg_scratch scratch = { 0 };
	struct buf wire = BUF_INIT(0);
	struct record_object keep;
	struct msg m = { .id = MSG_OBJECT }, back;
	uint64_t all = 0;

	if (!record_object(s, &keep, &m.object))
		return;
	for (uint32_t i = 0; i < m.object.lengths.len; i++)
		all += keep.lengths[i];
	assert(all == m.object.bytes.len && all <= sizeof(keep.bytes));
	if (msg_encode(&wire, &m))
		abort();
	struct span in = buf_span(&wire);

	if (msg_decode(&in, &scratch, &back) || in.len || back.id != MSG_OBJECT)
		abort();
	name_object(&back.object);
	msg_scratch_done(&scratch);
	buf_done(&wire);
}

/* The name of a thread is converted to UTF-8. */
static void check_title(const struct sample *s)
{
	struct record_title t;

	if (!record_title(s, &t))
		return;
	assert(t.len <= sizeof(t.text));
	for (unsigned i = 0; i < t.len;) {
		const uint8_t c = (uint8_t)t.text[i++];
		unsigned more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

		assert(c < 0x80 || (c >= 0xc2 && c < 0xf5));
		for (; more; more--)
			assert(i < t.len && ((uint8_t)t.text[i++] & 0xc0) == 0x80);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sample *s = record_sample(data, size);

	if (s && s->flags & SAMPLE_OBJECT)
		pass_object(s);
	else if (s && s->flags & SAMPLE_THREAD)
		check_title(s);
	else if (s)
		weave_sample(s);
	return 0;
}
