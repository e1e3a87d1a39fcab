/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes, as prof-symd sees them (bpf/runtime.h: as prof-bpf does). Each is one file that fills
 * struct runtime_ops, as NAME_runtime for its name in bpf/runtimes.def; it may have more, NAME_*.c.
 *
 * recognize and describe: a file that is opened is offered to each runtime, which looks at what is
 * in it, never at its name. What it finds of this very build is a struct runtime_build: a config
 * for the walk, and whatever its own naming needs.
 *
 * name: an interpreted frame is an object in the process's memory, a check of that object and a
 * position in it. The reader gets memory by pieces (object_memory.h) and says what the object is:
 * its name, its file, and the lines of all its positions.
 *
 * Both are pure, and take what they read for hostile: whatever it is, they take bounded time and
 * memory, and the worst that comes out is a wrong name.
 */
#ifndef PROFPIPE_SYMD_RUNTIME_H
#define PROFPIPE_SYMD_RUNTIME_H

#include "bpf/runtime.h"
#include "common/names/elf/elfview.h"
#include "common/names/runtime/object_memory.h"

#define RUNTIME_NAME 64	       /* bytes of a build's name, with the NUL */
#define RUNTIME_TEXT 1024      /* bytes of a string of an object */
#define RUNTIME_LINES 16384    /* entries of an object's lines */
#define RUNTIME_OWN_NAMING 128 /* bytes for what a runtime's naming needs to know of a build */

struct runtime_build {
	struct runtime_config config;
	char name[RUNTIME_NAME]; /* with its version: "CPython 3.11.2" */
	bool known;		 /* false: no config; its frames are not read */
	uint64_t naming[RUNTIME_OWN_NAMING / 8];
	uint64_t mark; /* where the runtime's mark stands in the file; 0: not looked for */
};

/* Positions below `end`, from where the one before ends, are on this line; 0: on none. */
struct runtime_line {
	uint32_t end, line;
};

struct runtime_text {
	uint32_t len;
	char bytes[RUNTIME_TEXT]; /* UTF-8 */
};

/* An object as it is shown. */
struct runtime_object {
	struct runtime_text name;	 /* with its module */
	struct runtime_text system_name; /* as the runtime has it */
	struct runtime_text source;
	uint64_t start_line;
	bool hidden;	  /* the runtime's own: no function of the program */
	struct buf lines; /* struct runtime_line, ends rising; owned */
};

enum runtime_verdict {
	RUNTIME_NOT_MINE = 1,
	RUNTIME_WANTS = 2, /* memory that is not read yet */
	RUNTIME_GONE = 3,  /* the object is another now, or none */
};

/* All but print are needed. */
struct runtime_ops {
	/* 0, also for a build that is not known, RUNTIME_NOT_MINE, -ENOMEM. *ret is zeroed, but for
	 * config.runtime. */
	int (*describe)(struct elfview *im, struct runtime_build *ret);
	/* 0, RUNTIME_WANTS, RUNTIME_GONE, -ENOMEM. *ret is reset; it means nothing unless 0. */
	int (*name)(const struct runtime_build *b, uint64_t address, uint64_t check,
		    struct object_memory *m, struct runtime_object *ret);
	/* What is in config.own and naming as text. May be NULL. 0, errors of buf_append. */
	int (*print)(const struct runtime_build *b, struct buf *ret);
};

#define RUNTIME(number, NAME, name, title, mark) extern const struct runtime_ops name##_runtime;
#include "bpf/runtimes.def"

/* What runtime a file holds. 0, RUNTIME_NOT_MINE, -ENOMEM. */
int runtime_describe(const struct symfile *f, struct runtime_build *ret);
/* Looks for the mark of the build's runtime (bpf/runtime.h), without which prof-bpf believes
 * nothing of it: one that has none is not known. 0, -ENOMEM, -errno. */
int runtime_find_mark(const struct symfile *f, struct runtime_build *b);
/* As the op of the build's runtime. */
int runtime_name(const struct runtime_build *b, uint64_t address, uint64_t check,
		 struct object_memory *m, struct runtime_object *ret);
/* In names that stand for those not known: "[python: gone]". */
const char *runtime_label(const struct runtime_build *b);
/* The line of a position; 0: none is known. */
uint64_t runtime_line(const struct runtime_line *lines, size_t count, uint32_t position);
void runtime_object_done(struct runtime_object *o);
/* Adds a range of positions to the lines of an object. 0, -ENOMEM; beyond RUNTIME_LINES it is left
 * out. */
int runtime_add_line(struct runtime_object *o, uint32_t end, uint32_t line);
/* Appends; what is too long is cut between characters. */
void runtime_append(struct runtime_text *t, const char *s, size_t len);
/* A build as text. 0, errors of buf_append. */
int runtime_print(const struct runtime_build *b, struct buf *ret);

#endif
