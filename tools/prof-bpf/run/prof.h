/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of prof-bpf. main.c makes the parts, which are in the folders, and connects them. The parts
 * do not know this struct. The files beside it do: each handles one matter that involves several
 * parts, such as the start of sampling or the end of the stream. loop.c calls them.
 */
#ifndef PROF_BPF_RUN_PROF_H
#define PROF_BPF_RUN_PROF_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/budget/budget.h"
#include "common/cell/deploy.h"
#include "common/walk/tables/tables.h"
#include "tools/prof-bpf/host/lookups/jitfiles.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/kernel/cpus.h"
#include "tools/prof-bpf/kernel/kernel_names.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/sideband.h"
#include "tools/prof-bpf/limit/limit.h"
#include "tools/prof-bpf/limit/throttle.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/open/workers/workerpool.h"
#include "tools/prof-bpf/options/options.h"
#include "tools/prof-bpf/owners/subids.h"
#include "tools/prof-bpf/peers/extractor.h"
#include "tools/prof-bpf/peers/file_server.h"
#include "tools/prof-bpf/peers/offers.h"
#include "tools/prof-bpf/peers/parser_deaths.h"
#include "tools/prof-bpf/peers/requests.h"
#include "tools/prof-bpf/peers/row_server.h"
#include "tools/prof-bpf/run/lifecycle.h"
#include "tools/prof-bpf/run/extractor_watch.h"
#include "tools/prof-bpf/run/gathering.h"
#include "tools/prof-bpf/run/early_ticks.h"
#include "tools/prof-bpf/run/wakeups.h"
#include "tools/prof-bpf/stream/deferred.h"
#include "tools/prof-bpf/stream/losses.h"
#include "tools/prof-bpf/stream/output.h"
#include "tools/prof-bpf/stream/samples.h"
#include "tools/prof-bpf/stream/witness_report.h"

/* routes.c: a peer's bus and lane. After a failure it is not used until the next timer tick. */
struct prof_route {
	bool due; /* a message has come, or must be sent */
	bool rests;
	uint64_t failures;
};

struct prof_routes {
	struct prof_route rows, files;
};

/* Fields of starting.c. */
struct prof_starting {
	uint64_t connected_ns; /* when all peers were connected; 0: not yet */
	unsigned chosen_files; /* files that got slots because programs of the run have mapped
			        * them */
};

/* Fields of ending.c. */
struct prof_ending {
	enum msg_end_reason reason;
	uint64_t breaks; /* the output's `breaks` when the end of the stream was sent */
	bool due;	 /* the end could not be sent yet */
};

/* Fields of loop.c: when each of these was last done. */
struct prof_last {
	uint64_t figures_ns, clock_ns, flushed_ns, witness_report_ns;
};

struct prof {
	/* The options, and the limits. */
	struct options options;
	struct budget budget;	  /* the initial shares */
	struct limit limit;	  /* the current division of memory */
	struct throttle throttle; /* enforces the limit of cpu time */
	struct extractor_watch extractor_watch;
	struct subids subids;

	/* The kernel's side. */
	struct loader *loader;
	struct cpus cpus;
	struct sideband *sideband;
	struct kernel_names names;

	/* The host. */
	struct tables *tables;
	struct host *host;
	struct workerpool *pool;
	struct opener *opener;
	struct jitfiles *jitfiles; /* in a deployment only */

	/* Peers: rows come from prof-deltas, names from prof-symd. */
	struct extractor extractor; /* by hand only */
	struct quarantine *quarantine;
	struct parser_deaths deaths;
	struct row_server *row_server;
	struct file_server *file_server; /* in a deployment only */
	struct requests requests;
	struct offers offers;
	struct prof_routes routes;

	/* From samples to the stream. */
	struct output output;
	struct deferred_queue *deferred;
	struct samples samples;
	struct losses losses;
	struct witness_report witness_report;

	/* The run. */
	struct status status;
	struct wakeups wakeups;
	struct gathering gathering;
	struct early_ticks early_ticks;
	struct prof_last last;
	struct lifecycle lifecycle;
	struct prof_starting starting;
	struct prof_ending ending;
};

#endif
