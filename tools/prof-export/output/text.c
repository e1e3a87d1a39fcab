/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/output/text.h"

#include <inttypes.h>
#include "tools/prof-export/model/definitions/annotations.h"
#include "tools/prof-export/model/label.h"

/* Importers take a blank followed by digits as the end of the name. They refuse a name that begins
 * with a blank or has only one byte. */
static int put_comm(struct buf *b, struct str comm, uint64_t pid)
{
	const size_t before = b->len;
	int r = label_escape(b, comm);

	if (r)
		return r;
	if (b->len == before)
		return buf_printf(b, "pid-%" PRIu64, pid);
	for (size_t i = before; i < b->len; i++) {
		const bool digit_next = i + 1 < b->len && b->data[i + 1] >= '0' &&
					b->data[i + 1] <= '9';

		if (b->data[i] == ' ' && (i == before || i + 1 == b->len || digit_next))
			b->data[i] = '_';
	}
	if (b->data[before] == '#')
		b->data[before] = '_'; /* '#' begins a comment */
	return b->len == before + 1 ? buf_append(b, " ", 1) : 0;
}

/* Escapes a path so that it is one word: importers end it at a blank or a parenthesis. */
static int put_word(struct buf *b, size_t from)
{
	size_t blanks = 0;

	for (size_t i = from; i < b->len; i++)
		blanks += b->data[i] == ' ';
	int r = buf_reserve(b, 3 * blanks);

	if (r || !blanks)
		return r;
	b->len += 3 * blanks;
	/* Go backwards, because each blank becomes the longer \x20. */
	for (size_t to = b->len, i = to - 3 * blanks; i-- > from;) {
		if (b->data[i] == ' ') {
			to -= 4;
			memcpy(b->data + to, "\\x20", 4);
		} else {
			b->data[--to] = b->data[i];
		}
	}
	return 0;
}

static int put_call(struct buf *b, const struct model *m, const struct model_frame *f, unsigned i)
{
	const struct model_function *functions;
	uint64_t address = definitions_pc(model_definitions(m), f);

	model_functions(m, &functions);
	if (f->kind == MODEL_TRUNCATED)
		address = 0;
	int r = buf_printf(b, "\t%16" PRIx64 " ", address);

	if (!r)
		r = label_plain(b, model_definitions(m), f, i);
	if (!r)
		r = buf_append(b, " (", 2);
	const size_t from = b->len;

	if (!r)
		r = i + 1 < f->count ? buf_append_str(b, "inlined")
				     : label_binary(b, model_definitions(m), f);
	if (!r)
		r = put_word(b, from);
	if (!r)
		r = buf_append(b, ")", 1);
	if (!r && f->count && f->kind != MODEL_KERNEL) {
		const struct str source =
			model_string(m, functions[model_functions_of(m, f)[i]].source);
		const uint32_t line = model_lines_of(m, f)[i];

		if (source.len) {
			r = buf_append(b, " ", 1);
			const size_t word = b->len;

			if (!r)
				r = label_escape(b, source);
			/* Importers would take a parenthesis here as that around the binary. */
			for (size_t k = word; k < b->len; k++)
				if (b->data[k] == ')')
					b->data[k] = ']';
			if (!r)
				r = put_word(b, word);
			if (!r && line)
				r = buf_printf(b, ":%" PRIu32, line);
		}
	}
	return r ? r : buf_append(b, "\n", 1);
}

/* The event, or for another source its event and unit, as one word: "cpu-clock", "alloc/bytes/". */
static int put_source(struct buf *b, const struct model *m, const struct model_sample *s)
{
	struct str event = model_header(m)->event, unit = STR_LIT("");
	const size_t from = b->len;

	if (s->source != MODEL_NONE) {
		const struct annotations_source *a = &model_annotations(m)->sources.data[s->source];

		event = model_string(m, a->event);
		unit = model_string(m, a->unit);
	}
	int r = label_escape(b, event.len ? event : STR_LIT("event"));

	if (!r && unit.len)
		r = buf_append(b, "/", 1);
	if (!r && unit.len)
		r = label_escape(b, unit);
	if (!r && unit.len)
		r = buf_append(b, "/", 1);
	return r ? r : put_word(b, from);
}

static int put_head(struct buf *b, const struct model *m, const struct model_sample *s)
{
	int r = put_comm(b, s->comm, s->pid);

	if (!r)
		r = buf_printf(b,
			       " %" PRIu64 "/%" PRIu64 " [%03" PRIu64 "] %" PRIu64 ".%06" PRIu64
			       ": %" PRIu64 " ",
			       s->pid, s->tid, s->cpu, s->time_ns / 1000000000u,
			       s->time_ns / 1000u % 1000000u, s->value);

	if (!r)
		r = put_source(b, m, s);
	return r ? r : buf_append(b, ":\n", 2);
}

int text_sample(struct text *t, const struct model *m, const struct model_sample *s,
		struct output *o)
{
	const uint32_t *stack = model_frames_of(m, s->stack);
	const struct model_frame *frames;
	struct buf *b = &t->line;
	unsigned rests = 0;
	int r;

	/* Each round writes one complete piece, or nothing if memory runs out. */
	do {
		buf_reset(b);
		r = put_head(b, m, s);
	} while (output_rest(o, r, &rests));
	model_frames(m, &frames);
	for (uint32_t i = 0; !r && i < s->stack->count; i++) {
		const struct model_frame *f = &frames[stack[i]];

		for (unsigned k = 0; !r && k < label_calls(f); k++) {
			const size_t before = b->len;

			do {
				b->len = before;
				r = put_call(b, m, f, k);
			} while (output_rest(o, r, &rests));
		}
		/* A stack with many inlined calls is too long to keep in the buffer. */
		output_put(o, b->data, b->len);
		buf_reset(b);
	}
	if (!r) {
		output_put(o, b->data, b->len);
		output_put(o, "\n", 1);
	}
	return r;
}

void text_done(struct text *t)
{
	buf_done(&t->line);
}
