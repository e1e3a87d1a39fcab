/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples, from the kernel's rings to the stream: what happened on the host before a sample is
 * heard first, then it is found whose it is, and it is sent; or it waits until its deferred walk or
 * the names of kernel functions are there.
 */
#ifndef PROFPIPE_SAMPLES_H
#define PROFPIPE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct deferred_queue;
struct held_sample;
struct host;
struct kernel_names;
struct limit;
struct loader;
struct output;
struct parser_deaths;
struct sample;
struct sideband;
struct tables;
struct tables_mapping;

struct samples {
	/* Borrowed. */
	struct loader *loader;
	struct sideband *sideband;
	struct kernel_names *names;
	struct host *host;
	struct tables *tables;
	struct deferred_queue *deferred;
	struct limit *limit;
	struct parser_deaths *deaths;
	struct output *output;
	bool without_objects; /* no memory of interpreters is copied */
	uint32_t command;     /* the process that was followed from its start; 0: none */

	bool command_runs; /* a sample of it came, after its exec or of a child */
	bool ended;	   /* the end of the stream was sent: samples are dropped */
	/* Samples that wait for the names of kernel functions, oldest first. */
	struct held_sample *held, **held_end;
	size_t held_bytes;
	uint64_t drained_ns; /* side-band records up to here have been handled */
	uint64_t renewed_ns; /* when lost objects were copied again last */
	/* Counted from the start. */
	uint64_t passed_on; /* were to go on to prof-symd */
	uint64_t queue_full, throttled;
	uint64_t unkept; /* there was no room for their process or thread */
};

/* Takes everything that the kernel has written, samples and side-band records in the order of their
 * time. */
void samples_drain(struct samples *s);
/* The mappings and emit of struct deferred_config; ctx is the struct samples. */
ssize_t samples_mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			 bool *ret_whole);
void samples_walked(void *ctx, const struct sample *s);
/* Frees what it owns. */
void samples_done(struct samples *s);

#endif
