/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definitions of a stream: strings, files, functions, frames, stacks, processes and threads,
 * and the counts of samples. Each kind has an array with every distinct entry once. An entry's
 * number is its index. The memory of all arrays is charged to one pool.
 */
#ifndef PROF_EXPORT_MODEL_DEFINITIONS_DEFINITIONS_H
#define PROF_EXPORT_MODEL_DEFINITIONS_DEFINITIONS_H

#include <stdbool.h>
#include "common/status/status.h"
#include "common/wire/msg.h"
#include "tools/prof-export/model/definitions/table.h"

#define MODEL_NONE TABLE_NONE

enum model_detail {
	/* For formats that show names. A frame is one call, without its line number unless an
	 * option asks for it. Named code loses its addresses; in code without names, all addresses
	 * of a function share one frame. This merges more stacks. */
	MODEL_NAMES,
	MODEL_ADDRESSES, /* keeps everything: a frame is one address with all its inlined calls */
};

struct model_file {
	uint32_t path, build_id; /* strings; build_id is in hex */
	/* MODEL_ADDRESSES only. Strings; htlhash is in hex. segments: as in the message, three
	 * 64-bit numbers for each segment. */
	uint32_t htlhash, go_build_id, segments;
	uint32_t flags; /* enum msg_file_flags */
	uint64_t dev, inode, ctime_ns, size;
	/* The runtime (remedies.def) whose library this file is; STATUS_RUNTIMES: none. */
	uint8_t runtime;
};

struct model_function {
	uint32_t name, system_name, source; /* strings */
	uint32_t start_line;
};

/* An unknown kind keeps its number, and labels show that number. */
enum model_kind {
	MODEL_NATIVE = MSG_FRAME_NATIVE,
	MODEL_KERNEL = MSG_FRAME_KERNEL,
	MODEL_INTERPRETED = MSG_FRAME_INTERPRETED,
	/* The root of a truncated stack. offset is enum walk_reason; file is the file in which the
	 * walk ended. */
	MODEL_TRUNCATED = MSG_FRAME_KIND_MAX + 1,
};
/* In flags, MODEL_NAMES only: this call was inlined into the next frame towards the root. A frame
 * has no use for MSG_FRAME_BY_FP there. */
#define MODEL_INLINED MSG_FRAME_BY_FP

struct model_frame {
	/* As in the message. With MODEL_NAMES it is 0 if the frame has a name. If only `start` is
	 * known, the lowest and highest address seen in the function. */
	uint64_t offset, address;
	uint64_t start;		/* start of a function without a name; 0: unknown */
	uint32_t file, process; /* process: only for code outside files, else MODEL_NONE */
	/* Index of the calls; read by model_functions_of and model_lines_of. */
	uint32_t calls;
	uint16_t count : 9;
	uint16_t runtime : 7; /* MODEL_ADDRESSES, interpreted: enum runtime */
	uint8_t kind, flags;
};

struct model_stack {
	uint32_t frames, count; /* read by model_frames_of, leaf first */
	uint32_t reason;	/* enum walk_reason */
	bool user;		/* the stack has a user part, or should have one */
	bool generated;		/* the stack contains code outside files, such as a JIT's */
	bool unnamed;		/* some of that generated code has no name */
	uint8_t lacks;		/* enum unnamed_reason of a frame; 0: of none */
	/* The runtime of the first frame that is in a runtime's library; STATUS_RUNTIMES: none. */
	uint8_t runtime;
};

struct model_process {
	uint64_t pid, start_ns, execs;
	uint32_t comm;	/* string */
	uint32_t flags; /* enum msg_process_flags */
	uint32_t exe;	/* file, or MODEL_NONE */
};

struct model_thread {
	uint32_t process;
	uint32_t comm;
	uint64_t tid;
};

struct model_bucket {
	uint32_t thread, stack; /* thread: MODEL_NONE if the stream names none */
	uint64_t samples, value;
};

struct definitions {
	struct pool pool;
	enum model_detail detail;
	struct table_strings strings; /* string 0 is empty */
	POOL_ARRAY(struct model_file) files;
	POOL_ARRAY(struct model_function) functions;
	POOL_ARRAY(struct model_frame) frames;
	POOL_ARRAY(uint64_t) self; /* by frame: number of samples with this leaf */
	POOL_ARRAY(struct model_stack) stacks;
	POOL_ARRAY(uint32_t) numbers; /* of frames and stacks */
	POOL_ARRAY(struct model_process) processes;
	POOL_ARRAY(struct model_thread) threads;
	POOL_ARRAY(struct model_bucket) buckets;
	struct table_index file_index, function_index, frame_index, stack_index, process_index,
		thread_index, bucket_index;
};

#define DEFINITIONS_HEX 128
/* Prints up to 64 bytes. The result is in `hex`. */
struct str definitions_hex(char hex[static DEFINITIONS_HEX], struct span bytes);

/* Empties all arrays, then adds string 0, the empty string. Keeps `detail` and the charges of other
 * users of the pool. Returns 0 or -ENOBUFS. */
int definitions_begin(struct definitions *d);
void definitions_done(struct definitions *d);

/* Each finds or adds an entry. Returns 0, or -ENOBUFS at the ceiling. */
/* The latest message about a file replaces earlier ones, but known build ids and segments stay. */
int definitions_file(struct definitions *d, const struct msg_file *msg, uint32_t *ret);
int definitions_function(struct definitions *d, const struct msg_function *msg, uint32_t *ret);
/* The same function with a word appended to its name. Returns -ENOMEM. */
int definitions_marked(struct definitions *d, uint32_t function, const char *word, uint32_t *ret);
/* calls: f.count functions, followed by as many lines. Sets f.calls. */
int definitions_frame(struct definitions *d, struct model_frame f, const uint32_t *calls,
		      uint32_t *ret);
int definitions_stack(struct definitions *d, uint64_t reason, bool user, const uint32_t *frames,
		      size_t n, uint32_t *ret);
/* A process is identified by pid, start time and exec count. The latest message replaces earlier
 * ones, but a known executable stays. Sets p.comm. */
int definitions_process(struct definitions *d, struct model_process p, struct str comm,
			uint32_t *ret);
int definitions_thread(struct definitions *d, uint32_t process, uint64_t tid, struct str comm,
		       uint32_t *ret);
int definitions_bucket(struct definitions *d, uint32_t thread, uint32_t stack, uint32_t *ret);

/* An address inside the call of this pc. A caller's pc is its return address, so one is
 * subtracted. */
static inline uint64_t definitions_call(const struct model_frame *f, uint64_t pc)
{
	return pc && !(f->flags & (MSG_FRAME_LEAF | MSG_FRAME_SIGNAL)) ? pc - 1 : pc;
}

/* A segment of a file, as in the message. */
struct model_segment {
	uint64_t offset, size, address;
};

/* Finds the segment of a native frame in a file. Returns false if the stream does not give it. */
bool definitions_segment(const struct definitions *d, const struct model_frame *f,
			 struct model_segment *ret);
/* The pc as an ELF address, or as the stream gives it if the ELF address is unknown. */
uint64_t definitions_pc(const struct definitions *d, const struct model_frame *f);

#endif
