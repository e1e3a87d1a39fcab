/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython 3.6 to 3.15 as a runtime (runtime.h):
 *
 *  - python.c    recognizes a build and describes it
 *  - version.c   finds out the version, also of unsupported builds
 *  - state.c     finds where the build keeps the thread state
 *  - loop.c      finds the code of its interpreter loop
 *  - parts.c     finds both in a file without symbols
 *  - traces.c    finds how the JIT's code is called
 *  - name.c      names code objects
 *  - module.c    names the module of a source file
 */
#ifndef COMMON_NAMES_RUNTIME_PYTHON_PYTHON_H
#define COMMON_NAMES_RUNTIME_PYTHON_PYTHON_H

#include "bpf/python/python.h"
#include "bpf/tables.h"
#include "common/names/runtime/runtime.h"

/* The facts about a build that naming needs: offsets in bytes. */
struct python_naming {
	uint8_t minor;
	uint8_t check_words;
	uint8_t text_kind;   /* shift in a str's state: of the lowest of the 3 bits of the character
			      * size; the bits `compact` and `ascii` follow */
	uint8_t counted;     /* an object's first word is its reference count and nothing else */
	uint16_t code_bytes; /* how much of a code object is read */
	uint16_t code_check;
	uint16_t code_name, code_qualname, code_filename; /* code_qualname 0: it has none */
	uint16_t code_firstline, code_table;
	uint16_t code_units, code_traceable; /* 3.11 and later: offset of the instructions, and of
					      * the number of the first one that the line table
					      * counts */
	/* Of a str. text_ascii, text_other: the offsets of the characters. */
	uint16_t text_length, text_state, text_ascii, text_other;
	uint16_t bytes_size, bytes_data;
	uint16_t check_text; /* as in python_config */
};
static_assert(sizeof(struct python_naming) <= RUNTIME_OWN_NAMING, "it fits");

/* Fills c and n with the offsets of a version. debug: the first PYTHON_DEBUG_WORDS words of
 * _PyRuntime, for 3.13 and later. extra: by how many bytes object heads are larger than usual.
 * Returns false if the layout is unknown. */
#define PYTHON_DEBUG_WORDS 96
bool python_layout(unsigned minor, uint16_t extra, const uint64_t *debug, struct python_config *c,
		   struct python_naming *n);
/* Returns which parts of a code object the kernel program copies, so that it can be named. */
struct runtime_copy python_copy(const struct python_naming *n);

struct python_version {
	unsigned minor, patch;
	char suffix[12]; /* "rc1" */
};
/* Finds the version of the CPython in a file. Returns 0, SYMFILE_NONE if the file does not contain
 * it, or -ENOMEM. */
int python_find_version(const struct elfview *im, struct python_version *v);
/* Names a Python without the symbols of a supported one. *ret_hidden: it may be a supported one
 * that was stripped. Returns 0, RUNTIME_NOT_MINE or -ENOMEM. */
int python_find_other(const struct elfview *im, char ret[static RUNTIME_NAME], bool *ret_hidden);

/* Finds the thread state. Fills thread, state, tls_add and flags of c, and holder from c's frame
 * offsets; addresses are ELF addresses. Returns false if the build keeps it in an unknown way. */
bool python_find_state(struct elfview *im, struct python_config *c);

/* Finds the code of the interpreter loop: at most RUNTIME_RANGES ranges of addresses. Returns 0 or
 * -ENOMEM. */
int python_find_loop(struct elfview *im, const struct elfview_symbol *eval,
		     struct runtime_range ret[static RUNTIME_RANGES], uint32_t *ret_count);

/* Finds where a C function has its return address when it calls a trace, from the function's first
 * bytes. Returns the number of words below RBP; 0: unknown. */
#define PYTHON_ENTRY_BYTES 32
unsigned python_words_below(const uint8_t code[static PYTHON_ENTRY_BYTES]);
/* Describes the JIT: fills c->takes and c->rule, and adds to c->loop. Changes nothing if the build
 * has no JIT, or an unknown one. */
void python_find_jit(const struct elfview *im, unsigned minor, struct runtime_config *c);

/* Addresses in a file without symbols, found by its code and data. */
struct python_parts {
	struct elfview_symbol eval;
	uint64_t runtime;	    /* _PyRuntime; 0: not found */
	uint64_t argcount;	    /* the offset of co_argcount; 0: not found */
	struct python_config state; /* thread, state and tls_add */
};
/* Finds these addresses. Returns 0, SYMFILE_NONE or another enum symfile_verdict, or -ENOMEM. */
int python_find_parts(struct elfview *im, unsigned minor, struct python_parts *ret);
/* Follows a function that uses its thread state, and sets in c where that comes from. Returns false
 * if this cannot be determined. */
bool python_follow_use(struct elfview *im, uint64_t function, unsigned minor,
		       struct python_config *c);
/* Whether a table of 256 addresses exists, most of which lead into this code: the jump table of an
 * interpreter loop. Returns 0 if so, SYMFILE_NONE or -ENOMEM. */
int python_has_table(struct elfview *im, const struct runtime_range *code);
/* Whether the table of a tail-calling loop leads into this code, or into a function that it calls.
 * Returns as python_has_table does. */
int python_has_tails(struct elfview *im, const struct runtime_range *code);

/* Returns the check value of a code object: over its code_bytes bytes, and as much of its name's
 * str as was read. */
uint64_t python_sum(const struct python_naming *n, const uint8_t *code, struct span name);

/* Implements is_sane of struct runtime_ops. */
bool python_is_sane(const struct runtime_build *b);
/* Implements name of struct runtime_ops. */
int python_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		struct object_memory *m, struct runtime_object *ret);
/*
 * Appends the name of a source file's module. Below a known folder this is the dotted name, else
 * the file's last part:
 *
 *   /usr/lib/python3.11/asyncio/base_events.py   asyncio.base_events
 *   /a/b.py                                      b
 *   /a/b/__init__.py                             b
 *   <frozen importlib._bootstrap>                importlib._bootstrap
 *   <string>                                     <string>
 */
void python_module(struct str source, struct runtime_text *ret);

#endif
