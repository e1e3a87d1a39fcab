/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definitions of the raw stream's current epoch. Every table has a limit, and all together have
 * one in bytes. A definition that does not fit is dropped, and limit_hit is set. A second
 * definition of a process or file updates the first one; of anything else it is ignored. Id 0 means
 * none.
 */
#ifndef PROF_SYMD_STREAM_DEFINITIONS_H
#define PROF_SYMD_STREAM_DEFINITIONS_H

#include "common/names/runtime/runtime.h"
#include "common/wire/msg.h"
#include "tools/prof-symd/files/filestore.h"
#include "tools/prof-symd/stream/functions.h"
#include "tools/prof-symd/stream/idtable.h"

/* `sent` in each definition is the last epoch of the named stream in which it was sent. `payers`
 * are the owners who were charged for it in this epoch, one bit each. */
struct definition_process {
	struct msg_process def; /* its comm is the array below */
	char comm[16];
	uint64_t sent;
	uint64_t relayed_sent; /* as `sent`, for all its attributes and mappings */
	uint32_t threads;      /* slot of its first thread; IDMAP_NONE: none */
	uint32_t relayed;      /* slot of its first attribute or mapping (relayed.h) */
};

struct definition_thread {
	struct msg_thread def;
	char comm[16];
	char *title; /* owned, def.title.len bytes */
	uint64_t sent;
	uint32_t next, previous; /* threads of the same process; IDMAP_NONE: none */
	bool ended;		 /* must be forgotten when no sample of it is held back */
};

struct definition_file {
	struct msg_file def; /* its texts and lists point into `text` */
	char *text;	     /* owned, text_len bytes */
	size_t text_len;
	uint64_t sent;
	uint64_t told; /* as `sent`, but also set when it was sent without the file's contents */
	uint32_t payers;
	struct filestore_file store;
	struct runtime_build *build;  /* owned; NULL: it has no runtime, or an unsupported one */
	bool described, untold;	      /* untold: prof-bpf still has to be told */
	bool postponed;		      /* it waits to be described */
	bool awaited;		      /* prof-bpf offered the file, and it is not open yet */
	bool was_open;		      /* it was open in the previous epoch, and still is */
	bool ended;		      /* must be forgotten when no sample waits */
	struct definition_file *next; /* list of the files that were open */
};

struct definition_frame {
	uint64_t offset, file, process;
	union {
		uint64_t address;
		uint64_t mark; /* MSG_FRAME_INTERPRETED */
	};
	uint64_t sent;
	uint32_t payers;
	/* The index of its first number in definitions.numbers. If the frame came with names, the
	 * numbers are its functions, then as many lines. If it has a second object, the address and
	 * mark of that follow. */
	uint32_t numbers;
	uint16_t count;
	uint8_t kind, flags;
	uint8_t runtime;
	bool hidden; /* removed from stacks that are sent */
	bool lacks;  /* interpreted, and sent without its name, which may still come */
	bool has_second;
};

struct definition_stack {
	uint64_t at_file, sent;
	uint32_t payers, reason, numbers, count;
	uint32_t lacking; /* number of frames that lacked their names when it was sent */
};

struct definition_function {
	struct function f; /* its strings point into `text` */
	char *text;	   /* owned */
};

/* A message that is only passed on (relayed.h). */
struct definition_relayed {
	uint8_t *bytes; /* owned */
	uint64_t key, name, sent;
	uint32_t len, next; /* next: of the same process; IDMAP_NONE: none */
	enum msg_id id;
};

struct definitions_limits {
	size_t processes, threads, files, frames, stacks, functions, relayed;
	size_t numbers; /* frame ids in stacks, and function ids in frames */
	size_t bytes;	/* limit of all together; 0: no limit */
};

struct definitions {
	struct filestore *store; /* borrowed; it opens files */
	struct idtable processes, threads, files /* `files` has pointers */, frames, stacks,
		functions, relayed;
	uint64_t relayed_made; /* used to make keys */
	/* Open programs of the previous epoch. If the current epoch defines the same file with the
	 * same id, it keeps that program. */
	struct definition_file *were_open;
	uint64_t *numbers;
	size_t numbers_len, numbers_cap, numbers_max;
	size_t text, bytes_max; /* text: bytes that files and functions own */
	bool limit_hit;
};

/* Returns 0 or -ENOMEM. Call definitions_done also after an error. */
int definitions_init(struct definitions *d, const struct definitions_limits *limits,
		     struct filestore *store);
/* Bytes of memory held. */
size_t definitions_bytes(const struct definitions *d);
/* Begins an epoch: forgets all definitions, but keeps open programs for now. */
void definitions_clear(struct definitions *d);
/* Frees everything. */
void definitions_done(struct definitions *d);
/* Each function stores a definition. Returns 0 or -ENOMEM. */
int definitions_process(struct definitions *d, const struct msg_process *m);
int definitions_thread(struct definitions *d, const struct msg_thread *m);
int definitions_file(struct definitions *d, const struct msg_file *m);
int definitions_function(struct definitions *d, const struct msg_function *m);
/* *ret is NULL if the definition was dropped or ignored. */
int definitions_frame(struct definitions *d, const struct msg_frame *m,
		      struct definition_frame **ret);
int definitions_stack(struct definitions *d, const struct msg_stack *m,
		      struct definition_stack **ret);
/* Returns the definition with an id, or NULL. Valid until the next one of its kind is added. */
struct definition_process *definitions_find_process(const struct definitions *d, uint64_t id);
struct definition_file *definitions_find_file(const struct definitions *d, uint64_t id);
struct definition_frame *definitions_find_frame(const struct definitions *d, uint64_t id);
/* Forgets a file, and closes it. Call it when no frame in the file is needed any more. */
void definitions_end_file(struct definitions *d, uint64_t id);
/* Forgets a thread that ended. */
void definitions_end_thread(struct definitions *d, uint64_t id);
/* Adds an element to a table of d, and charges `text` bytes, if there is space. Returns 0, -EEXIST,
 * -ENOBUFS, -EINVAL or -ENOMEM. */
int definitions_add(struct definitions *d, struct idtable *t, uint64_t id, size_t text,
		    uint32_t *ret_slot);
/* Forgets a process that ended, its threads, attributes and mappings. Returns how many of these
 * threads had `ended` set. */
uint32_t definitions_end_process(struct definitions *d, uint64_t id);

#endif
