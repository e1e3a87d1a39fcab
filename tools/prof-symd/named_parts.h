/* SPDX-License-Identifier: Apache-2.0 */
/* What named.c, which keeps the order of the stream, and named_sending.c, which sends what it
 * names, share. */
#ifndef PROFPIPE_NAMED_PARTS_H
#define PROFPIPE_NAMED_PARTS_H

#include "common/stream.h"
#include "tools/prof-symd/definitions.h"
#include "tools/prof-symd/events.h"
#include "tools/prof-symd/functions.h"
#include "tools/prof-symd/held.h"
#include "tools/prof-symd/named.h"

#define STACK_FRAMES 4096 /* of one stack, as messages.def has it */

struct named {
	struct named_limits limits;
	struct filestore *files;
	struct jit *jit;	 /* NULL: generated code has no names */
	struct objects *objects; /* NULL: interpreted frames have no names */
	int (*tell)(void *ctx, uint64_t file, const struct runtime_build *b);
	void *tell_ctx;
	unsigned untold;	 /* files whose runtime is to be told yet */
	unsigned offers_open;	 /* files that were offered, and are not open yet */
	uint64_t looks_until_ns; /* how long they are waited for */
	uint64_t turn_ns;	 /* 0: no end */
	bool paused;
	struct held held;
	uint64_t held_version, held_ns; /* when those held were last looked at: jit->version */
	uint64_t sample_ns;		/* of the sample being sent */
	uint64_t lacking;		/* HOLD: the process whose code has no name */
	bool give_up;			/* send without names that are not known */
	bool half_said; /* no memory for what was being sent: a new epoch is to begin */
	struct stream_out *out;
	struct definitions defs;
	struct functions functions;
	struct events queue;
	uint64_t epoch;
	uint64_t lost[3]; /* not yet told: by why_lost */
	bool gap_seen, begun, ended;
	struct named_counts counts;
	struct names names;
	uint64_t list[2 * NAMES_MAX];
	uint64_t shown[STACK_FRAMES]; /* of a stack: those not hidden */
};

/* Inside: an id that nothing defines. */
#define UNDEFINED 2
/* Inside: a frame of generated code has no name yet, in the process n->lacking. */
#define HOLD 4
/* Inside: an interpreted frame that is none of the program's. */
#define HIDDEN 5
/* Inside: the functions' ceiling was reached, and a new epoch begun. */
#define RESTARTED 3

/* The runtime whose frame it is, borrowed; NULL: none that is known. */
const struct runtime_build *named_build_of(const struct named *n, const struct def_frame *f);
/* A new epoch of ours, in which everything is sent again. 0, errors of stream_put. */
int named_restart(struct named *n);

/* Each returns 0 when the thing is sent in this epoch, NAMED_WAIT, UNDEFINED, RESTARTED, HOLD or an
 * error. */
int named_send_process(struct named *n, uint64_t id, uint64_t now_ns, bool wait);
int named_send_thread(struct named *n, uint64_t id, uint64_t now_ns);
int named_send_stack(struct named *n, uint64_t id, uint64_t now_ns);

#endif
