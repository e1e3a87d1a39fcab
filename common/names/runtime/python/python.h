/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython 3.6 to 3.15. python.c recognizes and describes a build, python_version.c says which it
 * is, also of what is not known, python_state.c finds where it keeps the thread state,
 * python_loop.c where its interpreter's loop lies, python_parts.c all that where there are no
 * symbols. python_name.c names code objects.
 */
#ifndef PROFPIPE_SYMD_PYTHON_H
#define PROFPIPE_SYMD_PYTHON_H

#include "bpf/python.h"
#include "common/names/runtime/runtime.h"

/* What naming needs to know of a build: offsets in bytes. */
struct python_naming {
	uint8_t minor;
	uint8_t check_words;
	uint8_t text_kind;   /* lowest bit in the state of the characters' size; compact and ascii
				are the two above its three */
	uint8_t counted;     /* an object's first word is its count of references, and no more */
	uint16_t code_bytes; /* of a code object that are read */
	uint16_t code_check;
	uint16_t code_name, code_qualname, code_filename; /* qualname 0: it has none */
	uint16_t code_firstline, code_table;
	uint16_t code_units, code_traceable; /* 3.11 and later: instructions, and the first that
						counts */
	uint16_t text_length, text_state, text_ascii, text_other; /* of a str; where the
								     characters begin */
	uint16_t bytes_size, bytes_data;
	uint16_t check_text; /* as in python_config */
};
static_assert(sizeof(struct python_naming) <= RUNTIME_OWN_NAMING, "it fits");

/* Where a version has what: fills c and n. debug: the first PYTHON_DEBUG_WORDS of _PyRuntime, for
 * 3.13 and later. extra: how much larger objects' heads are than usual. False: not known. */
#define PYTHON_DEBUG_WORDS 96
bool python_layout(unsigned minor, uint16_t extra, const uint64_t *debug, struct python_config *c,
		   struct python_naming *n);
/* What is copied of a code object, for its names. */
struct runtime_copy python_copy(const struct python_naming *n);

/* Which CPython a file that holds one is. 0, SYMFILE_NONE: it does not say, -ENOMEM. */
struct python_version {
	unsigned minor, patch;
	char suffix[12]; /* "rc1" */
};
int python_find_version(const struct elfview *im, struct python_version *v);
/* The name of a Python that has none of the names of one whose frames are read; *ret_hidden: it
 * may be one, without symbols. 0, RUNTIME_NOT_MINE, -ENOMEM. */
int python_find_other(const struct elfview *im, char ret[static RUNTIME_NAME], bool *ret_hidden);

/* The thread state: fills thread, state, tls_add and flags of c, and holder by its frames;
 * addresses as the file has them. False: this is no way that is known. */
bool python_find_state(struct elfview *im, struct python_config *c);

/* The code of the interpreter's loop, as addresses: at most RUNTIME_RANGES. 0, -ENOMEM. */
int python_find_loop(struct elfview *im, const struct elfview_symbol *eval,
		     struct runtime_range ret[static RUNTIME_RANGES], uint32_t *ret_count);

/* What a file without symbols has where, by address; found by what is in its code and data. */
struct python_parts {
	struct elfview_symbol eval;
	uint64_t runtime;	    /* _PyRuntime; 0: not found */
	uint64_t argcount;	    /* the offset of co_argcount; 0: not found */
	struct python_config state; /* thread, state and tls_add */
};
/* 0, SYMFILE_NONE and others, -ENOMEM. */
int python_find_parts(struct elfview *im, unsigned minor, struct python_parts *ret);
/* Whether a function that uses its thread state takes it from where c then says. */
bool python_follow_use(struct elfview *im, uint64_t function, unsigned minor,
		       struct python_config *c);
/* Whether code has a table of 256 places, most of them in it. 0, SYMFILE_NONE, -ENOMEM. */
int python_has_table(struct elfview *im, const struct runtime_range *code);
/* Whether it, or a function that it calls, has one of the functions of a tail-calling loop. */
int python_has_tails(struct elfview *im, const struct runtime_range *code);

/* The check of a code object, of its code_bytes bytes and so much of its name's str as is there. */
uint64_t python_sum(const struct python_naming *n, const uint8_t *code, struct span name);

/* The op. */
int python_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		struct object_memory *m, struct runtime_object *ret);
/* Appends what the module of a file is called: its dotted name where the folder is known that it is
 * below, else the file's last part: "/usr/lib/python3.11/asyncio/base_events.py" is
 * asyncio.base_events, "/a/b.py" is b, "/a/b/__init__.py" is b, "<frozen importlib._bootstrap>" is
 * importlib._bootstrap, "<string>" stays. */
void python_module(struct str source, struct runtime_text *ret);
/* The lines of a table. 0, -ENOMEM. */
int python_lines(const struct python_naming *n, uint32_t first, struct span table,
		 struct runtime_object *ret);

#endif
