/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of struct namer, for the files that implement it. Each calls only those after it:
 *
 *  - namer.c keeps the order of the stream.
 *  - namer_aside.c: events that wait for the turn of their owner.
 *  - namer_events.c sends one event.
 *  - namer_held.c: samples that wait for names of generated code.
 *  - namer_samples.c sends a sample, with its stack before it.
 *  - namer_frames.c names frames, and sends them.
 *  - namer_definitions.c sends files, processes, threads and definitions that are only passed on.
 *  - namer_turns.c: whose turn it is.
 */
#ifndef PROF_SYMD_STREAM_NAMER_INTERNAL_H
#define PROF_SYMD_STREAM_NAMER_INTERNAL_H

#include "common/wire/stream.h"
#include "tools/prof-symd/stream/events_aside.h"
#include "tools/prof-symd/stream/definitions.h"
#include "tools/prof-symd/stream/events.h"
#include "tools/prof-symd/stream/functions.h"
#include "tools/prof-symd/stream/held_samples.h"
#include "tools/prof-symd/stream/namer.h"
#include "tools/prof-symd/owners/naming_turns.h"

#define NAMER_STACK_FRAMES 4096 /* frames of one stack, as in messages.def */

/* A look at all events that were put aside, which may pause. */
struct namer_round {
	/* By naming_turns_key, in the order of the time that their programs took, least first. */
	uint64_t owners[NAMING_TURNS_OWNERS + 1];
	unsigned count, owner; /* count: number of owners; owner: index of the next one */
	size_t at;	       /* events before this one are done for this owner */
	size_t went, waited;   /* events of this owner that were sent, and that must wait */
	uint64_t took_ns;      /* time that this owner took so far */
	uint64_t soonest_ns;   /* of the previous owners, the earliest time of a next look */
	uint64_t next_ns;      /* when the next round may begin */
};

#define NAMER_LOOK_AHEAD 512 /* frames that are searched for more of the same file */

struct namer {
	struct namer_limits limits;
	struct filestore *files;
	struct jit *jit;	 /* NULL: generated code has no names */
	struct objects *objects; /* NULL: interpreted frames have no names */
	enum reporting_names wanted;
	int (*tell)(void *ctx, uint64_t file, const struct runtime_build *b);
	void *tell_ctx;
	unsigned postponed;	 /* number of files that wait to be described, or more */
	unsigned untold;	 /* number of files whose runtime prof-bpf must still be told */
	unsigned offers_open;	 /* number of files that prof-bpf offered and that are not open
				  * yet */
	uint64_t looks_until_ns; /* until when offered files come first */
	uint64_t turn_ns;	 /* set by namer_take_turns; 0: no limit */
	void (*say_slow)(uint64_t owner); /* may be NULL */
	bool paused;
	struct held_samples held;
	uint32_t ended_threads;		/* number of threads whose end waits for held samples */
	uint32_t ended_files;		/* number of files whose end waits for samples */
	uint64_t held_version, held_ns; /* jit->version and time of the last look at `held` */
	uint64_t sample_ns;		/* time of the sample that is being sent */
	uint64_t lacking;		/* NAMER_HOLD: the process whose code has no name */
	bool give_up;			/* send samples without names that are still missing */
	struct naming_turns turns;
	struct events_aside aside;
	struct namer_round round;
	uint64_t owner;	    /* whom the sample that is being sent is charged to */
	uint64_t payer;	    /* likewise, as in its process's definition */
	uint32_t payer_bit; /* bit in `payers` of definitions; several owners may share one */
	uint64_t worked_ns; /* what workers did for the event that is being sent */
	bool lean;	    /* the owner's turn is over: neither look names up nor wait for
			        * them */
	uint64_t without;   /* enum msg_frame_flags: why the frame that is being sent has no name */
	bool skipped;	    /* the stack that is being sent lacks names that it could have */
	uint64_t head_ns;   /* when the queue's head was last found waiting; 0: it was not */
	uint64_t epoch_ns;  /* when the raw epoch began */
	uint64_t late_ns;   /* from when on owners give up names (namer_gives_up); 0: not yet */
	uint64_t late_look_ns; /* time of the last look at events that were put aside, after
			        * late_ns */
	bool ending;	       /* late_ns was set for the stream's end, and is not reset */
	bool renews;	       /* a new epoch must begin */
	struct stream_out *out;
	struct definitions defs;
	struct functions functions;
	struct events queue;
	uint64_t epoch;
	uint64_t lost[3];		/* counts that are not sent yet, by why_lost */
	struct stream_skipped of_newer; /* skipped parts of a raw stream from a newer version */
	bool gap_seen, begun, ended;
	struct namer_counts counts;
	struct names names;
	uint64_t list[2 * NAMES_MAX];
	uint64_t shown[NAMER_STACK_FRAMES];   /* a stack without its hidden frames */
	const struct definition_stack *stack; /* the stack that is being sent, */
	uint32_t stack_at;		      /* and the index of the current frame */
};

/* More verdicts, used only within these files. */
enum namer_sending {
	NAMER_UNDEFINED = NAMER_WAIT + 1, /* an id without a definition */
	NAMER_RESTARTED, /* the functions' limit was reached, and a new epoch began */
	NAMER_HOLD,	 /* a frame of generated code in process n->lacking has no name yet */
	NAMER_HIDDEN,	 /* an interpreted frame that is internal to its runtime */
	NAMER_ASIDE,	 /* n->lean is set, and names would have to be looked up or waited for */
};

