/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status words: a tool's reports to the launcher, over a pipe. Each is one fixed-size struct of at
 * most PIPE_BUF bytes in one write, so it arrives whole. Apart from them the launcher reads only a
 * tool's log lines, which it escapes.
 */
#ifndef COMMON_STATUS_STATUS_H
#define COMMON_STATUS_STATUS_H

#include <assert.h>
#include <limits.h>
#include <stdint.h>

#define STATUS_MAGIC 0x70667374u /* "pfst" */
#define STATUS_REASONS 32
#define STATUS_UNNAMED_REASONS 8
#define STATUS_TOP 10
#define STATUS_NAME 120
#define STATUS_EVENT 32
#define STATUS_RUNTIMES 16 /* the runtimes of common/status/remedies.def, plus spare places */
#define STATUS_BLAMES 24
#define STATUS_TOOLS 4 /* prof-bpf, prof-deltas, prof-symd, prof-export */

enum status_phase {
	STATUS_READY = 1,   /* the sandbox is entered, sockets are open; prof-bpf: samples come */
	STATUS_RUNNING = 2, /* a progress report */
	STATUS_DONE = 3,    /* all was written; the figures are final */
	STATUS_FAILED = 4,  /* the tool is about to exit non-zero; its log says why */
};
/* The kind of a function. */
enum status_kind { STATUS_NATIVE, STATUS_KERNEL, STATUS_INTERPRETED, STATUS_OTHER, STATUS_KINDS };
struct status_top {
	uint64_t self;		/* samples whose leaf this function is */
	uint64_t kind;		/* enum status_kind */
	char name[STATUS_NAME]; /* untrusted bytes, zero-filled; printers must escape them */
};
enum status_harm { STATUS_TRUNCATED, STATUS_LOST, STATUS_UNNAMED, STATUS_HARMS };
/* How many samples of one owner were truncated, were lost or lack names, for one reason. */
struct status_blame {
	uint64_t owner;	 /* as the stream has it: the container, and below it the user */
	uint64_t harm;	 /* enum status_harm */
	uint64_t reason; /* enum walk_reason, lost_reason or unnamed_reason */
	uint64_t samples;
};
struct status {
	uint32_t magic;
	uint32_t phase; /* enum status_phase */
	uint64_t samples;
	uint64_t user_stacks; /* samples with a user part */
	uint64_t complete;    /* samples whose stack reached its root */
	uint64_t processes;
	uint64_t threads;
	uint64_t bytes;		    /* written to the output */
	uint64_t bpf_runs, bpf_ns;  /* of the sampling programs */
	uint64_t map_bytes;	    /* memory of all BPF maps */
	uint64_t first_complete_ns; /* CLOCK_MONOTONIC of the first complete sample, 0 before */
	uint64_t truncated[STATUS_REASONS]; /* samples by enum walk_reason; [0] is unused */
	uint64_t lost[STATUS_REASONS];	    /* by enum lost_reason */
	uint64_t cut;			    /* 1 if the stream ended without its end message */
	uint64_t ticks; /* prof-bpf: events of the sampling program, including those of idle cpus */
	struct status_top top[STATUS_TOP];
	char event[STATUS_EVENT]; /* of the stream's hello; untrusted bytes, like the names */
	uint64_t taken;		  /* prof-bpf: all samples that it took, including lost ones */
	uint64_t held;		  /* prof-export: 1 while a write waits for the output's reader */
	/* Prof-export: the memory in bytes that would have sufficed for all stacks; 0: none was
	 * truncated for lack of memory. */
	uint64_t enough;
	/* prof-export, by the numbers of remedies.def: samples of processes that run this runtime;
	 * those truncated in code that it may have generated; those with an unnamed frame of such
	 * code. */
	uint64_t runtime_samples[STATUS_RUNTIMES], runtime_truncated[STATUS_RUNTIMES],
		runtime_unnamed[STATUS_RUNTIMES];
	/* prof-export: the time from the first moment of sampling to the last; the part of it
	 * without a prof-bpf, and an estimate of the samples missed then; how often each tool was
	 * restarted. */
	uint64_t duration_ns, unsampled_ns, unsampled, restarts[STATUS_TOOLS];
	/* prof-export: the peak of the memory that the limit covers; 0: unknown. */
	uint64_t memory_peak;
	/* prof-export: the differences from prof-bpf's own counts (witness.h). */
	uint64_t witness_more, witness_fewer, witness_losses;
	uint64_t left_out; /* prof-export: samples of other sources than the event, if not shown */
	/* prof-export: messages and fields of a newer version that were skipped. */
	uint64_t skipped_messages, skipped_fields;
	/* prof-export: samples that lack a name, by enum unnamed_reason. */
	uint64_t unnamed[STATUS_UNNAMED_REASONS];
	struct status_blame blames[STATUS_BLAMES]; /* prof-export: the largest counts first */
	/* prof-send, over all endpoints: requests that came, that receivers took, and that were
	 * lost; `samples` counts those in the taken requests. prof-export: requests that it made,
	 * that prof-send took, and that it dropped. */
	uint64_t requests, requests_taken, requests_lost;
	/* prof-export: requests that it dropped because there was no prof-send; for the other
	 * dropped ones, prof-send was too slow. Samples in all requests, and in the dropped
	 * ones. */
	uint64_t requests_away, requests_samples, requests_lost_samples;
	uint64_t requests_retried; /* prof-send: failed attempts that are repeated */
};
static_assert(sizeof(struct status) <= PIPE_BUF, "a status word is written whole");

#endif
