/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model: the contents of a stream, over all its epochs. Definitions are kept once each, by
 * content (definitions.h), so ids of different epochs that mean the same meet again (epoch.h).
 * Samples are counted by thread and stack. All memory is charged to one ceiling; what does not fit
 * is counted as lost, and is no error.
 *
 * Definitions are numbered from 0 in the order they came; MODEL_NONE is none. Pointers and strings
 * that the model returns hold until it takes the next message.
 */
#ifndef PROF_EXPORT_MODEL_MODEL_H
#define PROF_EXPORT_MODEL_MODEL_H

#include <stdbool.h>
#include "common/base/reporting.h"
#include "common/status/status.h"
#include "common/status/witness.h"
#include "common/wire/msg.h"
#include "tools/prof-export/model/definitions.h"

struct model_options {
	enum model_detail detail;
	enum reporting_names names;
	bool interpreter_frames; /* also show the native frames of an interpreter's own loop */
	bool code;		 /* show what kind of code runs in an interpreted frame */
	bool lines;		 /* MODEL_NAMES: interpreted frames keep their line numbers */
	bool aggregate; /* keep samples; else only count them, and forget all else at each epoch */
	bool surroundings;   /* keep the cgroups and attributes of processes, and the extras */
	size_t memory_max;   /* bytes */
	uint64_t share_most; /* the most memory that it may be granted later; 0: nothing */
	size_t others;	     /* bytes of such a grant that others in this process take */
	bool joins;	     /* the run began before the stream that comes now: its first counts are
				those of samples that went to former outputs */
};

struct epoch_process;
struct extras;

/* A sample with resolved names. */
struct model_sample {
	struct str comm;
	uint64_t pid, tid, cpu, time_ns, value;
	uint64_t count;		       /* for how many events it stands, at least 1 */
	uint32_t source, labels, link; /* extras; MODEL_NONE: none. source: the header's event */
	const struct model_stack *stack;
	const struct epoch_process *process; /* NULL: the stream names none */
};

/* The clocks at one moment, as in the message. */
struct model_clock {
	uint64_t mono_ns, wall_ns, boot_ns;
};

struct model_header {
	bool seen;
	uint64_t kind;							   /* enum stream_kind */
	struct str producer, arch, kernel, hostname, event, unit, host_id; /* owned by the model */
	struct str kernel_build_id;					   /* the same; in hex */
	uint8_t build_id[64], build_id_len; /* the same, as it came */
	uint64_t cpus, hz, period, mono_ns, wall_ns, boot_ns;
};

struct model_totals {
	uint64_t samples, value, user_stacks, complete;
	uint64_t processes, threads; /* distinct ones in the stream */
	uint64_t truncated[STATUS_REASONS], lost[STATUS_REASONS];
	uint64_t first_ns, last_ns,
		end_ns; /* CLOCK_MONOTONIC; first_ns is UINT64_MAX before a sample */
	uint64_t first_complete_ns;
	uint64_t runtime_samples[STATUS_RUNTIMES], runtime_truncated[STATUS_RUNTIMES],
		runtime_unnamed[STATUS_RUNTIMES]; /* as in struct status */
	uint64_t unkept; /* samples lost to this model's own ceiling; `lost` has them too */
	uint64_t bpf_runs, bpf_ns, map_bytes, memory_enough, memory_peak;
	struct witness_verdict witness; /* at the end: what disagrees with prof-bpf */
	/* Messages and fields that this version does not know: counted by this prof-export, and
	 * before it. */
	uint64_t skipped_messages[2], skipped_fields[2];
	bool ended;
	uint64_t end_reason; /* enum end_reason */
};

struct model;
struct share;

/* 0, -ENOMEM, -EINVAL if the ceiling is too low for anything. */
int model_new(const struct model_options *o, struct model **ret);
void model_free(struct model *m);

enum model_verdict {
	MODEL_SAMPLE = 1, /* the message was a sample: *ret_sample is filled */
};
/* Takes one message. 0 or enum model_verdict; counts as lost what does not fit. */
int model_take(struct model *m, const struct msg *msg, struct model_sample *ret_sample);
/* A new epoch: all ids are void. */
void model_forget(struct model *m);
/* Counts n messages that never came. */
void model_missing(struct model *m, uint64_t n);
/* So much of the stream was skipped so far, because this version does not know it. */
void model_skipped(struct model *m, uint64_t messages, uint64_t fields);
/* Counts a loss that others saw: an output's own ceiling, a damaged stream. */
void model_lose(struct model *m, enum lost_reason reason, uint64_t n);

/* Takes a word that prof-bpf sent directly, and not by way of the stream. */
void model_witness(struct model *m, const struct witness_word *w);
/* Whether there was such a word. */
bool model_has_witness(const struct model *m);
/* Whether prof-bpf has said that it ended. */
bool model_has_final_word(const struct model *m);
/* The stream has ended well, and prof-bpf had time to say so. */
void model_over(struct model *m);
/* The stream was interrupted: some of it may be missing. replayed: a former prof-export took the
 * first part of it. */
void model_interrupted(struct model *m, bool replayed);
/* The last sample was taken: compares with prof-bpf's word. model_conclude also does this. */
void model_judge(struct model *m);
/* Nothing more comes: settles the open counts. Call it once. */
void model_conclude(struct model *m);
/* The same, but another output follows, which gets what comes. Once the output is written, call
 * model_next. */
void model_hand_on(struct model *m);
/* Forgets samples, losses and definitions, and goes on for the next output where the former one
 * ended. A new epoch must follow. Facts about the whole run stay: the memory and cost of BPF, what
 * was skipped, and the comparison with prof-bpf's word, which the last output makes. */
void model_next(struct model *m);
/* Whether the stream had a proper end, by a sender that had seen all of it, or another output has
 * the rest. */
bool model_ended_well(const struct model *m);

const struct model_header *model_header(const struct model *m);
const struct model_totals *model_totals(const struct model *m);
/* The process of the stream's id. Borrowed; NULL: it is unknown. */
const struct epoch_process *model_process(const struct model *m, uint64_t id);
const struct extras *model_extras(const struct model *m);
/* A hello with which the stream of the next output begins. It borrows from the model. */
struct msg model_hello(const struct model *m);
/* The newest clocks of the stream. */
const struct model_clock *model_clock(const struct model *m);
/* When the present prof-bpf began, as it says; 0: it did not. */
uint64_t model_began_ns(const struct model *m);
/* Until when the stream says that it was sampled, by CLOCK_MONOTONIC; 0: it says nothing. */
uint64_t model_sampled_until_ns(const struct model *m);
/* All definitions, for labels. */
const struct definitions *model_definitions(const struct model *m);
/* From the first moment of sampling to the last, in ns. If the stream does not say these, from its
 * start to its end. The wall clock counts since 1970. */
uint64_t model_start_wall_ns(const struct model *m);
uint64_t model_duration_ns(const struct model *m);

/* The period that a sample stands for, in the unit of the header; the mean, if each has its own. */
uint64_t model_period(const struct model *m);

/* Arrays; each returns its length. */
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
/* The room that each owner of processes takes, and its losses to the model's ceiling. */
size_t model_shares(const struct model *m, const struct share **ret);
/* Innermost call first. */
const uint32_t *model_functions_of(const struct model *m, const struct model_frame *f);
const uint32_t *model_lines_of(const struct model *m, const struct model_frame *f);

/* Fills in the samples, figures, losses and the hottest functions, whose names are labels. The rest
 * of *st is 0. */
void model_status(const struct model *m, struct status *st, bool with_top);

#endif
