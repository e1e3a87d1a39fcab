/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/text/utf8.h"
#include "common/names/runtime/runtime.h"

#define MARK_CHUNK 65536u
#define MARK_FILE (64u << 20) /* bytes searched in a file without a section for constants */

static const struct {
	const struct runtime_ops *ops; /* NULL: no runtime has this number */
	const char *label;
} runtimes[RUNTIME_MAX] = {
#define RUNTIME(number, NAME, name, title, type, mark) [number] = { &name##_runtime, #name },
#include "bpf/runtimes.def"
};

int runtime_describe(const struct symfile *f, struct runtime_build *ret)
{
	struct elfview im;
	int r = RUNTIME_NOT_MINE;

	if (symfile_machine(f) != EM_X86_64)
		return r;
	elfview_init(&im, f);
	for (uint32_t i = RUNTIME_NONE + 1; i < RUNTIME_MAX && r == RUNTIME_NOT_MINE; i++) {
		*ret = (struct runtime_build){ .config.runtime = i };
		if (runtimes[i].ops)
			r = runtimes[i].ops->describe(&im, ret);
	}
	elfview_done(&im);
	return r;
}

/* Searches [from, from + size). Returns SYMFILE_NONE if it is not found. */
static int find_bytes(const struct symfile *f, uint64_t from, uint64_t size, struct span what,
		      uint64_t *ret)
{
	uint8_t *chunk = malloc(MARK_CHUNK);
	int r = chunk ? SYMFILE_NONE : -ENOMEM;

	/* Chunks overlap, since a mark may cross their boundary. */
	while (r == SYMFILE_NONE && size >= what.len) {
		size_t n = numbers_smaller(size, MARK_CHUNK);
		const uint8_t *at;

		r = symfile_read(f, from, chunk, n);
		if (r)
			break;
		at = memmem(chunk, n, what.data, what.len);
		if (at)
			*ret = from + (uint64_t)(at - chunk);
		else
			r = SYMFILE_NONE;
		from += n - (what.len - 1);
		size -= n - (what.len - 1);
	}
	free(chunk);
	return r;
}

int runtime_find_mark(const struct symfile *f, struct runtime_build *b)
{
	const char *mark = runtime_mark(b->config.runtime);
	const struct span what = { .data = (const uint8_t *)mark, .len = strlen(mark) + 1 };
	const struct symfile_section *s;
	uint64_t size = symfile_size(f);
	int r = SYMFILE_NONE;

	if (symfile_section(f, ".rodata", &s) == 0 && s->type != SHT_NOBITS && s->offset < size)
		r = find_bytes(f, s->offset, numbers_smaller(s->size, size - s->offset), what,
			       &b->mark);
	if (r > 0)
		r = find_bytes(f, 0, numbers_smaller(size, MARK_FILE), what, &b->mark);
	b->known &= r == 0;
	return r < 0 ? r : 0;
}

bool runtime_is_sane(const struct runtime_build *b)
{
	uint8_t known;

	memcpy(&known, &b->known, sizeof(known)); /* the byte of a bool from another process may
						   * have any value */
	return b->config.runtime < RUNTIME_MAX && runtimes[b->config.runtime].ops && known <= 1 &&
	       memchr(b->name, '\0', sizeof(b->name)) &&
	       (!known || runtimes[b->config.runtime].ops->is_sane(b));
}

int runtime_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		 struct object_memory *m, struct runtime_object *ret)
{
	ret->name.len = ret->system_name.len = ret->source.len = 0;
	ret->start_line = 0;
	ret->hidden = false;
	buf_reset(&ret->lines);
	buf_reset(&ret->inside);
	buf_reset(&ret->inlined);
	buf_reset(&ret->texts);
	return runtimes[b->config.runtime].ops->name(b, address, check, m, ret);
}

const char *runtime_label(const struct runtime_build *b)
{
	return runtimes[b->config.runtime].label;
}

/* Returns the index of the line that contains the position, or `count`. */
static size_t find_line(const struct runtime_line *lines, size_t count, uint32_t position)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines[middle].end <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t runtime_line(const struct runtime_line *lines, size_t count, uint32_t position)
{
	const size_t at = find_line(lines, count, position);

	return at < count ? lines[at].line : 0;
}

void runtime_object_done(struct runtime_object *o)
{
	buf_done(&o->lines);
	buf_done(&o->inside);
	buf_done(&o->inlined);
	buf_done(&o->texts);
}

/* Returns the inlined call of the last line. */
static uint32_t last_inside(const struct runtime_object *o)
{
	uint32_t inside = 0;

	if (o->inside.len)
		memcpy(&inside, o->inside.data + o->inside.len - sizeof(inside), sizeof(inside));
	return inside;
}

