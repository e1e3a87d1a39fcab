/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of struct named, for named.c, which keeps the order of the stream, and
 * named_sending.c below it, which sends named definitions. */
#ifndef PROF_SYMD_STREAM_NAMED_INTERNAL_H
#define PROF_SYMD_STREAM_NAMED_INTERNAL_H

#include "common/wire/stream.h"
#include "tools/prof-symd/stream/definitions.h"
#include "tools/prof-symd/stream/events.h"
#include "tools/prof-symd/stream/functions.h"
#include "tools/prof-symd/stream/held_samples.h"
#include "tools/prof-symd/stream/named.h"

#define NAMED_STACK_FRAMES 4096 /* of one stack, as messages.def has it */

struct named {
	struct named_limits limits;
	struct filestore *files;
	struct jit *jit;	 /* NULL: generated code has no names */
	struct objects *objects; /* NULL: interpreted frames have no names */
	int (*tell)(void *ctx, uint64_t file, const struct runtime_build *b);
	void *tell_ctx;
	unsigned untold;	 /* files whose runtime prof-bpf has yet to be told */
	unsigned offers_open;	 /* files that prof-bpf offered, and that are not open yet */
	uint64_t looks_until_ns; /* until when these come first */
	uint64_t turn_ns;	 /* of named_take_turns; 0: no limit */
	bool paused;
	struct held_samples held;
	uint64_t held_version, held_ns; /* jit->version and time of the last look at `held` */
	uint64_t sample_ns;		/* of the sample being sent */
	uint64_t lacking;		/* NAMED_HOLD: the process whose code has no name */
	bool give_up;			/* send without names that are still missing */
	bool half_said; /* sending was cut off for want of memory: a new epoch must begin */
	struct stream_out *out;
	struct definitions defs;
	struct functions functions;
	struct events queue;
	uint64_t epoch;
	uint64_t lost[3]; /* not yet sent, by why_lost */
	bool gap_seen, begun, ended;
	struct named_counts counts;
	struct names names;
	uint64_t list[2 * NAMES_MAX];
	uint64_t shown[NAMED_STACK_FRAMES]; /* a stack without its hidden frames */
};

/* Further verdicts, only within these files. */
enum named_sending {
	NAMED_UNDEFINED = NAMED_WAIT + 1, /* an id without a definition */
	NAMED_RESTARTED, /* the functions' ceiling was reached, and a new epoch began */
	NAMED_HOLD,	 /* a frame of generated code in process n->lacking has no name yet */
	NAMED_HIDDEN,	 /* an interpreted frame that is internal to its runtime */
};

/* The runtime build of a frame, borrowed; NULL: none or unsupported. */
const struct runtime_build *named_build_of(const struct named *n, const struct def_frame *f);
/* Begins a new epoch, in which everything is sent again. 0, errors of stream_put. */
int named_restart(struct named *n);

/* Each returns 0 if the definition was sent in this epoch, now or before; NAMED_WAIT, enum
 * named_sending, or an error. */
int named_send_process(struct named *n, uint64_t id, uint64_t now_ns, bool wait);
int named_send_thread(struct named *n, uint64_t id, uint64_t now_ns);
int named_send_stack(struct named *n, uint64_t id, uint64_t now_ns);

#endif
