/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/names/runtimes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bpf/mix.h"
#include "common/base/bytes/numbers.h"
#include "common/base/command/log.h"
#include "common/names/elf/symfile.h"
#include "common/names/names.h"

#define CACHE 64 /* objects, direct mapped */
#define LABEL 64

struct cached {
	uint64_t address, check;
	const struct runtime_build *build; /* NULL: empty */
	char label[LABEL];		   /* empty: the object was found, and needs no reason */
	struct runtime_object object;
};

struct runtimes {
	const struct space *space;
	struct runtime_call calls[NAMES_MAX];
	/* For the texts of a frame with two objects. */
	char joined[2 * RUNTIME_TEXT], source[RUNTIME_TEXT];
	struct cached cache[CACHE];
};

int runtimes_describe(struct tables *t, struct space_file *f)
{
	struct symfile *s;
	int r, fd = f->described || f->fd < 0 ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 3);

	f->described = true;
	if (fd < 0)
		return 0;
	if (symfile_open(fd, &s)) {
		close(fd);
		return 0;
	}
	struct runtime_build *b = calloc(1, sizeof(*b));

	r = b ? runtime_describe(s, b) : -ENOMEM;
	symfile_free(s);
	if (!r && !b->known)
		log_warning("%s: is %s, an unknown version; showing its frames as native ones",
			    f->path, b->name);
	if (!r && b->known)
		r = tables_file_runtime(t, f->slot, &b->config);
	else
		r = r < 0 ? r : RUNTIME_NOT_MINE;
	if (!r)
		f->build = b;
	else
		free(b);
	return r < 0 ? r : 0;
}

int runtimes_new(const struct space *s, struct runtimes **ret)
{
	struct runtimes *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->space = s;
	*ret = r;
	return 0;
}

void runtimes_free(struct runtimes *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < CACHE; i++)
		runtime_object_done(&r->cache[i].object);
	free(r);
}

/* Reads as much of a piece as possible. Returns the number of bytes. */
static uint32_t read_piece(const struct space *s, const struct object_memory_piece *p, uint8_t *to)
{
	uint32_t n = 0;

	while (n < p->wanted) {
		uint64_t at = p->address + n;
		uint32_t size = NUMBERS_PAGE - (uint32_t)(at % NUMBERS_PAGE);

		if (size > p->wanted - n)
			size = p->wanted - n;
		if (s->read(s->ctx, to + n, size, at))
			break;
		n += size;
	}
	return n;
}

static int read_wanted(const struct space *s, struct object_memory *m)
{
	static uint8_t bytes[OBJECT_MEMORY_BYTES];

	for (unsigned i = 0; object_memory_next(m, &i); i++) {
		const struct span got = { .data = bytes,
					  .len = read_piece(s, &m->pieces[i], bytes) };
		int r = object_memory_put(m, i, got);

		if (r)
			return r;
	}
	return 0;
}

/* Provides the copy of another object to which the one being read refers. */
struct other {
	const struct moving *moving;
	struct object_memory memory; /* memory of the object that was asked for last */
};

static struct object_memory *find_other(void *ctx, uint64_t address, uint64_t check)
{
	struct other *o = ctx;

	object_memory_done(&o->memory);
	return moving_find(o->moving, address, check, &o->memory) == 0 && o->memory.count
		       ? &o->memory
		       : NULL;
}

static int read_object(const struct space *s, struct cached *c)
{
	const struct runtime_build *b = c->build;
	struct other other = { .moving = &s->moving };
	struct object_memory m = { .other = find_other, .other_ctx = &other };
	int r = moving_find(&s->moving, c->address, c->check, &m);

	r = r ? r : RUNTIME_WANTS;
	for (int round = 0; r == RUNTIME_WANTS && round < RUNTIME_ROUNDS; round++) {
		r = runtime_name(b, c->address, c->check, &m, &c->object);
		if (r == RUNTIME_WANTS) {
			int e = read_wanted(s, &m);

			r = e ? e : r;
		}
	}
	c->label[0] = '\0';
	if (r > 0)
		snprintf(c->label, sizeof(c->label), "[%s: %s]", runtime_label(b),
			 m.count && m.pieces[0].have ? "gone" : "memory not read");
	object_memory_done(&m);
	object_memory_done(&other.memory);
	return r < 0 ? r : 0;
}

static int lookup(struct runtimes *r, uint32_t file, uint64_t address, uint64_t mark,
		  struct runtimes_name *ret)
{
	const struct runtime_build *b = file < r->space->file_count ? r->space->files[file].build
								    : NULL;
	uint64_t check = mark >> RUNTIME_CHECK_SHIFT;
	uint32_t position = b ? runtime_position(b->config.runtime, mark) : 0;
	struct cached *c = &r->cache[((address ^ check) * MIX_GOLDEN >> 32) % CACHE];

	if (!b) {
		*ret = (struct runtimes_name){ .name = STR_LIT("[gone]") };
		return 0;
	}
	if (c->build != b || c->address != address || c->check != check) {
		c->build = b;
		c->address = address;
		c->check = check;
		int e = read_object(r->space, c);

		if (e) {
			c->build = NULL;
			return e;
		}
	}
	if (c->label[0]) {
		*ret = (struct runtimes_name){ .name = str_from(c->label) };
		return 0;
	}
	const unsigned n = runtime_calls(&c->object, position, r->calls, NAMES_MAX);
	const struct runtime_call *own = &r->calls[n - 1];

	*ret = (struct runtimes_name){ .name = own->name,
				       .source = own->source,
				       .line = own->line,
				       .hidden = c->object.hidden,
				       .known = true,
				       .inlined = r->calls,
				       .inlined_count = n - 1 };
	return 0;
}

int runtimes_lookup(struct runtimes *r, const struct stack_frame *f, struct runtimes_name *ret)
{
	struct runtimes_name first, second;
	int e = lookup(r, f->file, f->pc, f->mark, &first);

	*ret = first;
	if (e || !f->object2 || first.hidden)
		return e;
	/* The cache may use the place of the first one's texts for the second one. */
	const uint32_t name = first.name.len < RUNTIME_TEXT ? first.name.len : RUNTIME_TEXT;

	ret->inlined_count = 0;
	memcpy(r->joined + RUNTIME_TEXT, first.name.data, name);
	ret->source.len = first.source.len < RUNTIME_TEXT ? first.source.len : RUNTIME_TEXT;
	if (ret->source.len)
		memcpy(r->source, first.source.data, ret->source.len);
	ret->source.data = r->source;
	e = lookup(r, f->file, f->object2, f->mark2, &second);
	if (e)
		return e;
	const uint32_t before = second.name.len < RUNTIME_TEXT && second.known ? second.name.len
									       : 0;
	char *start = r->joined + RUNTIME_TEXT - before;

	if (before)
		memcpy(start, second.name.data, before);
	ret->name = (struct str){ .data = start, .len = before + name };
	if (second.source.len) {
		ret->source = second.source;
		ret->line = second.line;
	}
	return 0;
}
