/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file contains CPython if it defines _PyEval_EvalFrameDefault and PyGILState_GetThisThreadState.
 * These are libpython, and executables that include all of it; both export these symbols for
 * modules. In a file that only links to libpython, they are undefined.
 *
 * The layouts in the tables are those of 3.6 to 3.15: Include/cpython/{code,frameobject,pystate,
 * unicodeobject}.h and Include/internal/pycore_{frame,runtime}.h, as in their debug information.
 *
 *  - From 3.13 on, _Py_DebugOffsets in _PyRuntime (pycore_debug_offsets.h) is used instead.
 *  - Before that, some builds have objects with larger heads. The members of the type of code
 *    objects show by how much, and the table is corrected by it.
 */
#include "common/names/runtime/python/python.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OLDEST 6
#define NEWEST 15
/* Bytes that are copied of a code object's name, of its path, and of its line table. */
#define COPY_NAME 128
#define COPY_PATH 192
#define COPY_LINES 4096
#define MAX_STATIC_NAMES \
	(4u << 20)	/* bytes of .strtab that are read in a file that exports nothing */
#define GLIBC_TSD 0x510 /* specific[] in glibc's struct pthread, x86-64 */
#define MUSL_TSD 0x80	/* tsd in musl's struct pthread, x86-64, 1.2 */

struct layout {
	struct python_config c;
	struct python_naming n;
};

/* --- tables --- */

#define FRAMES_36(lasti, thread) \
	.frames = PYTHON_OBJECTS, .tstate_frame = 24, .tstate_thread = (thread), \
	.frame_previous = 24, .frame_code = 32, .frame_position = (lasti)
#define TEXT_36 .text_length = 16, .text_state = 32, .text_ascii = 48, .text_other = 72
#define TEXT_312 .text_length = 16, .text_state = 32, .text_ascii = 40, .text_other = 56
#define BYTES_36 .bytes_size = 16, .bytes_data = 32

static const struct layout layouts[NEWEST + 1] = {
	[6] = { .c = { FRAMES_36(120, 152) },
		.n = { .check_words = 6,
		       .code_check = 16,
		       .code_firstline = 36,
		       .code_name = 104,
		       .code_filename = 96,
		       .code_table = 112,
		       TEXT_36,
		       BYTES_36 } },
	[7] = { .c = { FRAMES_36(104, 176) },
		.n = { .check_words = 6,
		       .code_check = 16,
		       .code_firstline = 36,
		       .code_name = 104,
		       .code_filename = 96,
		       .code_table = 112,
		       TEXT_36,
		       BYTES_36 } },
	[8] = { .c = { FRAMES_36(104, 176) },
		.n = { .check_words = 7,
		       .code_check = 16,
		       .code_firstline = 40,
		       .code_name = 112,
		       .code_filename = 104,
		       .code_table = 120,
		       TEXT_36,
		       BYTES_36 } },
	[9] = { .c = { FRAMES_36(104, 176) },
		.n = { .check_words = 7,
		       .code_check = 16,
		       .code_firstline = 40,
		       .code_name = 112,
		       .code_filename = 104,
		       .code_table = 120,
		       TEXT_36,
		       BYTES_36 } },
	[10] = { .c = { FRAMES_36(96, 176) },
		 .n = { .code_check = 16,
			.code_firstline = 40,
			.code_name = 112,
			.code_filename = 104,
			.code_table = 120,
			TEXT_36,
			BYTES_36 } },
	/* From here on, the check begins after co_warmup, which changes. */
	[11] = { .c = { .frames = PYTHON_CFRAMES,
			.entry_owner = 1,
			.tstate_frame = 56,
			.cframe_frame = 8,
			.cframe_previous = 16,
			.frame_previous = 48,
			.frame_code = 32,
			.frame_position = 56,
			.frame_owner = 68,
			.code_bytecode = 184 },
		 .n = { .code_check = 56,
			.code_firstline = 72,
			.code_name = 120,
			.code_qualname = 128,
			.code_filename = 112,
			.code_table = 136,
			.code_units = 16,
			.code_traceable = 168,
			TEXT_36,
			BYTES_36 } },
	[12] = { .c = { .frames = PYTHON_CFRAME_SHIMS,
			.entry_owner = 3,
			.tstate_frame = 56,
			.cframe_frame = 0,
			.cframe_previous = 8,
			.frame_previous = 8,
			.frame_code = 0,
			.frame_position = 56,
			.frame_owner = 70,
			.code_bytecode = 192 },
		 .n = { .code_check = 52,
			.code_firstline = 68,
			.code_name = 120,
			.code_qualname = 128,
			.code_filename = 112,
			.code_table = 136,
			.code_units = 16,
			.code_traceable = 176,
			TEXT_312,
			BYTES_36 } },
	[13] = { .c = { .frames = PYTHON_SHIMS, .entry_owner = 3 },
		 .n = { .code_check = 52, .code_units = 16, .code_traceable = 184, BYTES_36 } },
	[14] = { .c = { .frames = PYTHON_SHIMS, .entry_owner = 3 },
		 .n = { .code_check = 52, .code_units = 16, .code_traceable = 192, BYTES_36 } },
	[15] = { .c = { .frames = PYTHON_SHIMS, .entry_owner = 3 },
		 .n = { .code_check = 52, .code_units = 16, .code_traceable = 192, BYTES_36 } },
};

