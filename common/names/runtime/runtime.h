/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime as prof-symd sees it: an interpreter such as CPython. bpf/runtime.h has prof-bpf's
 * view. Each runtime has a folder here, and defines a struct runtime_ops called NAME_runtime, where
 * NAME comes from bpf/runtimes.def.
 *
 *  - describe: prof-symd offers each file that it opens to each runtime. The runtime looks at the
 *    contents, never at the file's name. It returns a struct runtime_build: the config for walking
 *    frames of exactly this build, and what its own naming needs.
 *  - name: an interpreted frame is the address of an object in the process's memory, a check value
 *    of that object, and a position in it. The reader gets the memory in pieces (object_memory.h).
 *    It returns the object's name, its file, the lines of all its positions, and the calls inlined
 *    there.
 *
 * A frame may have a second object (RUNTIME_SECOND), which is named separately, since many frames
 * share it. Its name comes before the first one's: `Class#` and `method`. If it has source and
 * lines, they replace the first one's.
 *
 * Both functions, and is_sane, are pure and treat their input as hostile: they take bounded time
 * and memory, and the worst result is a wrong name.
 */
#ifndef COMMON_NAMES_RUNTIME_RUNTIME_H
#define COMMON_NAMES_RUNTIME_RUNTIME_H

#include "bpf/runtime.h"
#include "common/names/elf/elfview.h"
#include "common/names/runtime/object_memory.h"

#define RUNTIME_NAME 64		/* bytes of a build's name, with the NUL */
#define RUNTIME_TEXT 1024	/* bytes of a string of an object */
#define RUNTIME_LINES 16384	/* entries of an object's lines */
#define RUNTIME_OWN_NAMING 1024 /* bytes of `naming` below */
#define RUNTIME_ROUNDS 12	/* of reading memory for one object, at most */
#define RUNTIME_INLINED 1024	/* inlined calls of an object */
#define RUNTIME_INLINED_TEXT (64u << 10)

struct runtime_build {
	struct runtime_config config;
	char name[RUNTIME_NAME]; /* includes the version: "CPython 3.11.2" */
	bool known;		 /* false: unsupported; there is no config, and its frames are not
				  * read */
	uint64_t naming[RUNTIME_OWN_NAMING / 8]; /* private to the runtime, for naming */
	uint64_t mark; /* file offset of the runtime's mark; 0: not looked for */
};

/* The line of all positions from the previous entry's end up to `end`; 0: unknown. */
struct runtime_line {
	uint32_t end, line;
};

/* A function that is inlined in an object. */
struct runtime_inlined {
	uint32_t caller; /* 1 + the index of the inlined call that contains it; 0: the object
			  * itself */
	uint32_t line;	 /* of the call, in the caller; 0: unknown */
	uint32_t start_line;
	uint32_t name, name_len, source, source_len; /* offsets and lengths in the object's
						      * `texts` */
};

struct runtime_text {
	uint32_t len;
	char bytes[RUNTIME_TEXT]; /* UTF-8 */
};

/* The name of an object, as outputs show it. */
struct runtime_object {
	struct runtime_text name;	 /* with its module */
	struct runtime_text system_name; /* as the runtime writes it */
	struct runtime_text source;
	uint64_t start_line;
	bool hidden;	  /* internal to the runtime, not a function of the program */
	struct buf lines; /* struct runtime_line, sorted by end; owned */
	/* For a JIT's code. inside: for each line, 1 + the index of the inlined call that it is in,
	 * or 0, as uint32_t; empty if nothing is inlined. inlined: the calls, struct
	 * runtime_inlined. All owned. */
	struct buf inside, inlined, texts;
};

enum runtime_verdict {
	RUNTIME_NOT_MINE = 1,
	RUNTIME_WANTS = 2, /* needs memory that was not read yet */
	RUNTIME_GONE = 3,  /* another object, or none, is at this address now */
};

/* Converts the result of object_memory_get to a result of `name`. */
static inline int runtime_verdict(int r)
{
	return r == OBJECT_MEMORY_WANTED ? RUNTIME_WANTS : r ? RUNTIME_GONE : 0;
}

