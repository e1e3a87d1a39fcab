/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of prof-bpf: main.c makes the parts and connects them, loop.c drives them, figures.c counts.
 * The parts do not know this struct.
 */
#ifndef PROF_BPF_PROF_H
#define PROF_BPF_PROF_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/budget.h"
#include "common/cell/deploy.h"
#include "common/walk/tables.h"
#include "tools/prof-bpf/gathering.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/host/jitfiles.h"
#include "tools/prof-bpf/kernel/cpus.h"
#include "tools/prof-bpf/kernel/kernel_names.h"
#include "tools/prof-bpf/kernel/loader.h"
#include "tools/prof-bpf/kernel/sideband.h"
#include "tools/prof-bpf/limit/cpulimit.h"
#include "tools/prof-bpf/limit/drops.h"
#include "tools/prof-bpf/limit/limit.h"
#include "tools/prof-bpf/open/workerpool.h"
#include "tools/prof-bpf/open/opener.h"
#include "tools/prof-bpf/options.h"
#include "tools/prof-bpf/peers/extractor.h"
#include "tools/prof-bpf/peers/file_server.h"
#include "tools/prof-bpf/peers/offers.h"
#include "tools/prof-bpf/peers/parser_deaths.h"
#include "tools/prof-bpf/peers/requests.h"
#include "tools/prof-bpf/peers/row_server.h"
#include "tools/prof-bpf/stream/deferred.h"
#include "tools/prof-bpf/stream/losses.h"
#include "tools/prof-bpf/stream/output.h"
#include "tools/prof-bpf/stream/samples.h"
#include "tools/prof-bpf/stream/testimony.h"

#define LOOP_DRAIN_MS_AT_99_HZ 50 /* shorter at higher rates, since deferred samples are large */
#define LOOP_DRAIN_MS_MIN 10
#define LOOP_DRAIN_MS_MAX 250

/* The sources of events that wake the loop. */
enum prof_source {
	PROF_FROM_TIMER,
	PROF_FROM_SIDEBAND,
	PROF_FROM_SIGNAL,
	PROF_FROM_LIFE,
	PROF_FROM_ROWS,
	PROF_FROM_ROWS_LANE,
	PROF_FROM_FILES,
	PROF_FROM_FILES_LANE,
	PROF_FROM_STREAM,
	PROF_FROM_HELPERS,
	PROF_FROM_CPUS,
	PROF_FROM_LATE_LOADER
};

/* The first record wakes the loop, which then takes all that come until a certain time. */
#define PROF_SIDEBAND_EVENTS (EPOLLIN | EPOLLONESHOT)

/* PROF_DRAINING: sampling has ended, and the last samples wait for what they need.
 * PROF_FINISHING: the end was sent. */
enum prof_phase { PROF_CONNECTING, PROF_SAMPLING, PROF_DRAINING, PROF_FINISHING };

/* A peer's bus and lane. After a failure it rests until the next timer tick. */
struct peer_turn {
	bool due; /* something has come, or is to be sent */
	bool rests;
	uint64_t failures;
};

/* Early timer ticks after a new file; loop.c explains. */
struct hurry {
	bool new_files;	  /* no process had mapped these files before */
	unsigned turns;	  /* early ticks to come */
	uint64_t paid_ns; /* when the budget covers the early ticks so far */
};

/* When each of these was last sent. */
struct sent {
	uint64_t figures_ns, clock_ns, flushed_ns, testimony_ns;
	uint64_t end_breaks; /* the output's, when the end of the stream was sent */
	bool end_due;	     /* it could not be sent */
};

struct prof {
	/* The options, and the limits. */
	struct options options;
	struct budget budget; /* the shares at the start */
	struct limit limit;   /* the present division */
	struct cpulimit cpu_limit;
	struct drops drops; /* for it */
	bool cpu_limit_told;

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
	struct jitfiles *jitfiles; /* deployed only */

	/* Peers: rows come from prof-deltas, names from prof-symd. */
	struct extractor extractor; /* by hand only */
	struct quarantine *quarantine;
	struct parser_deaths deaths;
	struct row_server *row_server;
	struct file_server *file_server; /* deployed only */
	struct requests requests;
	struct offers offers;
	unsigned chosen_files; /* that got slots since the programs of the run had mapped them */
	struct peer_turn rows, files;

	/* The way of samples to the stream. */
	struct output output;
	struct deferred_queue *deferred;
	struct samples samples;
	struct losses losses;
	struct testimony testimony;

	/* The loop. */
	struct status status;
	int epoll, timer, signals;
	unsigned drain_ms;
	struct hurry hurry;
	struct gathering gathering;
	struct sent sent;

	/* The course of the run. */
	enum prof_phase phase;
	uint64_t since_ns;		  /* start of the phase */
	uint64_t began_ns;		  /* start of this process */
	uint64_t connected_ns;		  /* when all peers were there; 0: not yet */
	uint64_t sampling_ns, sampled_ns; /* begin and end of sampling; 0: not yet */
	enum end_reason end;
	bool paused; /* by the launcher */
	bool exit_now, failed;
	bool again; /* failed, but a restart may succeed */
};

/* --- loop.c --- */

/* Handles all events until the stream has ended or everything is over (p->exit_now). */
void loop_run(struct prof *p);
/* The callbacks of host.h; ctx is the struct prof. */
bool loop_file_known(void *ctx, struct host_file *f);
void loop_file_needs_rows(void *ctx, struct host_file *f, int fd);
void loop_file_gone(void *ctx, struct host_file *f);
void loop_attributes_known(void *ctx, struct host_process *p);
void loop_process_gone(void *ctx, struct host_process *h);
void loop_thread_gone(void *ctx, struct host_thread *t);
bool loop_is_wanted(void *ctx, uint32_t pid, uint64_t exec_ns);

/* --- figures.c --- */

/* Samples that the kernel took of selected processes, whether lost or not. */
uint64_t figures_taken(struct prof *p);
void figures_send(struct prof *p);

#endif
