/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of struct named, for the files of this noun. Each calls only those after it:
 *
 *  - named.c keeps the order of the stream.
 *  - named_aside.c: events that wait for the turn of their owner.
 *  - named_event.c sends an event.
 *  - named_held.c: samples that wait for names of generated code.
 *  - named_sending.c sends a sample, with named definitions before it.
 *  - named_turns.c: whose turn it is.
 */
#ifndef PROF_SYMD_STREAM_NAMED_INTERNAL_H
#define PROF_SYMD_STREAM_NAMED_INTERNAL_H

#include "common/wire/stream.h"
#include "tools/prof-symd/stream/aside.h"
#include "tools/prof-symd/stream/definitions.h"
#include "tools/prof-symd/stream/events.h"
#include "tools/prof-symd/stream/functions.h"
#include "tools/prof-symd/stream/held_samples.h"
#include "tools/prof-symd/stream/named.h"
#include "tools/prof-symd/owners/turns.h"

#define NAMED_STACK_FRAMES 4096 /* of one stack, as messages.def has it */

/* A look at all that was put aside, which may pause. */
struct round {
	/* By turns_key; those first whose programs took the least time. */
	uint64_t owners[TURNS_OWNERS + 1];
	unsigned count, owner;	   /* of them; the one that is next */
	size_t at;		   /* its events before this one are done */
	size_t went, waited;	   /* events that were sent, and that have to wait */
	uint64_t took_ns, next_ns; /* so far; when the next one may begin */
};

#define NAMED_LOOK_AHEAD 64 /* frames that are searched for further ones of a file */

struct named {
	struct named_limits limits;
	struct filestore *files;
	struct jit *jit;	 /* NULL: generated code has no names */
	struct objects *objects; /* NULL: interpreted frames have no names */
	enum reporting_names wanted;
	int (*tell)(void *ctx, uint64_t file, const struct runtime_build *b);
	void *tell_ctx;
	unsigned untold;	 /* files whose runtime prof-bpf has yet to be told */
	unsigned offers_open;	 /* files that prof-bpf offered, and that are not open yet */
	uint64_t looks_until_ns; /* until when these come first */
	uint64_t turn_ns;	 /* of named_take_turns; 0: no limit */
	void (*say_slow)(uint64_t owner); /* may be NULL */
	bool paused;
	struct held_samples held;
	uint32_t ended_threads;		/* that wait for held samples */
	uint32_t ended_files;		/* that wait for all samples */
	uint64_t held_version, held_ns; /* jit->version and time of the last look at `held` */
	uint64_t sample_ns;		/* of the sample being sent */
	uint64_t lacking;		/* NAMED_HOLD: the process whose code has no name */
	bool give_up;			/* send without names that are still missing */
	struct turns turns;
	struct aside aside;
	struct round round;
	uint64_t owner;	       /* who pays for what is being sent */
	uint64_t payer;	       /* the same, as its process says */
	uint32_t payer_bit;    /* in `payers` of definitions; several owners may have the same */
	bool lean;	       /* the owner's turn is over: neither look names up nor wait */
	bool skipped;	       /* the stack being sent lacks names that it could have */
	uint64_t head_ns;      /* when the queue's head was last found waiting; 0: it was not */
	uint64_t epoch_ns;     /* when the raw epoch began */
	uint64_t late_ns;      /* from when on owners give up (named_gives_up); 0: not yet */
	uint64_t late_look_ns; /* of the last look at what was put aside since then */
	bool ending;	       /* late_ns is due to the stream's end, and stays */
	bool half_said;	       /* sending was cut off for want of memory: a new epoch must begin */
	struct stream_out *out;
	struct definitions defs;
	struct functions functions;
	struct events queue;
	uint64_t epoch;
	uint64_t lost[3];		/* not yet sent, by why_lost */
	struct stream_skipped of_newer; /* what was skipped of the raw stream */
	bool gap_seen, begun, ended;
	struct named_counts counts;
	struct names names;
	uint64_t list[2 * NAMES_MAX];
	uint64_t shown[NAMED_STACK_FRAMES]; /* a stack without its hidden frames */
	const struct def_stack *stack;	    /* being sent, */
	uint32_t stack_at;		    /* with this frame of it */
};

