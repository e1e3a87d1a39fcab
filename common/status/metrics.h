/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's message to prof-metrics: the figures of a run, once a second. Each message is one
 * fixed-size struct of at most PIPE_BUF bytes in one write, so it arrives whole. Counters are sums
 * over all processes of a tool, up to the last status word of each.
 */
#ifndef COMMON_STATUS_METRICS_H
#define COMMON_STATUS_METRICS_H

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include "common/status/status.h"

#define METRICS_MAGIC 0x70666d74u /* "pfmt" */

/* The tools of a run, by their numbers in status.restarts; then prof-send, prof-metrics and the
 * launcher. */
enum { METRICS_SEND = STATUS_TOOLS, METRICS_SERVER, METRICS_LAUNCHER, METRICS_TOOLS };

struct metrics_tool {
	uint64_t runs; /* 1: it runs now */
	uint64_t restarts, cpu_ns, memory_bytes;
};
struct metrics_word {
	uint64_t magic;
	uint64_t send_failed;	       /* 1: prof-send keeps ending, so nothing is sent */
	uint64_t sampling;	       /* 1: prof-bpf is sampling; 0: it is not, or pauses */
	uint64_t samples;	       /* that prof-bpf took */
	uint64_t written;	       /* samples that reached prof-export */
	uint64_t lost[STATUS_REASONS]; /* by enum lost_reason */
	/* OTLP requests. Made by prof-export, and dropped because there was no prof-send. Over all
	 * endpoints: taken by receivers, lost, failed attempts that are repeated, and requests that
	 * wait now. */
	uint64_t requests, dropped, delivered, undelivered, retries, queued;
	struct metrics_tool tools[METRICS_TOOLS];
};
static_assert(sizeof(struct metrics_word) <= PIPE_BUF, "a word of metrics is written whole");

#endif
