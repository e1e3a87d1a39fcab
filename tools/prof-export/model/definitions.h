/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definitions of a stream: strings, files, functions, frames, stacks, processes and threads,
 * and the counts of samples. Each is kept once, by content, in an array that is charged to one
 * pool. Its number is its place there.
 */
#ifndef PROFPIPE_DEFINITIONS_H
#define PROFPIPE_DEFINITIONS_H

#include <stdbool.h>
#include "common/status/status.h"
#include "common/wire/msg.h"
#include "tools/prof-export/model/table.h"

#define MODEL_NONE TABLE_NONE

enum model_detail {
	MODEL_NAMES, /* for outputs that show names: a frame is one call, addresses of named code
			and line numbers are left out, and of unnamed code all addresses of a
			function are one frame, so far fewer stacks differ */
	MODEL_ADDRESSES, /* everything: a frame is one place with all its inlined calls */
};

struct model_file {
	uint32_t path, build_id; /* strings; build_id in hex */
	uint32_t flags;		 /* enum file_flags */
	uint64_t dev, inode, ctime_ns, size;
	uint8_t runtime; /* of common/status/remedies.def, as a library; STATUS_RUNTIMES: none */
};

struct model_function {
	uint32_t name, system_name, source; /* strings */
	uint32_t start_line;
};

/* Kinds that this version does not know keep their number, and are shown by it. */
enum model_kind {
	MODEL_NATIVE = FRAME_NATIVE,
	MODEL_KERNEL = FRAME_KERNEL,
	MODEL_INTERPRETED = FRAME_INTERPRETED,
	MODEL_TRUNCATED = FRAME_KIND_MAX + 1, /* stands at the root of a stack that was cut: offset
			    is enum walk_reason, file the one in which the walk ended */
};
/* In flags, MODEL_NAMES only: the next frame towards the root is what this one was inlined into. */
#define MODEL_INLINED 0x80

struct model_frame {
	/* As in the message. MODEL_NAMES: 0 where there is a name; where there is but a start, the
	 * first and the last address of the function that were seen. */
	uint64_t offset, address;
	uint64_t start;		/* without a name: where its function begins; 0: not known */
	uint32_t file, process; /* process: for code in no file, else MODEL_NONE */
	uint32_t calls;		/* model_functions_of, model_lines_of */
	uint16_t count;
	uint8_t kind, flags;
};

struct model_stack {
	uint32_t frames, count; /* model_frames_of: leaf first */
	uint32_t reason;	/* enum walk_reason */
	bool user;		/* it has, or should have had, a user part */
	bool generated;		/* it has code that lies in no file */
	bool unnamed;		/* some of that has no name */
	uint8_t runtime; /* of common/status/remedies.def, by a library in it; STATUS_RUNTIMES: none
			  */
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
	uint32_t thread, stack; /* thread: MODEL_NONE where the stream named none */
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

/* Empties all; detail and what else is charged to the pool stay. Leaves string 0, for which there
 * was room. 0, -ENOBUFS. */
int definitions_begin(struct definitions *d);
void definitions_done(struct definitions *d);

/* Each finds or adds. 0, or -ENOBUFS at the ceiling. */
int definitions_file(struct definitions *d, const struct msg_file *msg, uint32_t *ret);
int definitions_function(struct definitions *d, const struct msg_function *msg, uint32_t *ret);
/* calls: f.count functions, then as many lines; f.calls is filled in. */
int definitions_frame(struct definitions *d, struct model_frame f, const uint32_t *calls,
		      uint32_t *ret);
int definitions_stack(struct definitions *d, uint64_t reason, bool user, const uint32_t *frames,
		      size_t n, uint32_t *ret);
/* A process is (pid, start time, exec count). What is said of it last holds, but an executable that
 * was known stays. p.comm is filled in. */
int definitions_process(struct definitions *d, struct model_process p, struct str comm,
			uint32_t *ret);
int definitions_thread(struct definitions *d, uint32_t process, uint64_t tid, struct str comm,
		       uint32_t *ret);
int definitions_bucket(struct definitions *d, uint32_t thread, uint32_t stack, uint32_t *ret);

/* Lines and reasons, cut to 32 bits. */
static inline uint32_t definitions_clamp(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

#endif
