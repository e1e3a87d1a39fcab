/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples on their way from the kernel's rings to the stream. All earlier events of the host are
 * handled before a sample. Then its process and thread are looked up, and it is sent, unless it has
 * to wait for its deferred walk or for the names of kernel functions.
 */
#ifndef PROF_BPF_STREAM_SAMPLES_H
#define PROF_BPF_STREAM_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "tools/prof-bpf/stream/losses.h"

struct deferred_queue;
struct thinning;
struct samples_held;
struct host;
struct host_process;
struct kernel_names;
struct limit;
struct loader;
struct output;
struct parser_deaths;
struct row_server;
struct sample;
struct sideband;
struct tables;
struct tables_mapping;
struct witness_report;

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
	struct row_server *row_server;
	struct output *output;
	struct witness_report *witness_report;
	struct thinning *thinning; /* NULL: there is no cpu limit */
	bool without_objects;	   /* do not copy memory of interpreters */
	uint32_t command;	   /* pid of the command that is sampled from its start; 0: none */

	bool command_runs; /* the command had a sample after its exec, or a child of it had one */
	bool ended;	   /* the end of the stream was sent: drop samples */
	/* Samples that wait for names of kernel functions, oldest first. */
	struct samples_held *held, **held_end;
	size_t held_bytes;
	uint64_t drained_ns; /* side-band records up to this time have been handled */
	uint64_t renewed_ns; /* when lost objects were last copied again */
	uint64_t passed_on;  /* samples meant for prof-symd, counted from the start */
	struct losses_of_samples lost;
};

/* Takes everything that the kernel has written: samples and side-band records, in order of time. */
void samples_drain(struct samples *samples);
/* Sends the variables and the command line of a process, if the stream has the process. */
void samples_send_attributes(struct samples *samples, struct host_process *h);
/* The callbacks of struct deferred_config; ctx is the struct samples. */
ssize_t samples_mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			 bool *ret_whole);
uint64_t samples_changes(void *ctx, const struct sample *s);
void samples_want(void *ctx, const struct sample *s, const uint64_t *addresses, size_t n);
void samples_are_behind(void *ctx, const struct sample *s);
void samples_walked(void *ctx, const struct sample *s);
/* Frees what the struct owns. */
void samples_done(struct samples *samples);

#endif