/* The layout of _Py_DebugOffsets, as numbers of words. */
#define DEBUG_FREE_THREADED 2
struct debug_layout {
	bool copies; /* free-threaded builds copy a function's instructions for each thread */
	uint8_t current_frame;
	uint8_t frame_size, frame_previous, frame_executable, frame_instr, frame_owner, frame_copy;
	uint8_t code_size, code_filename, code_name, code_qualname, code_linetable, code_firstline,
		code_argcount, code_adaptive, code_copies;
	uint8_t bytes_size, bytes_data, text_size, text_state, text_length, text_ascii;
};

static const struct debug_layout debug_layouts[NEWEST + 1] = {
	[13] = { .current_frame = 23,
		 .frame_size = 28,
		 .frame_previous = 29,
		 .frame_executable = 30,
		 .frame_instr = 31,
		 .frame_owner = 33,
		 .code_size = 34,
		 .code_filename = 35,
		 .code_name = 36,
		 .code_qualname = 37,
		 .code_linetable = 38,
		 .code_firstline = 39,
		 .code_argcount = 40,
		 .code_adaptive = 43,
		 .bytes_size = 65,
		 .bytes_data = 66,
		 .text_size = 67,
		 .text_state = 68,
		 .text_length = 69,
		 .text_ascii = 70 },
	[14] = { .copies = true,
		 .current_frame = 26,
		 .frame_size = 31,
		 .frame_previous = 32,
		 .frame_executable = 33,
		 .frame_instr = 34,
		 .frame_owner = 36,
		 .frame_copy = 38,
		 .code_size = 39,
		 .code_filename = 40,
		 .code_name = 41,
		 .code_qualname = 42,
		 .code_linetable = 43,
		 .code_firstline = 44,
		 .code_argcount = 45,
		 .code_adaptive = 48,
		 .code_copies = 49,
		 .bytes_size = 75,
		 .bytes_data = 76,
		 .text_size = 77,
		 .text_state = 78,
		 .text_length = 79,
		 .text_ascii = 80 },
	[15] = { .copies = true,
		 .current_frame = 26,
		 .frame_size = 39,
		 .frame_previous = 40,
		 .frame_executable = 41,
		 .frame_instr = 42,
		 .frame_owner = 44,
		 .frame_copy = 46,
		 .code_size = 47,
		 .code_filename = 48,
		 .code_name = 49,
		 .code_qualname = 50,
		 .code_linetable = 51,
		 .code_firstline = 52,
		 .code_argcount = 53,
		 .code_adaptive = 56,
		 .code_copies = 57,
		 .bytes_size = 87,
		 .bytes_data = 88,
		 .text_size = 89,
		 .text_state = 90,
		 .text_length = 91,
		 .text_ascii = 92 },
};