struct runtime_ops {
	/* Recognizes a file and describes its build. Returns 0 also for an unsupported build (known
	 * is false); otherwise RUNTIME_NOT_MINE or -ENOMEM. The caller has zeroed *ret and set
	 * config.runtime. */
	int (*describe)(struct elfview *im, struct runtime_build *ret);
	/* Names an object. Returns 0, RUNTIME_WANTS, RUNTIME_GONE or -ENOMEM. The caller has reset
	 * *ret, whose contents are only valid if this returns 0. */
	int (*name)(const struct runtime_build *b, uint64_t address, uint64_t check,
		    struct object_memory *m, struct runtime_object *ret);
	/* Whether `name` can safely use the naming of a build that another process described: no
	 * offset leads out of the memory that is read. Pure. */
	bool (*is_sane)(const struct runtime_build *b);
	/* Appends config.own and naming as text. May be NULL. Returns 0 or errors of buf_append. */
	int (*print)(const struct runtime_build *b, struct buf *ret);
};

#define RUNTIME(number, NAME, name, title, type, mark) \
	extern const struct runtime_ops name##_runtime;
#include "bpf/runtimes.def"

/* --- the registry (registry.c) --- */

/* Finds the runtime in a file. Returns 0, RUNTIME_NOT_MINE or -ENOMEM. */
int runtime_describe(const struct symfile *f, struct runtime_build *ret);
/* Finds the mark of the build's runtime (bpf/runtime.h). prof-bpf ignores a description without a
 * mark, so without one the build becomes unsupported. Returns 0, -ENOMEM or -errno. */
int runtime_find_mark(const struct symfile *f, struct runtime_build *b);
/* Whether a build that another process described can be used. */
bool runtime_is_sane(const struct runtime_build *b);
/* Calls `name` of the build's runtime. */
int runtime_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		 struct object_memory *m, struct runtime_object *ret);
/* Returns the runtime's label in names that stand for unknown ones: "python" in "[python:
 * gone]". */
const char *runtime_label(const struct runtime_build *b);
/* Appends a build as text. Returns 0 or errors of buf_append. */
int runtime_print(const struct runtime_build *b, struct buf *ret);

/* --- for all runtimes --- */

/* Returns the line of a position; 0: unknown. */
uint64_t runtime_line(const struct runtime_line *lines, size_t count, uint32_t position);
/* The calls at a position of an object, the innermost first and the object itself last. Borrowed
 * from the object. runtime_calls returns how many there are, at most `max`. If there are more,
 * those nearest to the object are left out. */
struct runtime_call {
	struct str name, source;
	uint64_t line, start_line;
};
unsigned runtime_calls(const struct runtime_object *o, uint32_t position, struct runtime_call *ret,
		       unsigned max);
void runtime_object_done(struct runtime_object *o);
/* Adds a range of positions to the lines of an object; drops it beyond RUNTIME_LINES. Returns 0 or
 * -ENOMEM. */
int runtime_add_line(struct runtime_object *o, uint32_t end, uint32_t line);
/* Like runtime_add_line, for positions in an inlined call. inlined: 1 + its index, or 0. */
int runtime_add_line_in(struct runtime_object *o, uint32_t end, uint32_t line, uint32_t inlined);
/* Adds an inlined call, whose caller was added before. *ret is 1 + its index; if there are too many
 * calls, it is the caller's. Returns 0 or -ENOMEM. */
int runtime_add_inlined(struct runtime_object *o, uint32_t caller, uint32_t line, struct str name,
			struct str source, uint32_t start_line, uint32_t *ret);
/* Appends a string, truncated to RUNTIME_TEXT between two characters. */
void runtime_append(struct runtime_text *t, const char *s, size_t len);
/* Appends a character in UTF-8. Invalid characters, such as half of a UTF-16 pair, become U+FFFD.
 */
void runtime_append_character(struct runtime_text *t, uint32_t c);

#endif
