/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model: the contents of a stream over all its epochs. Each distinct definition is kept once
 * (definitions.h), so ids of different epochs that mean the same share one definition (epoch.h).
 * Samples are counted by thread and stack. All memory is charged to one ceiling; samples that do
 * not fit are counted as lost, which is not an error.
 *
 * Definitions are numbered from 0 in the order in which they came; MODEL_NONE is none. Pointers and
 * strings that the model returns are valid until it takes the next message.
 */
#ifndef PROF_EXPORT_MODEL_MODEL_H
#define PROF_EXPORT_MODEL_MODEL_H

#include <stdbool.h>
#include "common/base/command/reporting.h"
#include "common/status/status.h"
#include "common/status/witness.h"
#include "common/wire/msg.h"
#include "tools/prof-export/model/definitions/definitions.h"
#include "tools/prof-export/model/model_state.h"

struct model_options {
	enum model_detail detail;
	enum reporting_names names;
	bool interpreter_frames; /* also show the native frames of an interpreter's own loop */
	bool code;		 /* show which kind of code runs in an interpreted frame */
	bool lines;		 /* MODEL_NAMES: interpreted frames keep their line numbers */
	/* Keep samples, except those of other sources than the event of the header. Else only count
	 * samples, and forget the rest at each epoch. */
	bool aggregate;
	bool surroundings;   /* keep the cgroups and attributes of processes */
	size_t memory_max;   /* bytes */
	uint64_t share_most; /* the most memory that later messages may grant; 0: they grant none */
	size_t others;	     /* bytes of such a grant that other users in this process need */
	/* The run began before this stream: its first counts include samples in former outputs. */
	bool joins;
};

struct epoch_process;
struct annotations;

/* A sample with resolved names. */
struct model_sample {
	struct str comm;
	uint64_t pid, tid, cpu, time_ns, value;
	uint64_t count; /* number of events that the sample stands for, at least 1 */
	/* Annotations; MODEL_NONE: none. source: the event of the header. */
	uint32_t source, labels, link;
	const struct model_stack *stack;
	const struct epoch_process *process; /* NULL: the stream names no process */
};

struct model;
struct share;

/* Returns 0, -ENOMEM, or -EINVAL if the ceiling is too low for any model. */
int model_new(const struct model_options *o, struct model **ret);
void model_free(struct model *m);

enum model_verdict {
	MODEL_SAMPLE = 1, /* the message was a sample: *ret_sample is filled */
};
/* Takes one message. Returns 0 or enum model_verdict; counts what does not fit as lost. */
int model_take(struct model *m, const struct msg *msg, struct model_sample *ret_sample);
/* Begins a new epoch: all ids are invalid. */
void model_forget(struct model *m);
/* Counts n messages that were sent but never arrived. */
void model_missing(struct model *m, uint64_t n);
/* Sets how much of the stream was skipped so far because this version does not know it. */
void model_skipped(struct model *m, uint64_t messages, uint64_t fields);
/* Counts a loss that the model cannot see: an output's own ceiling, a damaged stream. */
void model_lose(struct model *m, enum lost_reason reason, uint64_t n);

/* Takes a report that prof-bpf sent directly, not through the stream. */
void model_witness(struct model *m, const struct witness_word *w);
/* Whether there was such a report. */
bool model_has_witness(const struct model *m);
/* Whether prof-bpf has reported that it ended. */
bool model_has_final_word(const struct model *m);
/* The stream has ended well, and prof-bpf had the time to report its end. */
void model_over(struct model *m);
/* The stream was interrupted, so parts of it may be missing. replayed: an earlier prof-export took
 * its first part. */
void model_interrupted(struct model *m, bool replayed);
/* The last sample has come: compares the samples with prof-bpf's report. model_conclude also does
 * this. */
void model_judge(struct model *m);
/* Nothing more comes: settles all open counts. Call it once. */
void model_conclude(struct model *m);
/* Like model_conclude, but later samples go to another output. Call model_next once the present
 * output is written. */
void model_hand_on(struct model *m);
/* Begins the next output where the former one ended: forgets samples, losses and definitions. A new
 * epoch must follow. Facts about the whole run stay: the memory and cost of BPF, what was skipped,
 * and the comparison with prof-bpf's report, which the last output makes. */
void model_next(struct model *m);
/* Whether the stream had a proper end from a sender that saw all of it, or another output gets the
 * rest. */
bool model_ended_well(const struct model *m);

const struct model_header *model_header(const struct model *m);
const struct model_totals *model_totals(const struct model *m);
/* The process with this id of the stream. Borrowed; NULL: unknown. */
const struct epoch_process *model_process(const struct model *m, uint64_t id);
const struct annotations *model_annotations(const struct model *m);
/* The hello message with which the stream of the next output begins. It borrows from the model. */
struct msg model_hello(const struct model *m);
/* The newest clocks of the stream. */
const struct model_clock *model_clock(const struct model *m);
/* When the present prof-bpf began, as it reported; 0: it did not. */
uint64_t model_began_ns(const struct model *m);
/* The time until which the stream was sampled, by CLOCK_MONOTONIC; 0: the stream does not say. */
uint64_t model_sampled_until_ns(const struct model *m);
/* Returns all definitions, for labels. */
const struct definitions *model_definitions(const struct model *m);
/* The first and the last moment of sampling, in ns. If the stream does not give them, its own start
 * and end. The wall clock counts from 1970. */
uint64_t model_start_wall_ns(const struct model *m);
uint64_t model_duration_ns(const struct model *m);

/* The period that a sample stands for, in the unit of the header; the mean period if each sample
 * has its own. */
uint64_t model_period(const struct model *m);

/* Each returns an array and its length. */
size_t model_files(const struct model *m, const struct model_file **ret);
size_t model_functions(const struct model *m, const struct model_function **ret);
size_t model_frames(const struct model *m, const struct model_frame **ret);
size_t model_stacks(const struct model *m, const struct model_stack **ret);
size_t model_processes(const struct model *m, const struct model_process **ret);
size_t model_threads(const struct model *m, const struct model_thread **ret);
size_t model_buckets(const struct model *m, const struct model_bucket **ret);
size_t model_strings(const struct model *m);
struct str model_string(const struct model *m, uint32_t i);
const uint32_t *model_frames_of(const struct model *m, const struct model_stack *s);
/* The memory that the definitions of each owner take, and its samples lost to the model's
 * ceiling. */
size_t model_shares(const struct model *m, const struct share **ret);
/* Innermost call first. */
const uint32_t *model_functions_of(const struct model *m, const struct model_frame *f);
const uint32_t *model_lines_of(const struct model *m, const struct model_frame *f);

/* Fills in the samples, figures, losses and hottest functions, whose names are labels. The other
 * fields of *st are 0. */
void model_status(const struct model *m, struct status *st, bool with_top);

/* Saves the state of a model that does not aggregate. */
void model_save(const struct model *m, struct model_journal_state *ret);
/* Makes an empty model continue from saved state. Returns false if the bytes are no such state; the
 * model is then unchanged. */
bool model_restore(struct model *m, const struct model_journal_state *s);

#endif