/* Further verdicts, only within these files. */
enum named_sending {
	NAMED_UNDEFINED = NAMED_WAIT + 1, /* an id without a definition */
	NAMED_RESTARTED, /* the functions' ceiling was reached, and a new epoch began */
	NAMED_HOLD,	 /* a frame of generated code in process n->lacking has no name yet */
	NAMED_HIDDEN,	 /* an interpreted frame that is internal to its runtime */
	NAMED_ASIDE,	 /* n->lean: names are to be looked up or waited for */
};

/* The runtime build of a frame, borrowed; NULL: none or unsupported. */
const struct runtime_build *named_build_of(const struct named *n, const struct def_frame *f);
/* The address and the mark of the second object of a frame that has one. */
static inline const uint64_t *named_second_of(const struct named *n, const struct def_frame *f)
{
	return n->defs.numbers + f->numbers + 2u * f->count;
}
/* Begins a new epoch, in which everything is sent again. 0, errors of stream_put. */
int named_restart(struct named *n);

/* Sends an event of any kind but EVENT_END. 0; NAMED_WAIT; NAMED_ASIDE; errors. */
int named_run_event(struct named *n, const struct event *e, uint64_t now_ns);

/* Ends files that ended before samples that had to wait, if none waits any more. */
int named_end_files(struct named *n);

/* Sends a sample with all that it needs. NAMED_HOLD: only definitions were sent. */
int named_send_sample(struct named *n, const struct msg_sample *sample, uint64_t now_ns);
/* Counts a sample whose definitions are missing. */
void named_lose_sample(struct named *n);
/* The same as named_send_sample, or holds it back. */
int named_send_or_hold(struct named *n, const struct msg_sample *sample, uint64_t now_ns);
/* Ends a thread, once none of its samples is held back. */
int named_end_thread(struct named *n, const struct msg_thread_end *m);
/* Sends held samples whose names may be known now, or that were held too long. process: sends all
 * of this process, with or without names; 0: of none; NAMED_ALL: of all. 0; NAMED_WAIT: some of
 * these wait for a file; errors. */
#define NAMED_ALL UINT64_MAX
int named_run_held(struct named *n, uint64_t process, uint64_t now_ns);
/* Tries a last time to name held samples of a process, or of all, and sends them. */
int named_settle_held(struct named *n, uint64_t process, uint64_t now_ns);

/* The process of a thread, borrowed; NULL: it is not known. */
const struct def_process *named_process_of(const struct named *n, uint64_t thread);
/* Who pays for a sample of this thread, or for this process. */
uint64_t named_owner_of(const struct named *n, uint64_t thread);
/* Sets n->payer for a sample of this thread. */
void named_charge(struct named *n, uint64_t thread);
uint64_t named_owner_of_process(const struct named *n, uint64_t process);
/* Whether the owner's turn is over, and others have something to name. */
bool named_must_yield(const struct named *n, uint64_t owner, uint64_t now_ns);
/* Whether the owner's samples go without the names that are still missing: it is late, and the
 * allowance is used up; or it is too late for all. */
bool named_gives_up(const struct named *n, uint64_t owner, uint64_t now_ns);
/* Between how many owners the time for naming is divided. */
unsigned named_owners(const struct named *n);
/* Whether it is an end, and samples that must come before it were put aside. */
bool named_waits_aside(const struct named *n, const struct event *e);
/* Puts it aside, maybe in the place of a sample of an owner who has more there. -ENOBUFS, -ENOMEM,
 * errors of stream_put. */
int named_put_aside(struct named *n, const struct event *e, uint64_t now_ns);
/* Sends what was put aside until that time. 0; NAMED_WAIT: some is left; errors. */
int named_run_aside(struct named *n, uint64_t until_ns, uint64_t now_ns);
/* Sends all of it: for a part of the epoch's time with names, at most NAMED_LATE_NS, then without.
 * The same. */
int named_settle_aside(struct named *n, uint64_t now_ns);

/* 0 if the definition was sent in this epoch, now or before; NAMED_WAIT, enum named_sending, or an
 * error. */
int named_send_process(struct named *n, uint64_t id, uint64_t now_ns, bool wait);

#endif
