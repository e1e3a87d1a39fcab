/* SPDX-License-Identifier: Apache-2.0 */
/* The plain numbers of a model: what a stream and the other tools report besides samples. The
 * journal saves them for the next prof-export. */
#ifndef PROF_EXPORT_MODEL_MODEL_STATE_H
#define PROF_EXPORT_MODEL_MODEL_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/str.h"
#include "common/status/status.h"
#include "common/status/witness.h"
#include "tools/prof-export/model/figures/uptime.h"
#include "tools/prof-export/model/figures/witness_check.h"

/* The clocks read at one moment, as in the message. */
struct model_clock {
	uint64_t mono_ns, wall_ns, boot_ns;
};

struct model_header {
	bool seen;
	uint64_t kind; /* enum msg_stream_kind */
	struct str producer, arch, kernel, hostname, event, unit, host_id; /* owned by the model */
	struct str kernel_build_id;					   /* the same; in hex */
	uint8_t build_id[64], build_id_len;				   /* the same, in binary */
	uint64_t cpus, hz, period, mono_ns, wall_ns, boot_ns;
};

struct model_totals {
	uint64_t samples, user_stacks, complete;
	uint64_t of_event, value; /* samples of the header's event, and the sum of their values */
	uint64_t left_out;	  /* samples of other sources, which `samples` does not include */
	uint64_t processes, threads; /* number of distinct ones in the stream */
	uint64_t truncated[STATUS_REASONS], lost[STATUS_REASONS], unnamed[STATUS_UNNAMED_REASONS];
	uint64_t first_ns, last_ns,
		end_ns; /* CLOCK_MONOTONIC; first_ns is UINT64_MAX before a sample */
	uint64_t first_complete_ns;
	uint64_t runtime_samples[STATUS_RUNTIMES], runtime_truncated[STATUS_RUNTIMES],
		runtime_unnamed[STATUS_RUNTIMES]; /* as in struct status */
	uint64_t unkept; /* samples lost to this model's own ceiling; `lost` includes them */
	uint64_t bpf_runs, bpf_ns, map_bytes, memory_enough, memory_peak;
	/* At the end: the differences from the reports of prof-bpf. */
	struct witness_verdict witness;
	/* Messages and fields that this version does not know: counted by this prof-export, and by
	 * tools before it. */
	uint64_t skipped_messages[2], skipped_fields[2];
	bool ended;
	uint64_t end_reason; /* enum msg_end_reason */
};

/* The present prof-bpf: when it began, and the samples it reported. `handed_on`: those that former
 * outputs contain. The other fields are counts from before it began; `launched` is the count that
 * the launcher knew then. */
struct model_sampler {
	uint64_t began_ns, taken, handed_on, accounted, launched, bpf_runs, bpf_ns;
};

/* The launcher's facts about the run (struct deploy_word). */
struct model_launched {
	uint64_t taken, restarts[STATUS_TOOLS];
};

/* The saved state of a model that does not aggregate: the plain numbers that it keeps over epochs.
 * Processes and threads that were counted are not saved, so the next prof-export counts them again.
 * Its list of the hottest functions starts empty. */
#define MODEL_JOURNAL_TEXTS 8 /* of the header */
struct model_journal_state {
	struct model_header header; /* followed by its texts */
	char texts[MODEL_JOURNAL_TEXTS][256];
	uint64_t lengths[MODEL_JOURNAL_TEXTS];
	struct model_clock clock;
	struct model_totals totals;
	struct model_sampler sampler;
	struct uptime uptime;
	struct model_launched launched;
	struct witness_check witness_check;
};

#endif
