/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An epoch: the ids that are valid now, and the definitions that they stand for. All ids end with
 * the epoch; the ids of a process and its threads end with the process. Processes and threads
 * become definitions only when they have a sample.
 */
#ifndef PROF_EXPORT_MODEL_DEFINITIONS_EPOCH_H
#define PROF_EXPORT_MODEL_DEFINITIONS_EPOCH_H

#include "common/base/command/reporting.h"
#include "tools/prof-export/model/definitions/annotations.h"
#include "tools/prof-export/model/definitions/attributes.h"
#include "tools/prof-export/model/definitions/definitions.h"

struct epoch_process {
	uint64_t pid, start_ns, execs, owner;
	uint32_t flags;
	uint32_t exe;	  /* file, or MODEL_NONE */
	uint32_t cgroup;  /* string; 0: unknown */
	uint32_t process; /* definition; MODEL_NONE before its first sample */
	/* First thread; for an unused slot, the next free slot. */
	uint32_t threads;
	/* As in struct status, as long as the runtime of the process is unknown. */
	uint64_t samples, truncated, unnamed;
	uint8_t runtime; /* an index of common/status/remedies.def; STATUS_RUNTIMES: unknown */
	uint8_t comm_len;
	char comm[16];
	struct attributes attributes;
};

struct epoch_thread {
	uint64_t id, tid;
	uint32_t process; /* in epoch.processes */
	uint32_t thread;  /* definition; MODEL_NONE before its first sample */
	uint32_t next;	  /* next thread of the process; for an unused slot, the next free slot */
	uint32_t previous;
	uint32_t title; /* string; 0: none */
	bool counted;
	uint8_t comm_len;
	char comm[16];
};

/* As in struct model_options. */
struct epoch_options {
	enum reporting_names names;
	bool interpreter_frames, code, lines;
};

struct epoch {
	struct definitions *definitions; /* borrowed; all memory is charged to its pool */
	struct epoch_options options;
	struct table_ids cgroup_ids; /* to strings */
	struct table_ids process_ids, thread_ids, file_ids, function_ids, frame_ids, stack_ids;
	POOL_ARRAY(struct epoch_process) processes;
	POOL_ARRAY(struct epoch_thread) threads;
	uint32_t free_process, free_thread;
	size_t attributes; /* bytes of the attributes of all processes */
	struct annotations annotations;
	POOL_ARRAY(uint32_t) groups;  /* the count of frames, then the frames */
	POOL_ARRAY(uint32_t) scratch; /* the stack that is being added */
};

void epoch_init(struct epoch *e, struct definitions *d, const struct epoch_options *o);
/* Begins another epoch, in which no id is known. */
void epoch_forget(struct epoch *e);
void epoch_done(struct epoch *e);

/* Each takes a message that defines an id. A message is ignored if it names an unknown id, or
 * defines a thread or function again. 0, -EINVAL for id 0, -ENOBUFS at the ceiling. */
int epoch_process(struct epoch *e, const struct msg_process *msg);
int epoch_thread(struct epoch *e, const struct msg_thread *msg);
int epoch_cgroup(struct epoch *e, const struct msg_cgroup *msg);
int epoch_attribute(struct epoch *e, const struct msg_attribute *msg);
int epoch_file(struct epoch *e, const struct msg_file *msg);
int epoch_function(struct epoch *e, const struct msg_function *msg);
int epoch_frame(struct epoch *e, const struct msg_frame *msg);
int epoch_stack(struct epoch *e, const struct msg_stack *msg);
/* Ends the ids of the process and its threads. */
void epoch_process_end(struct epoch *e, const struct msg_process_end *msg);
/* Ends the id of the thread. */
void epoch_thread_end(struct epoch *e, const struct msg_thread_end *msg);
/* Makes definitions of the thread and its process, unless they exist. Returns 0 or -ENOBUFS. */
int epoch_keep_thread(struct epoch *e, struct epoch_thread *t);
/* Returns the title that the thread gave itself, else its name in the kernel. */
struct str epoch_thread_name(const struct epoch *e, const struct epoch_thread *t);

#endif
