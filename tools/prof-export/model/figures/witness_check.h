/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the samples that came with those that prof-bpf reports to have sent (witness.h). */
#ifndef PROF_EXPORT_MODEL_FIGURES_WITNESS_CHECK_H
#define PROF_EXPORT_MODEL_FIGURES_WITNESS_CHECK_H

#include "common/status/witness.h"

struct witness_check {
	struct witness_word word; /* the latest report; magic 0: none */
	struct witness_counts came;
	uint64_t unkept;       /* samples of `came` that were lost afterwards */
	uint64_t taken_before; /* samples taken by former prof-bpfs */
	unsigned lives;	       /* number of prof-bpfs */
	uint64_t unkeyed;      /* samples that came before any report */
	bool broken;	       /* the stream was interrupted */
	/* A former prof-export received a part of the stream, and perhaps reports. */
	bool replayed;
	bool joins;  /* the stream began before this prof-export joined it */
	bool former; /* a sample is older than the prof-bpf of the latest report */
	bool over;   /* the stream says that prof-bpf has ended */
	bool judged;
	struct witness_verdict verdict;
};

/* Takes a report. Returns false if it is not valid. */
bool witness_check_word(struct witness_check *w, const struct witness_word *word);
void witness_check_sample(struct witness_check *w, const struct witness_sample *s);
/* Compares the counts at the end of the stream. Does nothing if there were several prof-bpfs, of
 * which only sums are known. It also does nothing without a final report, unless the stream is
 * over. lost: the losses that the output counts. */
void witness_check_judge(struct witness_check *w, const uint64_t lost[static STATUS_REASONS]);
/* Samples that all prof-bpfs took, as far as reported. */
uint64_t witness_check_taken(const struct witness_check *w);

#endif