/* --- recognizing --- */

/* Whether a file that exports no interpreter may still contain one: it has CPython's own section,
 * or is small. Then its symbol table is read. */
static bool may_hide_one(const struct symfile *f)
{
	const struct symfile_section *s;

	if (symfile_section(f, ".PyRuntime", &s) == 0)
		return true;
	return symfile_section(f, ".dynsym", &s) != 0 && symfile_section(f, ".strtab", &s) == 0 &&
	       s->size <= MAX_STATIC_NAMES;
}

/* Whether the file contains CPython. all: also search .symtab, however large. */
static int recognize(const struct elfview *im, bool all, struct elfview_symbol *ret_eval)
{
	struct elfview_symbol state;
	int r = elfview_exported(im, "_PyEval_EvalFrameDefault", ret_eval);

	if (r == SYMFILE_NONE && (all || may_hide_one(im->file)))
		r = elfview_local(im, "_PyEval_EvalFrameDefault", ret_eval);
	if (r == 0 && ret_eval->type != STT_FUNC)
		r = SYMFILE_NONE;
	if (r == 0)
		r = elfview_defined(im, "PyGILState_GetThisThreadState", &state);
	return r == -ENOMEM ? r : r ? RUNTIME_NOT_MINE : 0;
}

/* --- layouts --- */

#define MEMBERS 24
#define MEMBER_WORDS 5 /* PyMemberDef: name, type, offset, flags, doc */

/* Derives the extra bytes of object heads from the offset of co_argcount. */
static uint16_t head_from(unsigned minor, uint64_t argcount)
{
	uint16_t usual = layouts[minor].n.code_check;

	return argcount > usual && argcount - usual <= 32 && argcount % 8 == usual % 8
		       ? (uint16_t)(argcount - usual)
		       : 0;
}

/* Returns by how many bytes object heads are larger than usual, from tp_members of PyCode_Type. 0
 * also if it is unknown. */
static uint16_t extra_head(struct elfview *im, unsigned minor)
{
	uint64_t type[64], members[MEMBERS * MEMBER_WORDS];
	struct elfview_symbol s;
	char name[24];

	if (elfview_defined(im, "PyCode_Type", &s) != 0 ||
	    elfview_words(im, s.value, type, 64) != 0)
		return 0;
	/* tp_members is the 30th word, or later after a larger head. */
	for (int at = 30; at < 40; at++) {
		if (type[at] % 8 ||
		    elfview_words(im, type[at], members, MEMBERS * MEMBER_WORDS) != 0)
			continue;
		for (size_t i = 0; i < MEMBERS && members[i * MEMBER_WORDS]; i++) {
			if (elfview_string(im, members[i * MEMBER_WORDS], name, sizeof(name)) != 0)
				break;
			if (strcmp(name, "co_argcount") == 0)
				return head_from(minor, members[i * MEMBER_WORDS + 2]);
		}
	}
	return 0;
}

static void add_head(struct layout *l, uint16_t extra)
{
	uint16_t *const of_objects[] = {
		&l->n.code_check, &l->n.code_name,   &l->n.code_filename, &l->n.code_firstline,
		&l->n.code_table, &l->n.text_length, &l->n.text_state,	  &l->n.text_ascii,
		&l->n.text_other, &l->n.bytes_size,  &l->n.bytes_data
	};

	for (size_t i = 0; i < sizeof(of_objects) / sizeof(of_objects[0]); i++)
		*of_objects[i] += extra;
	if (l->n.code_qualname) {
		l->n.code_qualname += extra;
		l->n.code_units += extra;
		l->n.code_traceable += extra;
		l->c.code_bytecode += extra;
	}
	if (l->c.frames == PYTHON_OBJECTS) {
		l->c.frame_previous += extra;
		l->c.frame_code += extra;
		l->c.frame_position += extra;
	}
}

