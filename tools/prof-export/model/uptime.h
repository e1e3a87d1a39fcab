/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uptime: when some prof-bpf sampled. If a prof-bpf dies, another one follows, and its stream says
 * since when it samples. Nobody samples between the last known moment of the first and that time.
 * Times are CLOCK_MONOTONIC; any number may come. Pure.
 */
#ifndef PROF_EXPORT_MODEL_UPTIME_H
#define PROF_EXPORT_MODEL_UPTIME_H

#include <stdbool.h>
#include <stdint.h>

struct uptime {
	uint64_t first_ns;	     /* when sampling began; 0: not known */
	uint64_t since_ns, until_ns; /* of the present prof-bpf; 0: it does not sample yet */
	uint64_t last_ns;	     /* the last known moment of any prof-bpf */
	uint64_t away_ns;	     /* since when no prof-bpf samples; 0: one does */
	uint64_t sampled_ns;	     /* by former ones */
	uint64_t unsampled_ns;	     /* between them */
	/* The launcher's end of sampling, if the last prof-bpf died before it; 0: it did not. */
	uint64_t run_until_ns;
};

/* Another prof-bpf follows. */
void uptime_next(struct uptime *l);
/* The present one has sampled since ns. */
void uptime_since(struct uptime *l, uint64_t ns);
/* The present one still samples at ns. */
void uptime_until(struct uptime *l, uint64_t ns);
/* Another output follows: first_ns and the sums are of what comes from the last known moment on. */
void uptime_divide(struct uptime *l);
/* No other one follows. ended: the last one ended properly, at end_ns. Call it once. */
void uptime_conclude(struct uptime *l, bool ended, uint64_t end_ns);
/* 0: not known. */
uint64_t uptime_end_ns(const struct uptime *l);
uint64_t uptime_sampled_ns(const struct uptime *l);

#endif
