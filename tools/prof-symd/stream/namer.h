/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the named stream from the raw stream.
 *
 *  - Definitions are stored as they come, and sent when a message that is sent needs them. So a
 *    frame is looked up once its file is open. To begin a new epoch, prof-symd only forgets which
 *    definitions it sent.
 *  - Everything else goes through a queue, in order. The queue's head waits if it needs a file.
 *    Meanwhile further definitions come in and request their files in advance.
 *  - Users take turns (naming_turns.h). A sample whose owner has used up an allowance of time is
 *    put aside while others have something to name (events_aside.h).
 *  - A sample with an unnamed frame in generated code (jit.h) is held back while others continue.
 *    It waits until the frame is named, its process ends, the stream ends, or HELD_SAMPLES_NS are
 *    over; then it is sent without that name. A frame is named once per epoch, as of the time of
 *    its first sample.
 *  - Each file that is opened is offered to the runtimes (runtime.h). prof-bpf is told which
 *    runtime it contains, and for a file that prof-bpf offered, also that it contains none.
 *  - A sample with an interpreted frame waits for its name as it does for a file (objects.h).
 *    Frames that are internal to a runtime are removed from stacks.
 *  - Processes, threads, files, frames and stacks keep the ids of the raw stream; functions get new
 *    ones.
 *  - A long epoch is ended, since a receiver may have to keep all of it.
 *  - Every table has a limit. If the names of functions reach theirs, a new epoch begins. If the
 *    definitions of the raw epoch reach theirs, further ones are dropped, and samples that need
 *    these are counted as lost.
 */
#ifndef PROF_SYMD_STREAM_NAMER_H
#define PROF_SYMD_STREAM_NAMER_H

#include "common/base/command/reporting.h"
#include "common/names/jit/jit.h"
#include "common/wire/stream.h"
#include "tools/prof-symd/files/filestore.h"
#include "tools/prof-symd/objects/objects.h"

struct namer_limits {
	size_t processes, threads, files, frames, stacks, raw_functions, relayed;
	size_t numbers;		/* frame ids in stacks, and function ids in frames */
	size_t functions, text; /* of the named stream: number of functions, bytes of their
				 * strings */
	size_t queue;		/* events in the queue */
	size_t bytes;		/* bytes of all definitions; 0: no limit */
	uint64_t epoch;		/* bytes of a named epoch; 0: no limit */
};
#define NAMER_LIMITS \
	((struct namer_limits){ .processes = 1u << 19, \
				.threads = 1u << 20, \
				.files = 1u << 18, \
				.frames = 1u << 20, \
				.stacks = 1u << 20, \
				.raw_functions = 1u << 20, \
				.relayed = 1u << 20, \
				.numbers = 8u << 20, \
				.functions = 1u << 17, \
				.text = 16u << 20, \
				.queue = 1u << 15 })

enum namer_verdict {
	NAMER_WAIT = 1, /* the queue's head waits for a file or an object, or the stream's end waits
			 * for names of generated code */
};

struct namer;

/* files and out are borrowed. Returns 0 or -errno. */
int namer_new(const struct namer_limits *limits, struct filestore *files, struct stream_out *out,
	      struct namer **ret);
void namer_free(struct namer *n);
/* Enables names of generated code. j is borrowed. */
void namer_use_jit(struct namer *n, struct jit *j);
/* Limits which names are looked up. Native frames still get their addresses, and files their build
 * ids, for which no file is parsed. */
void namer_leave_out(struct namer *n, enum reporting_names wanted);
/* Enables runtimes and names of interpreted frames. o is borrowed. tell: tells prof-bpf the runtime
 * in a file; b is NULL if there is none. tell returns 0; -EAGAIN: try again later; another -errno:
 * it cannot be told at all. */
void namer_use_objects(struct namer *n, struct objects *o,
		       int (*tell)(void *ctx, uint64_t file, const struct runtime_build *b),
		       void *ctx);
/* Takes a message of the raw stream. Returns 0; -ENOMEM: the message was not taken; or errors of
 * stream_put. */
int namer_take(struct namer *n, const struct msg *m, uint64_t now_ns);
/* Sends as much of the queue as possible. Returns 0: the queue is empty; NAMER_WAIT; or errors of
 * stream_put. After -ENOMEM nothing is lost, and the next call continues in a new epoch. */
