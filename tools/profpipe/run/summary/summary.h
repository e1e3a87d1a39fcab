/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a run: for people on standard error, and as JSON. */
#ifndef PROFPIPE_RUN_SUMMARY_SUMMARY_H
#define PROFPIPE_RUN_SUMMARY_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "common/status/status.h"
#include "tools/profpipe/run/summary/delivery.h"

struct summary_cost {
	const char *tool;
	double cpu_s, start_cpu_s; /* cpu time in all, and until sampling began, in seconds */
	uint64_t pss_peak;	   /* bytes; 0: unknown */
};
struct summary {
	struct status figures; /* from prof-export */
	unsigned hz;
	const char *format, *output;
	double first_complete_s; /* from the start of profpipe; negative: there was none */
	/* Bytes, of all tools at one time; invalid if the cost of one is unknown. */
	uint64_t pss_peak;
	double suspended_s; /* time of suspends on the host, which all other times exclude */
	const struct delivery *delivery; /* NULL, or no endpoints: nothing was to be sent */
	const struct summary_cost *costs;
	unsigned cost_count;
};
/* Prints lines of text with all names escaped. */
void summary_print(FILE *out, const struct summary *s);
/* Writes JSON to fd. Returns 0, -ENOMEM or -errno. */
int summary_json(int fd, const struct summary *s);
/* Rewrites the progress line from the elapsed seconds and the newest status word. */
void summary_progress(FILE *out, double elapsed_s, const struct status *st, const char *what);

#endif