/* Returns the runtime build of a frame, borrowed; NULL: none or unsupported. */
const struct runtime_build *namer_build_of(const struct namer *n, const struct definition_frame *f);
/* Returns the address and the mark of the second object, of a frame that has one. */
static inline const uint64_t *namer_second_of(const struct namer *n,
					      const struct definition_frame *f)
{
	return n->defs.numbers + f->numbers + 2u * f->count;
}
/* Begins a new epoch, in which everything is sent again. Returns 0 or errors of stream_put. */
int namer_restart(struct namer *n);

/* Sends an event of any kind but EVENT_END. Returns 0, NAMER_WAIT, NAMER_ASIDE or errors. */
int namer_run_event(struct namer *n, const struct event *e, uint64_t now_ns);

/* Like namer_run_event, but if the cpu limit demands pauses and others wait, only the event's owner
 * pauses (namer_must_yield). */
int namer_run_paced(struct namer *n, const struct event *e, uint64_t now_ns);

/* Sends the ends of files that had to wait for samples, if none waits any more. */
int namer_end_files(struct namer *n);

/* Sends a sample with everything that it needs. After NAMER_HOLD only definitions were sent. */
int namer_send_sample(struct namer *n, const struct msg_sample *sample, uint64_t now_ns);
/* Counts a sample whose definitions are missing. */
void namer_lose_sample(struct namer *n);
/* Like namer_send_sample, but holds the sample back on NAMER_HOLD. */
int namer_send_or_hold(struct namer *n, const struct msg_sample *sample, uint64_t now_ns);
/* Ends a thread as soon as none of its samples is held back. */
int namer_end_thread(struct namer *n, const struct msg_thread_end *m);
/* Sends held samples whose names may be known now, or that were held too long. process: also sends
 * all of this process, with or without names; 0: of no process; NAMER_ALL: of all. Returns 0;
 * NAMER_WAIT: some of these wait for a file; or errors. */
#define NAMER_ALL UINT64_MAX
int namer_run_held(struct namer *n, uint64_t process, uint64_t now_ns);
/* Tries a last time to name held samples of a process (or NAMER_ALL), and sends them. */
int namer_settle_held(struct namer *n, uint64_t process, uint64_t now_ns);

/* Returns the process of a thread, borrowed; NULL: it is not known. */
const struct definition_process *namer_process_of(const struct namer *n, uint64_t thread);
/* Returns the owner who is charged for samples of this thread, or (below) of this process. */
uint64_t namer_owner_of(const struct namer *n, uint64_t thread);
/* Sets n->payer for a sample of this thread. */
void namer_charge(struct namer *n, uint64_t thread);
uint64_t namer_owner_of_process(const struct namer *n, uint64_t process);
/* Whether the owner's turn is over, and others have something to name. */
bool namer_must_yield(const struct namer *n, uint64_t owner, uint64_t now_ns);
/* Whether the owner's samples are sent without the names that are still missing: it is late and the
 * allowance is used up, or it is too late for all owners. */
bool namer_gives_up(const struct namer *n, uint64_t owner, uint64_t now_ns);
/* Returns among how many owners the time for naming is divided. */
unsigned namer_owners(const struct namer *n);
/* Whether the event is an end, and samples that must come before it were put aside. */
bool namer_waits_aside(const struct namer *n, const struct event *e);
/* Puts an event aside. It may replace a sample of an owner who has more there. Returns 0, -ENOBUFS,
 * -ENOMEM or errors of stream_put. */
int namer_put_aside(struct namer *n, const struct event *e, uint64_t now_ns);
/* Sends what was put aside, until that time. Returns 0; NAMER_WAIT: some is left; or errors. */
int namer_run_aside(struct namer *n, uint64_t until_ns, uint64_t now_ns);
/* Records that a new epoch has begun in the raw stream. From now on, samples of the old one wait
 * for names only for a part of its time, at most NAMER_LATE_NS. */
void namer_settles(struct namer *n, uint64_t now_ns);
/* Sends everything that was put aside: with names, and without them after that time. Returns as
 * namer_run_aside does. */
int namer_settle_aside(struct namer *n, uint64_t now_ns);

/* Whether a definition was sent in this epoch and charged to this owner. If it was charged to
 * another owner, the receiver may have dropped it for lack of space. */
static inline bool namer_was_sent(const struct namer *n, uint64_t sent, uint32_t payers)
{
	return sent == n->epoch && payers & n->payer_bit;
}

static inline void namer_mark_sent(const struct namer *n, uint64_t *sent, uint32_t *payers)
{
	*payers = *sent == n->epoch ? *payers | n->payer_bit : n->payer_bit;
	*sent = n->epoch;
}

/* Each of these returns 0 if the definition was sent in this epoch, now or before. Otherwise
 * returns NAMER_WAIT, enum namer_sending or an error. */
int namer_send_process(struct namer *n, uint64_t id, uint64_t now_ns, bool wait);
int namer_send_thread(struct namer *n, uint64_t id, uint64_t now_ns);
/* *ret_program, unless ret_program is NULL, is the open file, borrowed; NULL: it has none. */
int namer_send_file(struct namer *n, uint64_t id, uint64_t now_ns, struct program **ret_program);
/* Sends a file without the facts that come from its contents. */
int namer_send_file_as_it_is(struct namer *n, struct definition_file *f);
/* Sends what the sample refers to besides its stack and thread. Clears references without a
 * definition. */
int namer_send_extras(struct namer *n, struct msg_sample *sample);
/* strange: the frame's address is not mapped. */
int namer_send_frame(struct namer *n, uint64_t id, bool strange, uint64_t now_ns);

/* Whether an interpreted frame that lacked its name has it now. Does not wait. */
bool namer_name_came(struct namer *n, const struct definition_frame *f, uint64_t now_ns);
/* Announces lookups for the next frames of a stack in generated code, so that one request can
 * answer all of them. */
void namer_expect_generated(struct namer *n, const struct definition_stack *s, uint32_t from);

#endif