/* Fills *l from the words of _PyRuntime. Returns false if they are implausible. */
static bool use_debug_offsets(const struct debug_layout *d, unsigned minor, const uint64_t *w,
			      struct layout *l)
{
	bool copies = d->copies && w[DEBUG_FREE_THREADED];
	uint16_t usual = l->n.code_check;

	if (memcmp(w, "xdebugpy", 8) != 0 || w[1] >> 16 != (3u << 8 | minor))
		return false;
	/* Check sizes first, since offsets must lie within them. */
	if (w[d->frame_size] > 256 || w[d->code_size] > 512 || w[d->text_size] > 128 ||
	    w[d->bytes_size] > 64 || w[d->current_frame] > 1024)
		return false;
	for (const uint8_t *f = &d->frame_previous; f <= &d->frame_owner; f++)
		if (w[*f] >= w[d->frame_size])
			return false;
	for (const uint8_t *f = &d->code_filename; f <= &d->code_adaptive; f++)
		if (w[*f] >= w[d->code_size] || w[*f] % 4)
			return false;
	if (copies && (w[d->frame_copy] >= w[d->frame_size] || w[d->frame_copy] % 4 ||
		       w[d->code_copies] >= w[d->code_size] || w[d->code_copies] % 8))
		return false;
	if (w[d->bytes_data] > w[d->bytes_size] + 32 || w[d->text_state] >= w[d->text_size] ||
	    w[d->text_length] >= w[d->text_size] || w[d->text_ascii] >= w[d->text_size] ||
	    w[d->code_argcount] < usual || w[d->code_argcount] - usual > 32)
		return false;
	l->c.tstate_frame = (uint16_t)w[d->current_frame];
	l->c.frame_previous = (uint16_t)w[d->frame_previous];
	l->c.frame_code = (uint16_t)w[d->frame_executable];
	l->c.frame_position = (uint16_t)w[d->frame_instr];
	l->c.frame_owner = (uint16_t)w[d->frame_owner];
	l->c.code_bytecode = (uint16_t)w[d->code_adaptive];
	l->n.code_check = (uint16_t)w[d->code_argcount];
	l->n.code_units += l->n.code_check - usual;
	l->n.code_traceable += l->n.code_check - usual;
	l->n.code_firstline = (uint16_t)w[d->code_firstline];
	l->n.code_name = (uint16_t)w[d->code_name];
	l->n.code_qualname = (uint16_t)w[d->code_qualname];
	l->n.code_filename = (uint16_t)w[d->code_filename];
	l->n.code_table = (uint16_t)w[d->code_linetable];
	l->n.bytes_data = (uint16_t)w[d->bytes_data];
	l->n.bytes_size = (uint16_t)w[d->bytes_size + 0];
	l->n.text_length = (uint16_t)w[d->text_length];
	l->n.text_state = (uint16_t)w[d->text_state];
	l->n.text_ascii = (uint16_t)w[d->text_ascii];
	if (copies) {
		l->c.code_copies = (uint16_t)w[d->code_copies];
		l->c.frame_copy = (uint16_t)w[d->frame_copy];
		l->n.text_kind = 8; /* `interned` is a whole byte, since it is changed atomically */
	}
	l->n.text_other = l->n.text_ascii + 16; /* PyCompactUnicodeObject: utf8_length, utf8 */
	return true;
}

static uint16_t most(uint16_t a, uint16_t b)
{
	return a > b ? a : b;
}

