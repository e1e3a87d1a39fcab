/* SPDX-License-Identifier: Apache-2.0 */
/* The model's inside: strings, files, functions, frames, stacks, processes, threads and counts,
 * each kept once, by content, in arrays that are charged to one pool. */
#ifndef PROFPIPE_THINGS_H
#define PROFPIPE_THINGS_H

#include "tools/prof-export/model.h"

struct things {
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
int things_begin(struct things *t);
void things_done(struct things *t);

/* Each finds or adds. 0, or -ENOBUFS at the ceiling. */
int things_file(struct things *t, const struct msg_file *msg, uint32_t *ret);
int things_function(struct things *t, const struct msg_function *msg, uint32_t *ret);
/* calls: f.count functions, then as many lines; f.calls is filled in. */
int things_frame(struct things *t, struct model_frame f, const uint32_t *calls, uint32_t *ret);
int things_stack(struct things *t, uint64_t reason, bool user, const uint32_t *frames, size_t n,
		 uint32_t *ret);
/* A process is (pid, start time, exec count). What is said of it last holds, but an executable that
 * was known stays. p.comm is filled in. */
int things_process(struct things *t, struct model_process p, struct str comm, uint32_t *ret);
int things_thread(struct things *t, uint32_t process, uint64_t tid, struct str comm, uint32_t *ret);
int things_bucket(struct things *t, uint32_t thread, uint32_t stack, uint32_t *ret);

/* Lines and reasons as they are kept. */
static inline uint32_t things_clamp(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

#endif
