/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definitions of a stream: strings, files, functions, frames, stacks, processes and threads,
 * and the counts of samples. Each kind has an array that holds every distinct entry once. The
 * number of an entry is its place there. One pool pays for all arrays.
 */
#ifndef PROF_EXPORT_MODEL_DEFINITIONS_H
#define PROF_EXPORT_MODEL_DEFINITIONS_H

#include <stdbool.h>
#include "common/status/status.h"
#include "common/wire/msg.h"
#include "tools/prof-export/model/table.h"

#define MODEL_NONE TABLE_NONE

enum model_detail {
	/* For outputs that show names: a frame is one call, without its line unless options ask for
	 * it. Code with a name loses its addresses; in code without one, all addresses of a
	 * function are one frame. So far fewer stacks differ. */
	MODEL_NAMES,
	MODEL_ADDRESSES, /* everything: a frame is one place with all its inlined calls */
};

struct model_file {
	uint32_t path, build_id; /* strings; build_id in hex */
	/* MODEL_ADDRESSES only: strings, htlhash in hex; segments: as in the message, three numbers
	 * of 64 bits for each. */
	uint32_t htlhash, go_build_id, segments;
	uint32_t flags; /* enum file_flags */
	uint64_t dev, inode, ctime_ns, size;
	/* The runtime (remedies.def) whose library this file is; STATUS_RUNTIMES: none. */
	uint8_t runtime;
};

struct model_function {
	uint32_t name, system_name, source; /* strings */
	uint32_t start_line;
};

/* A kind that this version does not know keeps its number, and labels show the number. */
enum model_kind {
	MODEL_NATIVE = FRAME_NATIVE,
	MODEL_KERNEL = FRAME_KERNEL,
	MODEL_INTERPRETED = FRAME_INTERPRETED,
	/* The root of a truncated stack. offset is enum walk_reason; file is where the walk ended.
	 */
	MODEL_TRUNCATED = FRAME_KIND_MAX + 1,
};
/* In flags, MODEL_NAMES only: this call was inlined into the next frame towards the root. */
#define MODEL_INLINED 0x80

struct model_frame {
	/* As in the message. MODEL_NAMES: 0 if the frame has a name. If only `start` is known, the
	 * lowest and the highest address seen in the function. */
	uint64_t offset, address;
	uint64_t start;		/* of a function without a name; 0: not known */
	uint32_t file, process; /* process: for code outside files, else MODEL_NONE */
	/* Index of the calls; read by model_functions_of and model_lines_of. */
	uint32_t calls;
	uint16_t count : 9;
	uint16_t runtime : 7; /* MODEL_ADDRESSES, interpreted: enum runtime */
	uint8_t kind, flags;
};

struct model_stack {
	uint32_t frames, count; /* model_frames_of: leaf first */
	uint32_t reason;	/* enum walk_reason */
	bool user;		/* it has a user part, or should have one */
	bool generated;		/* it has code outside files, such as a JIT's */
	bool unnamed;		/* some of that code has no name */
	uint8_t runtime;	/* the first one with a library in it; STATUS_RUNTIMES: none */
};

struct model_process {
	uint64_t pid, start_ns, execs;
	uint32_t comm;	/* string */
	uint32_t flags; /* enum process_flags */
	uint32_t exe;	/* file, or MODEL_NONE */
};

struct model_thread {
	uint32_t process;
	uint32_t comm;
	uint64_t tid;
};

struct model_bucket {
	uint32_t thread, stack; /* thread: MODEL_NONE if the stream named none */
	uint64_t samples, value;
};

struct definitions {
	struct pool pool;
	enum model_detail detail;
	struct strings strings; /* 0 is the empty one */
	ARRAY(struct model_file) files;
	ARRAY(struct model_function) functions;
	ARRAY(struct model_frame) frames;
	ARRAY(uint64_t) self; /* by frame: samples whose leaf it is */
	ARRAY(struct model_stack) stacks;
	ARRAY(uint32_t) numbers; /* of frames and stacks */
	ARRAY(struct model_process) processes;
	ARRAY(struct model_thread) threads;
	ARRAY(struct model_bucket) buckets;
	struct index file_index, function_index, frame_index, stack_index, process_index,
		thread_index, bucket_index;
};

#define DEFINITIONS_HEX 128
/* Prints up to 64 bytes. The result is in `hex`. */
struct str definitions_hex(char hex[static DEFINITIONS_HEX], struct span bytes);

/* Empties all arrays, then adds string 0, the empty one. Keeps detail and what others charge to
 * the pool. 0, -ENOBUFS. */
int definitions_begin(struct definitions *d);
void definitions_done(struct definitions *d);

/* Each finds or adds. 0, or -ENOBUFS at the ceiling. */
/* The latest message about a file holds, but known build ids and segments stay. */
int definitions_file(struct definitions *d, const struct msg_file *msg, uint32_t *ret);
int definitions_function(struct definitions *d, const struct msg_function *msg, uint32_t *ret);
/* The same function with a word behind its name. -ENOMEM. */
int definitions_marked(struct definitions *d, uint32_t function, const char *word, uint32_t *ret);
/* calls: f.count functions, then as many lines; f.calls is filled in. */
int definitions_frame(struct definitions *d, struct model_frame f, const uint32_t *calls,
		      uint32_t *ret);
int definitions_stack(struct definitions *d, uint64_t reason, bool user, const uint32_t *frames,
		      size_t n, uint32_t *ret);
/* A process is (pid, start time, exec count). The latest message about it holds, but a known
 * executable stays. Fills in p.comm. */
int definitions_process(struct definitions *d, struct model_process p, struct str comm,
			uint32_t *ret);
int definitions_thread(struct definitions *d, uint32_t process, uint64_t tid, struct str comm,
		       uint32_t *ret);
int definitions_bucket(struct definitions *d, uint32_t thread, uint32_t stack, uint32_t *ret);

/* An address in the call of this pc: one less for a caller, whose pc is its return address. */
static inline uint64_t definitions_call(const struct model_frame *f, uint64_t pc)
{
	return pc && !(f->flags & (FRAME_LEAF | FRAME_SIGNAL)) ? pc - 1 : pc;
}

/* A segment of a file, as in the message. */
struct model_segment {
	uint64_t offset, size, address;
};

/* Finds the segment of a native frame in a file. False: the stream does not say it. */
bool definitions_segment(const struct definitions *d, const struct model_frame *f,
			 struct model_segment *ret);
/* The pc as an ELF address; as the stream has it if that is not known. */
uint64_t definitions_pc(const struct definitions *d, const struct model_frame *f);

#endif