/* Derives the remaining fields. Returns false if a frame would be larger than the walk reads. */
static bool complete(struct layout *l)
{
	uint16_t end;

	/* The check value covers everything from the argument counts to the line table. Nothing of
	 * it changes while the object lives. The names differ from those of another object that had
	 * this address before. */
	end = most(most(l->n.code_name, l->n.code_filename),
		   most(l->n.code_table, l->n.code_qualname)) +
	      8;
	l->n.check_words = (uint16_t)((end - l->n.code_check) / 4);
	if (end < l->n.code_check || l->n.check_words > PYTHON_CHECK_WORDS)
		l->n.check_words = PYTHON_CHECK_WORDS;
	l->c.code_check = l->n.code_check;
	l->c.code_check_words = l->n.check_words;
	if (l->c.frames != PYTHON_OBJECTS)
		l->c.flags |= PYTHON_POSITION_POINTER;
	end = l->c.frame_position + (l->c.flags & PYTHON_POSITION_POINTER ? 8 : 4);
	end = most(end, most(l->c.frame_previous, l->c.frame_code) + 8);
	end = most(end, most(l->c.frame_owner + 1, l->c.frame_copy + 4));
	l->c.frame_bytes = (uint16_t)((end + 7) & ~7);
	end = most(l->n.code_check + 4 * l->n.check_words, l->n.code_firstline + 4);
	end = most(end, most(l->n.code_name, l->n.code_filename) + 8);
	end = most(end, most(l->n.code_table, l->n.code_qualname) + 8);
	end = most(end, l->n.code_qualname ? l->n.code_traceable + 4 : 0);
	l->n.code_bytes = (uint16_t)((end + 7) & ~7);
	l->c.code_name = l->n.code_qualname ? l->n.code_qualname : l->n.code_name;
	/* From 3.12 on, the check value covers the object's version, which is unique. */
	l->c.check_text = l->n.check_text = l->n.minor <= 11 ? l->n.text_length : 0;
	return l->c.frame_bytes <= PYTHON_FRAME_BYTES && l->c.frame_previous % 8 == 0 &&
	       l->c.frame_code % 8 == 0 && l->c.frame_position % 4 == 0;
}

/* A step that reads a string, of at most this many bytes: four for each character, and a
 * pointer. */
static struct runtime_step text_at(const struct python_naming *n, uint16_t pointer, uint16_t bytes)
{
	return (struct runtime_step){ .pointer = pointer,
				      .bytes = bytes,
				      .size_bytes = 8,
				      .size_at = n->text_length,
				      .size_shift = 2,
				      .size_add = n->text_other + 8 };
}

struct runtime_copy python_copy(const struct python_naming *n)
{
	return (struct runtime_copy){
		.steps = 4,
		.more = 2,
		.step = {
			{ .bytes = n->code_bytes },
			text_at(n, n->code_qualname ? n->code_qualname : n->code_name, COPY_NAME),
			text_at(n, n->code_filename, COPY_PATH),
			{ .pointer = n->code_table,
			  .bytes = COPY_LINES,
			  .size_bytes = 8,
			  .size_at = n->bytes_size,
			  .size_add = n->bytes_data },
			/* The characters of a str that are stored elsewhere, as in a subclass. */
			{ .from = 1, .pointer = n->text_other, .bytes = RUNTIME_TEXT * 4 },
			{ .from = 2, .pointer = n->text_other, .bytes = RUNTIME_TEXT * 4 },
		},
	};
}

bool python_layout(unsigned minor, uint16_t extra, const uint64_t *debug, struct python_config *c,
		   struct python_naming *n)
{
	struct layout l;

	if (minor < OLDEST || minor > NEWEST)
		return false;
	l = layouts[minor];
	l.n.minor = (uint8_t)minor;
	l.n.text_kind = 2;
	if (!debug_layouts[minor].code_size)
		add_head(&l, extra);
	else if (!debug || !use_debug_offsets(&debug_layouts[minor], minor, debug, &l))
		return false;
	if (!complete(&l))
		return false;
	l.n.counted = !extra && minor < 14 && l.n.code_check == layouts[minor].n.code_check;
	*c = l.c;
	*n = l.n;
	return true;
}

/* --- the C library --- */

static void find_libc(const struct symfile *f, struct python_config *c)
{
	if (symfile_has_text(f, ".interp", "/ld-musl-") ||
	    symfile_has_text(f, ".dynstr", "libc.musl-")) {
		c->flags |= PYTHON_LIBC_FLAT;
		c->tsd = MUSL_TSD;
	} else {
		c->tsd = GLIBC_TSD;
	}
}

/* --- describing --- */

