/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the raw stream to the named one. Definitions are kept as they come and sent on when
 * something that is sent needs them, so that a frame is looked up once its file is open, and a new
 * epoch of ours is nothing but forgetting what was sent. Everything else goes through a queue, in
 * order; what waits for a file waits at the queue's head, while further definitions come in and ask
 * for their files ahead.
 *
 * A sample with a frame in generated code that nothing names yet (jit.h) is held back, while others
 * go on. It waits until the frame is named, its process ends, the stream ends, or HELD_SAMPLES_NS
 * have passed, and then goes without that name. A frame is named once an epoch, as of the time of
 * the first sample that has it.
 *
 * A file that is opened is offered to the runtimes (runtime.h), and what it holds told. A sample
 * with an interpreted frame waits for its name as for a file (objects.h); frames that are a
 * runtime's own, and none of the program's, are left out of stacks.
 *
 * Ids of processes, threads, files, frames and stacks stay those of the raw stream; functions get
 * ids of their own.
 *
 * Every table has a ceiling. When the names of functions reach theirs, a new epoch begins. When the
 * definitions of the raw epoch reach theirs, what no longer fits is not kept, and the samples that
 * would need it are counted as lost.
 */
#ifndef PROFPIPE_NAMED_H
#define PROFPIPE_NAMED_H

#include "common/wire/stream.h"
#include "tools/prof-symd/files/filestore.h"
#include "common/names/jit/jit.h"
#include "tools/prof-symd/objects/objects.h"

struct named_limits {
	size_t processes, threads, files, frames, stacks, raw_functions;
	size_t numbers;		/* frame ids in stacks, function ids in frames */
	size_t functions, text; /* named: how many, bytes of their strings */
	size_t queue;		/* samples and the like that may wait */
	size_t bytes;		/* of all definitions; 0: as much as they take */
};
#define NAMED_LIMITS \
	((struct named_limits){ .processes = 1u << 17, \
				.threads = 1u << 18, \
				.files = 1u << 16, \
				.frames = 1u << 19, \
				.stacks = 1u << 19, \
				.raw_functions = 1u << 17, \
				.numbers = 8u << 20, \
				.functions = 1u << 17, \
				.text = 16u << 20, \
				.queue = 1u << 15 })

enum named_verdict {
	NAMED_WAIT = 1, /* the head of the queue waits for a file or an object, or the end for
			   generated code's */
};

struct named;

/* files and out are borrowed. 0 or -errno. */
int named_new(const struct named_limits *limits, struct filestore *files, struct stream_out *out,
	      struct named **ret);
void named_free(struct named *n);
/* Names generated code from here on. j: borrowed. */
void named_use_jit(struct named *n, struct jit *j);
/* Looks for runtimes and names interpreted frames from here on. o: borrowed. tell: sends what a
 * file of the stream holds, NULL: no runtime; 0, -EAGAIN: not now; another -errno: never. */
void named_use_objects(struct named *n, struct objects *o,
		       int (*tell)(void *ctx, uint64_t file, const struct runtime_build *b),
		       void *ctx);
/* Takes a message of the raw stream. 0; -ENOMEM: it was not taken; errors of stream_put. */
int named_take(struct named *n, const struct msg *m, uint64_t now_ns);
/* Sends on what can be. 0: the queue is empty; NAMED_WAIT; errors of stream_put; -ENOMEM: nothing
 * is lost, and another call goes on, with a new epoch. */
int named_run(struct named *n, uint64_t now_ns);
/* From here on a call of named_run ends after so many ns, with NAMED_WAIT: its caller has others to
 * serve. One sample is named at least, which may take longer. */
void named_take_turns(struct named *n, uint64_t ns);
/* Whether named_run ended for that, and can go on at once. */
bool named_paused(const struct named *n);
/* CLOCK_MONOTONIC, 0: none. Until then a file that may hold an interpreter is to be looked at
 * before anything is named: its frames are native ones so long. */
uint64_t named_looks_until(const struct named *n);
/* The queue is as long as it may be: run before taking more. */
bool named_full(const struct named *n);
/* The raw stream's ids are void from here on: call with an empty queue. NAMED_WAIT: again later;
 * errors of stream_put. */
int named_forget(struct named *n, uint64_t now_ns);
/* The raw stream lost so many messages. */
void named_missing(struct named *n, uint64_t count);
/* A hello has gone out, without which a stream has no end either. */
bool named_begun(const struct named *n);
/* The raw stream is over; without an end message one is put that says reason. Call with an empty
 * queue. NAMED_WAIT: again later; errors of stream_put. */
int named_end(struct named *n, enum end_reason reason, uint64_t now_ns);
bool named_ended(const struct named *n);

/* Memory that definitions and names take. */
size_t named_bytes(const struct named *n);

/* Counts, for the log. */
struct named_counts {
	uint64_t samples, frames, named_frames, lost, epochs;
	uint64_t unnamed; /* frames, and what names them, for want of memory */
};
struct named_counts named_counts(const struct named *n);

/* Fills one file's definition from what is kept: what filestore requests need by hand. False for a
 * file that is not known. */
bool named_file(const struct named *n, uint64_t file, struct msg_file *ret);
/* The same for a process; comm is empty. */
bool named_process(const struct named *n, uint64_t process, struct msg_process *ret);

#endif