int runtime_add_line_in(struct runtime_object *o, uint32_t end, uint32_t line, uint32_t inlined)
{
	struct runtime_line *lines = (struct runtime_line *)o->lines.data;
	size_t count = o->lines.len / sizeof(*lines);
	const uint32_t none = 0;
	int r = 0;

	if (count > 0 && end <= lines[count - 1].end)
		return 0;
	if (count > 0 && lines[count - 1].line == line && last_inside(o) == inlined) {
		lines[count - 1].end = end;
		return 0;
	}
	if (count == RUNTIME_LINES)
		return 0;
	/* Without an earlier inlined call, all lines so far are in the object itself. */
	while (!r && inlined && o->inside.len < count * sizeof(none))
		r = buf_append(&o->inside, &none, sizeof(none));
	if (!r && (inlined || o->inside.len))
		r = buf_append(&o->inside, &inlined, sizeof(inlined));
	return r ? r
		 : buf_append(&o->lines, &(struct runtime_line){ .end = end, .line = line },
			      sizeof(*lines));
}

int runtime_add_line(struct runtime_object *o, uint32_t end, uint32_t line)
{
	return runtime_add_line_in(o, end, line, 0);
}

int runtime_add_inlined(struct runtime_object *o, uint32_t caller, uint32_t line, struct str name,
			struct str source, uint32_t start_line, uint32_t *ret)
{
	const uint32_t count = (uint32_t)(o->inlined.len / sizeof(struct runtime_inlined));
	const struct str called = str_cut(name, RUNTIME_TEXT), file = str_cut(source, RUNTIME_TEXT);
	struct runtime_inlined c = { .line = line, .start_line = start_line };

	*ret = caller = caller <= count ? caller : 0;
	if (count == RUNTIME_INLINED || called.len + file.len > RUNTIME_INLINED_TEXT - o->texts.len)
		return 0;
	c.caller = caller;
	c.name = (uint32_t)o->texts.len;
	c.name_len = called.len;
	c.source = c.name + c.name_len;
	c.source_len = file.len;

	int r = buf_append(&o->texts, called.data, called.len);

	if (!r)
		r = buf_append(&o->texts, file.data, file.len);
	if (!r)
		r = buf_append(&o->inlined, &c, sizeof(c));
	if (!r)
		*ret = count + 1;
	return r;
}

unsigned runtime_calls(const struct runtime_object *o, uint32_t position, struct runtime_call *ret,
		       unsigned max)
{
	const struct runtime_line *lines = (const struct runtime_line *)o->lines.data;
	const size_t at = find_line(lines, o->lines.len / sizeof(*lines), position);
	uint64_t line = at < o->lines.len / sizeof(*lines) ? lines[at].line : 0;
	uint32_t inside = 0;
	unsigned n = 0;

	if ((at + 1) * sizeof(inside) <= o->inside.len)
		memcpy(&inside, o->inside.data + at * sizeof(inside), sizeof(inside));
	/* A frame that has not reached its first instruction is on the function's first line. */
	if (position == RUNTIME_POSITION_MASK) {
		line = o->start_line;
		inside = 0;
	}
	/* Indices fall from call to caller, since callers were added before their calls. */
	while (inside && inside <= o->inlined.len / sizeof(struct runtime_inlined)) {
		struct runtime_inlined c;

		memcpy(&c, o->inlined.data + (inside - 1) * sizeof(c), sizeof(c));
		if (n + 1 < max)
			ret[n++] = (struct runtime_call){
				.name = { (const char *)o->texts.data + c.name, c.name_len },
				.source = { (const char *)o->texts.data + c.source, c.source_len },
				.line = line,
				.start_line = c.start_line,
			};
		line = c.line;
		inside = c.caller;
	}
	if (n < max)
		ret[n++] = (struct runtime_call){ .name = { o->name.bytes, o->name.len },
						  .source = { o->source.bytes, o->source.len },
						  .line = line,
						  .start_line = o->start_line };
	return n;
}

void runtime_append(struct runtime_text *t, const char *s, size_t len)
{
	struct str cut = str_cut((struct str){ .data = s, .len = (uint32_t)len },
				 RUNTIME_TEXT - t->len);

	if (cut.len)
		memcpy(t->bytes + t->len, cut.data, cut.len);
	t->len += cut.len;
}

void runtime_append_character(struct runtime_text *t, uint32_t c)
{
	char s[4];

	runtime_append(t, s, utf8_encode(c, s));
}

int runtime_print(const struct runtime_build *b, struct buf *ret)
{
	const struct runtime_config *c = &b->config;
	int r = buf_printf(ret, "%s%s\n", b->name, b->known ? "" : ": not known");

	if (r || !b->known)
		return r;
	r = buf_printf(ret, "runtime %u version %u.%u.%u by_loop %u\n", c->runtime,
		       c->version >> 16, c->version >> 8 & 255, c->version & 255, c->by_loop);
	for (uint32_t i = 0; r == 0 && i < c->ranges; i++)
		r = buf_printf(ret, "loop 0x%" PRIx64 "-0x%" PRIx64 "\n",
			       (uint64_t)c->loop[i].start, (uint64_t)c->loop[i].end);
	const struct runtime_ops *ops = runtimes[c->runtime].ops;
	return r || !ops->print ? r : ops->print(b, ret);
}
