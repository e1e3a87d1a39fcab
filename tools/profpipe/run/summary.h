/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a run: for people on standard error, and as JSON. */
#ifndef PROFPIPE_RUN_SUMMARY_H
#define PROFPIPE_RUN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "common/status/status.h"
#include "tools/profpipe/run/delivery.h"

struct summary_cost {
	const char *tool;
	double cpu_s, start_cpu_s; /* seconds: all, and until sampling began */
	uint64_t pss_peak;	   /* bytes; 0: not known */
};
struct summary {
	struct status figures; /* of prof-export */
	unsigned hz;
	const char *format, *output;
	double first_complete_s; /* from the start of profpipe; negative: none */
	uint64_t pss_peak;	 /* bytes, of all at one time; void if one cost is not known */
	double suspended_s;	 /* of the host; all other times leave it out */
	const struct delivery *delivery; /* NULL, or without endpoints: nothing was sent */
	const struct summary_cost *costs;
	unsigned cost_count;
};
/* Lines, every name escaped. */
void summary_print(FILE *out, const struct summary *s);
/* Writes JSON to fd. 0, -ENOMEM, -errno. */
int summary_json(int fd, const struct summary *s);
/* Rewrites the progress line: elapsed seconds and the newest status word. */
void summary_progress(FILE *out, double elapsed_s, const struct status *st, const char *what);

#endif