static int set_loop(struct elfview *im, const struct elfview_symbol *eval, struct runtime_config *c)
{
	uint64_t offset, left;
	uint32_t count = 0;
	int r = python_find_loop(im, eval, c->loop, &count);

	c->ranges = 0;
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		struct runtime_range range = c->loop[i];

		if (symfile_offset(im->file, range.start, &offset, &left) != 0)
			continue;
		c->loop[c->ranges++] = (struct runtime_range){
			.start = offset, .end = offset + (range.end - range.start)
		};
	}
	for (uint32_t i = c->ranges; i < RUNTIME_RANGES; i++)
		c->loop[i] = (struct runtime_range){ 0 };
	return r;
}

/* Finds the parts by their symbols. */
static void name_parts(struct elfview *im, unsigned minor, struct python_parts *p)
{
	struct elfview_symbol runtime;

	if (minor >= 13 && elfview_defined(im, "_PyRuntime", &runtime) == 0)
		p->runtime = runtime.value;
}

/* 3.7 to 3.11: the distance in _PyRuntime from the pointer to the thread state that has the GIL to
 * the key. */
static const uint8_t holder_to_key[NEWEST + 1] = {
	[7] = 28, [8] = 28, [9] = 20, [10] = 20, [11] = 20
};

/* Fills *l from parts found without symbols. Returns false if they do not fit the version. */
static bool place_by_parts(const struct python_parts *p, unsigned minor, struct layout *l)
{
	/* In later versions _PyRuntime contains the offset. */
	if (minor < 13 && p->argcount != l->n.code_check)
		return false;
	l->c.thread = p->state.thread;
	l->c.state = p->state.state;
	l->c.tls_add = p->state.tls_add;
	l->c.holder = holder_to_key[minor] ? l->c.state - holder_to_key[minor] : 0;
	return true;
}

/* Describes a build, except its name. Leaves it unsupported if anything is missing. */
static int describe_parts(struct elfview *im, const struct python_version *v,
			  const struct python_parts *p, bool hidden, struct runtime_build *ret)
{
	uint64_t debug[PYTHON_DEBUG_WORDS] = { 0 };
	struct layout l = { 0 };
	uint16_t extra = 0;
	uint64_t offset, left;
	int r;

	if (symfile_offset(im->file, p->eval.value, &offset, &left) != 0)
		return 0;
	if (v->minor >= 13 &&
	    (!p->runtime || elfview_read(im, p->runtime, debug, sizeof(debug)) != 0))
		return 0;
	if (v->minor < 13 && !hidden)
		extra = extra_head(im, v->minor);
	else if (v->minor < 13 && p->argcount > layouts[v->minor].n.code_check)
		extra = head_from(v->minor, p->argcount);
	if (debug[DEBUG_FREE_THREADED] && v->minor >= 13)
		strncat(ret->name, " free-threaded", sizeof(ret->name) - strlen(ret->name) - 1);
	if (!python_layout(v->minor, extra, debug, &l.c, &l.n) ||
	    (hidden ? !place_by_parts(p, v->minor, &l) : !python_find_state(im, &l.c)))
		return 0;
	find_libc(im->file, &l.c);
	/* Convert addresses: the walk adds the mapping's start minus its file offset. */
	if (l.c.thread != PYTHON_TLS_OFFSET)
		l.c.state -= p->eval.value - offset;
	if (l.c.holder)
		l.c.holder -= p->eval.value - offset;
	ret->config.version = 3u << 16 | v->minor << 8 | v->patch;
	ret->config.by_loop = l.c.frames == PYTHON_OBJECTS;
	r = set_loop(im, &p->eval, &ret->config);
	if (r)
		return r;
	python_find_jit(im, v->minor, &ret->config);
	ret->config.copy = python_copy(&l.n);
	memcpy(ret->config.own, &l.c, sizeof(l.c));
	memcpy(ret->naming, &l.n, sizeof(l.n));
	ret->known = true;
	return 0;
}

