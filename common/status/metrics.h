/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's word to prof-metrics: the figures of a run, once a second. One write is one
 * fixed-width struct of at most PIPE_BUF bytes, so it arrives whole. Counters are sums over all
 * instances of a tool, up to the last word that arrived from each.
 */
#ifndef COMMON_STATUS_METRICS_H
#define COMMON_STATUS_METRICS_H

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include "common/status/status.h"

#define METRICS_MAGIC 0x70666d74u /* "pfmt" */

/* The tools of a run, by their numbers in status.restarts; then prof-send and the launcher. */
enum { METRICS_SEND = STATUS_TOOLS, METRICS_LAUNCHER, METRICS_TOOLS };

struct metrics_tool {
	uint64_t runs; /* 1: it does now */
	uint64_t restarts, cpu_ns, memory_bytes;
};
struct metrics_word {
	uint64_t magic;
	uint64_t sampling;	       /* 1: prof-bpf samples; 0: it does not, or rests */
	uint64_t samples;	       /* that prof-bpf took */
	uint64_t written;	       /* that prof-export has */
	uint64_t lost[STATUS_REASONS]; /* by enum lost_reason */
	/* Requests of OTLP: that prof-export made, and dropped for lack of a prof-send; over all
	 * endpoints, that receivers took, that were lost, attempts that failed and are made
	 * again, and requests that wait now. */
	uint64_t requests, dropped, delivered, undelivered, retries, queued;
	struct metrics_tool tools[METRICS_TOOLS];
};
static_assert(sizeof(struct metrics_word) <= PIPE_BUF, "a word of metrics is written whole");

#endif
