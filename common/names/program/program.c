/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/program_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/names/program/sources.h"

#define LARGE_BYTES (24 << 20)

int program_open(int fd, enum program_class class, uint64_t dwarf_max, struct program **ret)
{
	struct program *p = calloc(1, sizeof(*p));
	struct stat st;
	int r;

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->class = class;
	p->dwarf_max = dwarf_max;
	p->fds[PROGRAM_MAIN] = p->fds[PROGRAM_DEBUG] = p->fds[PROGRAM_SHARED] = -1;
	if (!filekeeper_in_use()) {
		r = sources_open(fd, dwarf_max, &p->sources);
		if (r)
			free(p);
		else
			*ret = p;
		return r;
	}
	p->fds[PROGRAM_MAIN] = fd;
	if (fstat(fd, &st) == 0) {
		p->uid = st.st_uid;
		p->large = st.st_size > LARGE_BYTES;
	}
	r = workers_add(p);
	if (r) {
		close(fd);
		free(p);
		return r;
	}
	r = workers_ask(p, NULL);
	if (r == VERDICT_LOST)
		r = workers_rests(p) ? VERDICT_LATER : p->kills > 1 ? VERDICT_KILLED : VERDICT_DIED;
	if (r) {
		program_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void program_free(struct program *p)
{
	if (!p)
		return;
	if (p->sources) {
		sources_free(p->sources);
	} else {
		workers_close(p);
	}
	free(p);
}

enum program_want program_wants(struct program *p, struct span *ret_build_id, const char **ret_name)
{
	const struct programwire_facts *f = &p->facts;

	if (p->sources)
		return sources_wants(p->sources, ret_build_id, ret_name);
	const bool told = workers_tell_again(p); /* changes the facts */

	*ret_build_id = (struct span){ .data = f->id, .len = f->id_len };
	*ret_name = f->name_len ? f->name : NULL;
	if (p->lost)
		return PROGRAM_WANTS_NOTHING;
	if (!told)
		return PROGRAM_WANTS_LATER;
	/* A worker that was taken over may send a want without what belongs to it. */
	switch ((enum program_want)f->want) {
	case PROGRAM_WANTS_BUILD_ID:
		return f->id_len >= 2 ? PROGRAM_WANTS_BUILD_ID : PROGRAM_WANTS_NOTHING;
	case PROGRAM_WANTS_NAME:
		return f->name_len ? PROGRAM_WANTS_NAME : PROGRAM_WANTS_NOTHING;
	case PROGRAM_WANTS_ALT:
		return f->id_len >= 2 && f->name_len ? PROGRAM_WANTS_ALT : PROGRAM_WANTS_NOTHING;
	case PROGRAM_WANTS_PACKAGE:
		return PROGRAM_WANTS_PACKAGE;
	case PROGRAM_WANTS_NOTHING:
	case PROGRAM_WANTS_LATER:
		break;
	}
	return PROGRAM_WANTS_NOTHING;
}

bool program_offer(struct program *p, int fd)
{
	if (p->sources)
		return sources_offer(p->sources, fd);
	return workers_tell(p, PROGRAMWIRE_OFFER, fd);
}

bool program_offer_waits(const struct program *p)
{
	return p->untold;
}

unsigned program_refused(const struct program *p)
{
	return p->sources ? sources_refused(p->sources) : p->facts.refused;
}

void program_give_up(struct program *p)
{
	if (p->sources)
		sources_give_up(p->sources);
	else
		(void)workers_tell(p, PROGRAMWIRE_GIVE_UP, -1);
}

void program_charge(struct program *p, uint64_t owner)
{
	p->owner = owner;
	if (p->sources)
		sources_charge(p->sources, owner);
}

int program_describe(struct program *p, struct runtime_build *ret)
{
	const struct programwire_ask a = { .kind = PROGRAMWIRE_DESCRIBE, .program = p->slot };

	if (p->sources)
		return sources_describe(p->sources, ret);
	const int r = workers_ask(p, &a);

	if (r == 0 && workers_answer()->head.flags & PROGRAMWIRE_BUILD) {
		*ret = workers_answer()->build;
		p->no_v8 = ret->config.runtime != RUNTIME_V8;
		return 0;
	}
	p->no_v8 = r == RUNTIME_NOT_MINE;
	return r == -ENOMEM ? r : RUNTIME_NOT_MINE;
}

bool program_is_cut(const struct program *p)
{
	return p->sources ? sources_is_cut(p->sources) : p->cut;
}

const struct fileid *program_fileid(const struct program *p)
{
	return p->sources ? sources_fileid(p->sources) : &p->facts.file;
}

/* Copies only the used part: the struct is large. */
static void copy_names(struct names *ret)
{
	const ptrdiff_t by = ret->text - workers_names()->text;

	names_reset(ret);
	memcpy(ret->text, workers_names()->text, workers_names()->used);
	ret->used = workers_names()->used;
	ret->count = workers_names()->count;
	for (unsigned i = 0; i < ret->count; i++) {
		struct names_call *c = &ret->calls[i];

		*c = workers_names()->calls[i];
		c->name.data = c->name.len ? c->name.data + by : NULL;
		c->system_name.data = c->system_name.len ? c->system_name.data + by : NULL;
		c->source.data = c->source.len ? c->source.data + by : NULL;
	}
}

int program_lookup(struct program *p, uint64_t address, struct names *ret)
{
	if (p->sources)
		return sources_lookup(p->sources, address, ret);
	const int r = workers_look_up(p, address, 0);

	names_reset(ret);
	if (r == 0)
		copy_names(ret);
	return r;
}

int program_address(struct program *p, uint64_t offset, uint64_t *ret)
{
	struct names none;
	uint64_t start;

	if (p->sources)
		return sources_address(p->sources, offset, ret);
	(void)program_find(p, offset, &none, ret, &start);
	return *ret == UINT64_MAX ? SYMFILE_NONE : 0;
}

static int find_here(struct program *p, uint64_t offset, struct names *ret, uint64_t *ret_address,
		     uint64_t *ret_start)
{
	int r = sources_address(p->sources, offset, ret_address);

	if (r) {
		*ret_address = UINT64_MAX;
		return r;
	}
	r = sources_lookup(p->sources, *ret_address, ret);
	if (r == SYMFILE_NONE || (r == 0 && !names_known(ret))) {
		const int e = sources_start(p->sources, *ret_address, ret_start);

		r = e == -ENOMEM ? e : r;
	}
	return r;
}

int program_find(struct program *p, uint64_t offset, struct names *ret, uint64_t *ret_address,
		 uint64_t *ret_start)
{
	*ret_address = UINT64_MAX;
	*ret_start = 0;
	names_reset(ret);
	if (p->sources)
		return find_here(p, offset, ret, ret_address, ret_start);
	int r;

	if (p->ahead &&
	    programwire_find(workers_ahead(p), offset, workers_answer(), workers_names())) {
		r = workers_answer()->head.verdict || !workers_names()->count ? SYMFILE_NONE : 0;
	} else {
		workers_answer()->head = (struct programwire_head){ .address = UINT64_MAX };
		r = workers_look_up(p, offset, PROGRAMWIRE_OFFSET);
	}
	*ret_address = workers_answer()->head.address;
	*ret_start = workers_answer()->head.start;
	if (r == 0)
		copy_names(ret);
	return r;
}

void program_expect(struct program *p, const uint64_t *offsets, unsigned count)
{
	p->expected_count = count < PROGRAM_EXPECTED ? count : PROGRAM_EXPECTED;
	memcpy(p->expected, offsets, p->expected_count * sizeof(*offsets));
}

bool program_has(const struct program *p, uint64_t offset)
{
	struct span more = workers_ahead(p), answer;
	struct programwire_more m;

	while (span_read(&more, &m, sizeof(m)) && span_take(&more, m.size, &answer))
		if (m.offset == offset)
			return true;
	return false;
}

bool program_is_slow(const struct program *p)
{
	return p->slow;
}

bool program_is_large(const struct program *p)
{
	return p->large;
}

void program_set_slow(struct program *p, bool slow)
{
	if (!p->sources && p->slow != slow)
		workers_move(p, slow);
}

bool program_must_wait(enum program_class class, const struct program *p)
{
	return workers_is_taken(class, p);
}

uint64_t program_worked_ns(struct program *p)
{
	const uint64_t worked_ns = p->worked_ns;

	p->worked_ns = 0;
	return worked_ns;
}

bool program_dwarf_too_large(const struct program *p)
{
	return p->sources ? sources_dwarf_too_large(p->sources) : p->too_large;
}

bool program_dwarf_lost(const struct program *p)
{
	return p->sources ? sources_dwarf_lost(p->sources) : p->dwarf_lost || p->lost;
}

unsigned program_dwarf_kills(const struct program *p)
{
	return p->kills;
}

int program_rest(struct program *p, bool packed)
{
	const struct programwire_ask a = { .kind = PROGRAMWIRE_REST,
					   .program = p->slot,
					   .value = packed };

	if (p->sources)
		return sources_rest(p->sources, packed) ? VERDICT_FREED : 0;
	if (!workers_has(p))
		return 0;
	if (workers_is_busy(p))
		return VERDICT_LATER;
	const int r = workers_ask(p, &a);

	return r == PROGRAMWIRE_YES ? VERDICT_FREED : r == VERDICT_LATER ? r : 0;
}

size_t program_bytes(const struct program *p)
{
	return sizeof(*p) + (p->sources		  ? sources_bytes(p->sources)
			     : workers_is_open(p) ? p->bytes
						  : 0);
}