static void name_build(const struct python_version *v, char ret[static RUNTIME_NAME])
{
	snprintf(ret, RUNTIME_NAME, "CPython 3.%u.%u%s", v->minor, v->patch, v->suffix);
}

static bool version_is_known(const struct python_version *v)
{
	return v->minor >= OLDEST && v->minor <= NEWEST;
}

/* Describes a file that exports nothing. Its name tells that the symbols are missing, also if the
 * build stays unsupported. */
static int describe_hidden(struct elfview *im, struct runtime_build *ret)
{
	bool named = false;
	struct python_parts p = { .runtime = 0 };
	struct python_version v;
	char name[RUNTIME_NAME];
	int r = python_find_version(im, &v);

	if (r)
		return r < 0 ? r : 0;
	if (!version_is_known(&v))
		return 0;
	r = recognize(im, true, &p.eval);
	named = r == 0;
	if (named)
		name_parts(im, v.minor, &p);
	else if (r == RUNTIME_NOT_MINE)
		r = python_find_parts(im, v.minor, &p);
	if (r)
		return r == -ENOMEM ? r : 0;
	memcpy(name, ret->name, sizeof(name));
	name_build(&v, ret->name);
	r = describe_parts(im, &v, &p, !named, ret);
	if (!ret->known)
		memcpy(ret->name, name, sizeof(name));
	return r;
}

static int describe(struct elfview *im, struct runtime_build *ret)
{
	struct python_parts p = { .runtime = 0 };
	struct python_version v;
	bool hidden = false;
	int r = recognize(im, false, &p.eval);

	if (r == RUNTIME_NOT_MINE) {
		r = python_find_other(im, ret->name, &hidden);
		return r || !hidden ? r : describe_hidden(im, ret);
	}
	if (r)
		return r;
	r = python_find_version(im, &v);
	if (r < 0)
		return r;
	if (r) {
		snprintf(ret->name, sizeof(ret->name), "CPython");
		return 0;
	}
	name_build(&v, ret->name);
	if (!version_is_known(&v))
		return 0;
	name_parts(im, v.minor, &p);
	return describe_parts(im, &v, &p, false, ret);
}

static int print(const struct runtime_build *b, struct buf *ret)
{
	struct python_naming n;
	struct python_config c;

	memcpy(&c, b->config.own, sizeof(c));
	memcpy(&n, b->naming, sizeof(n));
	int r = buf_printf(ret,
			   "thread %u frames %u flags %u entry_owner %u tsd 0x%x state 0x%" PRIx64
			   " tls_add %u holder 0x%" PRIx64 "\n"
			   "tstate_frame %u thread %u cframe_frame %u cframe_previous %u\n"
			   "frame_previous %u frame_code %u frame_position %u frame_owner %u"
			   " frame_bytes %u\n"
			   "code_check %u code_check_words %u code_bytecode %u code_copies %u"
			   " frame_copy %u\n",
			   c.thread, c.frames, c.flags, c.entry_owner, c.tsd, (uint64_t)c.state,
			   c.tls_add, (uint64_t)c.holder, c.tstate_frame, c.tstate_thread,
			   c.cframe_frame, c.cframe_previous, c.frame_previous, c.frame_code,
			   c.frame_position, c.frame_owner, c.frame_bytes, c.code_check,
			   c.code_check_words, c.code_bytecode, c.code_copies, c.frame_copy);

	return r ? r
		 : buf_printf(ret,
			      "code_bytes %u name %u qualname %u filename %u firstline %u table %u"
			      " units %u traceable %u\n"
			      "text_length %u state %u kind %u ascii %u other %u "
			      "bytes_size %u data %u\n",
			      n.code_bytes, n.code_name, n.code_qualname, n.code_filename,
			      n.code_firstline, n.code_table, n.code_units, n.code_traceable,
			      n.text_length, n.text_state, n.text_kind, n.text_ascii, n.text_other,
			      n.bytes_size, n.bytes_data);
}

const struct runtime_ops python_runtime = {
	.describe = describe, .name = python_name, .is_sane = python_is_sane, .print = print
};
