/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness reports to prof-export what prof-bpf sent and lost, over a path that prof-symd cannot
 * reach. So prof-export notices if prof-symd invents, repeats, drops or moves samples, or hides
 * losses.
 *
 * Both count each sample in one of WITNESS_BUCKETS buckets, chosen by a keyed hash of all numbers
 * in struct witness_sample. prof-symd does not know the key. So it cannot change any of these, even
 * one sample for another, without changing the counts of two buckets, except by luck (1 in
 * WITNESS_BUCKETS). The stack of a sample is not compared, since prof-symd makes it.
 */
#ifndef COMMON_STATUS_WITNESS_H
#define COMMON_STATUS_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/status/status.h"

#define WITNESS_MAGIC 0x70667774u /* "pfwt" */
#define WITNESS_FOLDER "export"
#define WITNESS_NAME "witness"
#define WITNESS_BUCKETS 128

struct witness_key {
	uint64_t words[2];
};

struct witness_sample {
	uint64_t pid, tid, cpu, time_ns, value;
	/* As in the message: ids, or 0. prof-bpf sends no count, no labels and no link. */
	uint64_t source, count, labels, link;
};

struct witness_counts {
	/* May exceed the sum of the buckets: some samples came without a thread. */
	uint64_t samples;
	uint64_t buckets[WITNESS_BUCKETS];
};

/* The report of prof-bpf, sent every second and at its end. A datagram of fixed size. */
struct witness_word {
	uint64_t magic;
	uint64_t began_ns;	/* identifies this prof-bpf */
	struct witness_key key; /* random, different for each prof-bpf */
	uint64_t final;		/* 1: it takes no more samples */
	/* 1: it began to sample before prof-export received a report. */
	uint64_t unheard;
	uint64_t taken; /* all samples, including lost ones */
	/* How often samples may have been lost without being counted. */
	uint64_t breaks;
	uint64_t lost[STATUS_REASONS]; /* counted by prof-bpf, by enum lost_reason */
	struct witness_counts sent;
};

/* The differences between the two counts. All 0: they agree. */
struct witness_verdict {
	uint64_t more; /* samples that came, but that prof-bpf did not send */
	/* Samples that prof-bpf sent, that did not come, and that no loss explains. */
	uint64_t fewer;
	uint64_t losses; /* losses that prof-bpf counted, and that were changed or not passed on */
};

void witness_count(struct witness_counts *c, const struct witness_key *k,
		   const struct witness_sample *s);
/* Compares prof-bpf's final report with the samples that came. lost: the losses that the output
 * counts. unkept: samples of `came` that are also in `lost`. broken: the stream was interrupted, so
 * some may be missing. */
struct witness_verdict witness_compare(const struct witness_word *w,
				       const struct witness_counts *came,
				       const uint64_t lost[static STATUS_REASONS], uint64_t unkept,
				       bool broken);

#endif
