/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/names/runtime/runtime.h"

#define MARK_CHUNK 65536u
#define MARK_FILE (64u << 20) /* bytes searched in a file without a section for constants */

static const struct {
	const struct runtime_ops *ops; /* NULL: no runtime has this number */
	const char *label;
} runtimes[RUNTIME_MAX] = {
#define RUNTIME(number, NAME, name, title, mark) [number] = { &name##_runtime, #name },
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

/* Searches [from, from + size). SYMFILE_NONE: not found. */
static int find_bytes(const struct symfile *f, uint64_t from, uint64_t size, struct span what,
		      uint64_t *ret)
{
	uint8_t *chunk = malloc(MARK_CHUNK);
	int r = chunk ? SYMFILE_NONE : -ENOMEM;

	/* Chunks overlap, since a mark may cross their border. */
	while (r == SYMFILE_NONE && size >= what.len) {
		size_t n = size < MARK_CHUNK ? (size_t)size : MARK_CHUNK;
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
		r = find_bytes(f, s->offset,
			       s->size < size - s->offset ? s->size : size - s->offset, what,
			       &b->mark);
	if (r > 0)
		r = find_bytes(f, 0, size < MARK_FILE ? size : MARK_FILE, what, &b->mark);
	b->known &= r == 0;
	return r < 0 ? r : 0;
}

bool runtime_is_sane(const struct runtime_build *b)
{
	uint8_t known;

	memcpy(&known, &b->known, sizeof(known)); /* a bool may be any byte there */
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
	return runtimes[b->config.runtime].ops->name(b, address, check, m, ret);
}

const char *runtime_label(const struct runtime_build *b)
{
	return runtimes[b->config.runtime].label;
}

uint64_t runtime_line(const struct runtime_line *lines, size_t count, uint32_t position)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines[middle].end <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count ? lines[low].line : 0;
}

void runtime_object_done(struct runtime_object *o)
{
	buf_done(&o->lines);
}

int runtime_add_line(struct runtime_object *o, uint32_t end, uint32_t line)
{
	struct runtime_line *lines = (struct runtime_line *)o->lines.data;
	size_t count = o->lines.len / sizeof(*lines);

	if (count > 0 && end <= lines[count - 1].end)
		return 0;
	if (count > 0 && lines[count - 1].line == line) {
		lines[count - 1].end = end;
		return 0;
	}
	if (count == RUNTIME_LINES)
		return 0;
	return buf_append(&o->lines, &(struct runtime_line){ .end = end, .line = line },
			  sizeof(*lines));
}

void runtime_append(struct runtime_text *t, const char *s, size_t len)
{
	struct str cut = str_cut((struct str){ .data = s, .len = (uint32_t)len },
				 RUNTIME_TEXT - t->len);

	if (cut.len)
		memcpy(t->bytes + t->len, cut.data, cut.len);
	t->len += cut.len;
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