int namer_run(struct namer *n, uint64_t now_ns);
/* Makes namer_run return after `ns`, so that its caller can do other work. It names at least one
 * sample, which may take longer. Also makes owners take turns (naming_turns.h): samples of those
 * who used up their allowance are put aside while others have something to name. After the stream's
 * end they are sent without the names that are still missing (namer_ends). say_slow is called once
 * for an owner who loses names by this; it may be NULL. */
void namer_take_turns(struct namer *n, uint64_t ns, void (*say_slow)(uint64_t owner));
#define NAMER_LATE_NS 1500000000ull
#define NAMER_LAST_NS 8000000000ull
/* Time for one lookup before it is left to the patient worker; divided among the owners who
 * wait. */
#define NAMER_SLICE_NS 100000000ull
#define NAMER_SLICE_LEAST_NS 10000000ull
/* At the end of the stream, prof-symd waits for owners that have spent at most this much; more if
 * there are few. */
#define NAMER_FRUGAL_NS 50000000ull
/* Begins a new epoch before anything else is sent. */
void namer_renew(struct namer *n);
/* Returns when the next look at events that were put aside is due, by CLOCK_MONOTONIC; 0: there are
 * none. */
uint64_t namer_next_look(const struct namer *n);
/* The caller did other work for this long. The sample at the queue's head, which waits for its
 * file, is not charged for that. */
void namer_worked(struct namer *n, uint64_t ns, uint64_t now_ns);
/* Announces the end of the stream. After NAMER_LATE_NS, prof-symd no longer waits for the names of
 * owners who used up their allowance, and after NAMER_LAST_NS for no names at all. Other owners
 * need that long only on a machine that is too busy: all allowances together are a fraction of a
 * second. */
void namer_ends(struct namer *n, uint64_t now_ns);
/* Whether one of these times has come. */
bool namer_is_late(const struct namer *n, uint64_t now_ns);
/* Whether namer_run returned because its time was over, or has files to describe, and can continue
 * at once. */
bool namer_paused(const struct namer *n);
/* Returns the time of CLOCK_MONOTONIC until which files that may contain an interpreter come first:
 * its frames appear as native ones until it has been described. 0: there are no such files. */
uint64_t namer_looks_until(const struct namer *n);
/* Whether the queue is full: call namer_run before namer_take. */
bool namer_full(const struct namer *n);
/* Begins a new epoch of the raw stream: sends the queue, then forgets all ids of the previous
 * epoch. Samples of owners who used up their allowance wait only for a part of the epoch's time.
 * Returns 0; NAMER_WAIT: call again later; or errors of stream_put. */
int namer_forget(struct namer *n, uint64_t now_ns);
/* Counts `count` messages that the raw stream lost. */
void namer_missing(struct namer *n, uint64_t count);
/* Records how much of the raw stream was skipped so far (struct stream_in). It is reported before
 * the end. */
void namer_skipped(struct namer *n, const struct stream_skipped *all);
/* Whether a hello was sent. A stream without one needs no end. */
bool namer_begun(const struct namer *n);
/* Ends the named stream after the raw stream is over. If the raw stream had no end message, sends
 * one with this reason. Call it with an empty queue. Returns 0; NAMER_WAIT: call again later; or
 * errors of stream_put. */
int namer_end(struct namer *n, enum msg_end_reason reason, uint64_t now_ns);
bool namer_ended(const struct namer *n);

/* Bytes of memory that definitions and names take. */
size_t namer_bytes(const struct namer *n);

/* Counts for the log. */
struct namer_counts {
	uint64_t samples, lost;
	uint64_t named_frames, epochs; /* for tests */
	uint64_t unnamed;	       /* frames left without names for lack of memory */
	uint64_t late; /* likewise, because their owner's programs took too long to name */
};
struct namer_counts namer_counts(const struct namer *n);

/* Gives the stored definition of a file, which requests by hand need. Returns false if the file is
 * unknown. */
bool namer_file(const struct namer *n, uint64_t file, struct msg_file *ret);
/* Like namer_file, for a process; comm is empty. */
bool namer_process(const struct namer *n, uint64_t process, struct msg_process *ret);

#endif
