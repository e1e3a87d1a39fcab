/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of all runtimes: calls their functions, and looks for their marks. Runtimes use
 * runtime.c, which uses none of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
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
	       (!known || (runtimes[b->config.runtime].ops->is_sane &&
			   runtimes[b->config.runtime].ops->is_sane(b)));
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
