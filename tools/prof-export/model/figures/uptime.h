/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uptime: the times when some prof-bpf was sampling. If a prof-bpf dies, another one follows, and
 * its stream says since when it samples. Nothing is sampled between the last known moment of the
 * first and that time. All times are CLOCK_MONOTONIC; they are untrusted and may have any value.
 * Pure.
 */
#ifndef PROF_EXPORT_MODEL_FIGURES_UPTIME_H
#define PROF_EXPORT_MODEL_FIGURES_UPTIME_H

#include <stdbool.h>
#include <stdint.h>

struct uptime {
	uint64_t first_ns;	     /* when sampling began; 0: unknown */
	uint64_t since_ns, until_ns; /* of the present prof-bpf; 0: it does not sample yet */
	uint64_t last_ns;	     /* the last known moment of any prof-bpf */
	uint64_t away_ns;	     /* since when no prof-bpf samples; 0: one is sampling */
	uint64_t sampled_ns;	     /* time sampled by former prof-bpfs */
	uint64_t unsampled_ns;	     /* time between them */
	/* When the launcher ended sampling, if the last prof-bpf died before; 0: it did not. */
	uint64_t run_until_ns;
};

/* Another prof-bpf follows. */
void uptime_next(struct uptime *l);
/* The present prof-bpf has been sampling since ns. */
void uptime_since(struct uptime *l, uint64_t ns);
/* The present prof-bpf was still sampling at ns. */
void uptime_until(struct uptime *l, uint64_t ns);
/* Another output follows: first_ns and the sums begin anew at the last known moment. */
void uptime_divide(struct uptime *l);
/* No other prof-bpf follows. ended: the last one ended properly, at end_ns. Call it once. */
void uptime_conclude(struct uptime *l, bool ended, uint64_t end_ns);
/* 0: unknown. */
uint64_t uptime_end_ns(const struct uptime *l);
uint64_t uptime_sampled_ns(const struct uptime *l);

#endif
