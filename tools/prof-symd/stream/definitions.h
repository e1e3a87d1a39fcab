/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a raw stream has defined in its epoch, as long as it holds. Every table has a ceiling, and
 * all together have one in bytes; what does not fit is not kept, which limit_hit says. A second
 * definition of a process updates the first, one of anything else is ignored. Id 0 names nothing.
 */
#ifndef PROFPIPE_DEFINITIONS_H
#define PROFPIPE_DEFINITIONS_H

#include "common/wire/msg.h"
#include "tools/prof-symd/files/filestore.h"
#include "tools/prof-symd/stream/functions.h"
#include "tools/prof-symd/stream/idtable.h"
#include "common/names/runtime/runtime.h"

/* `sent` in each definition is the epoch of the named stream in which it was sent last. */
struct def_process {
	struct msg_process def; /* comm: below */
	char comm[16];
	uint64_t sent;
	uint32_t threads; /* the first of its threads, IDMAP_NONE at the end */
};

struct def_thread {
	struct msg_thread def;
	char comm[16];
	uint64_t sent;
	uint32_t next; /* of the same process */
};

struct def_file {
	struct msg_file def; /* path and build id: owned, by text */
	char *text;
	uint64_t sent;
	struct filestore_file store;
	struct runtime_build *build; /* owned; NULL: it holds no runtime, or is not known */
	bool described, untold;
	bool awaited; /* it was offered, and is not open yet */
};

struct def_frame {
	uint64_t offset, file, process;
	union {
		uint64_t address;
		uint64_t mark; /* FRAME_INTERPRETED */
	};
	uint64_t sent;
	uint32_t numbers; /* its functions, then as many lines, when it came with names */
	uint16_t count;
	uint8_t kind, flags;
	uint8_t runtime;
	bool hidden; /* in stacks that are sent it is left out */
	bool lacks;  /* interpreted: it was sent without its name, which may come yet */
};

struct def_stack {
	uint64_t at_file, sent;
	uint32_t reason, numbers, count;
	uint32_t lacking; /* frames that lacked their names when it was sent */
};

struct def_function {
	struct function f; /* strings: owned, by text */
	char *text;
};

struct definitions_limits {
	size_t processes, threads, files, frames, stacks, functions;
	size_t numbers; /* frame ids in stacks, function ids in frames */
	size_t bytes;	/* of all together; 0: as much as that takes */
};

struct definitions {
	struct filestore *store; /* borrowed: where files are opened */
	struct idtable processes, threads, files /* pointers */, frames, stacks, functions;
	uint64_t *numbers;
	size_t numbers_len, numbers_cap, numbers_max;
	size_t text, bytes_max; /* text: bytes that files and functions own */
	bool limit_hit;
};

/* 0, -ENOMEM; definitions_clear is to be called either way. */
int definitions_init(struct definitions *d, const struct definitions_limits *limits,
		     struct filestore *store);
/* Memory that all of it takes. */
size_t definitions_bytes(const struct definitions *d);
/* Forgets all of it, and frees what it took. */
void definitions_clear(struct definitions *d);
/* Each keeps what a message says. 0, -ENOMEM. */
int definitions_process(struct definitions *d, const struct msg_process *m);
int definitions_thread(struct definitions *d, const struct msg_thread *m);
int definitions_file(struct definitions *d, const struct msg_file *m);
int definitions_function(struct definitions *d, const struct msg_function *m);
/* *ret: NULL where it is not kept. */
int definitions_frame(struct definitions *d, const struct msg_frame *m, struct def_frame **ret);
int definitions_stack(struct definitions *d, const struct msg_stack *m, struct def_stack **ret);
/* What an id stands for, or NULL. Good until the next of its kind is added. */
struct def_process *definitions_find_process(const struct definitions *d, uint64_t id);
struct def_file *definitions_find_file(const struct definitions *d, uint64_t id);
struct def_frame *definitions_find_frame(const struct definitions *d, uint64_t id);
/* A process is over, and with it its threads. */
void definitions_end_process(struct definitions *d, uint64_t id);

#endif
