/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory budget: the limit of --memory-limit, the share of each part, and the arithmetic of
 * dividing it. During a run, tools/prof-bpf/limit decides what the parts get.
 *
 * The limit covers the memory that the run adds to the host: the proportional set sizes of the
 * tools and the launcher, the kernel's memory for their BPF maps, and the rings of perf events.
 * prof-send and prof-metrics have a share in runs that use them.
 *
 * Each part has a share that it always gets (budget_split). Other parts may use what it does not
 * need of that share (budget_settle): prof-bpf redistributes this every three seconds, and up to
 * ten times a second if memory is short (limit.c). Parts give back memory that others are granted.
 * A tool's containers evict the least recently used entries, or refuse new ones, and count both. A
 * kernel limit on a tool's private memory (budget_fence) covers what cannot be bounded beforehand:
 * a library that reads a user's file fails there, for that file only. Pure.
 */
#ifndef COMMON_CELL_BUDGET_BUDGET_H
#define COMMON_CELL_BUDGET_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_DEFAULT (128ull << 20)
#define BUDGET_LEAST (64ull << 20) /* the tools cannot run with less */
#define BUDGET_MOST (1ull << 40)
/* For a tool's --help. */
#define BUDGET_USAGE \
	"  --memory-limit SIZE memory of all tools and their BPF maps together, at least 64M\n" \
	"                      (default 128M); samples and names that do not fit are counted\n"

/* Tools that only some runs have. */
enum { BUDGET_SEND = 1, BUDGET_METRICS = 2 };

/* In bytes. */
struct budget {
	uint64_t limit;
	/* The guaranteed share of each tool, including its program text; send and metrics are 0 in
	 * runs without them. spare: guaranteed to no part, for growth between two redistributions
	 * (limit.h). Together with the maps, these add up to the limit. */
	uint64_t bpf, deltas, symd, export, launcher, send, metrics, spare;
	uint64_t maps;	   /* BPF maps and perf rings; the tables get what the rings leave over */
	uint64_t sideband; /* part of maps: the perf rings of all cpus */
	uint64_t ring;	   /* part of maps: upper limit of each of the two rings of samples */

	/* Parts of bpf. host: for processes, mappings and files. prof-deltas has only one
	 * container, the rows of one file, which the fence limits. */
	uint64_t interned, outbox, deferred, host;
	/* Parts of symd: symbols of programs, the process that reads DWARF, generated code,
	 * interpreted functions, definitions of the raw stream, names that were sent. */
	uint64_t programs, dwarf, generated, objects, definitions, names;
	uint64_t model;	   /* part of export */
	uint64_t requests; /* part of export: for OTLP, beside the model */
	uint64_t queues;   /* part of send: waiting requests of all endpoints */

	/* The most that these two may be granted while the others keep what they need. */
	uint64_t symd_most, export_most;
	uint64_t dwarf_most; /* part of symd_most: for the process that reads DWARF */
};

/* limit: BUDGET_LEAST to BUDGET_MOST. extra: which of the tools above the run has. */
void budget_split(uint64_t limit, unsigned extra, struct budget *ret);
/* A claim on memory, made by a part of the run, or by one of several owners in such a part. */
struct budget_claim {
	uint64_t sure;	  /* guaranteed, even if others want more */
	uint64_t wanted;  /* the memory that it holds, plus more that it could use */
	uint64_t granted; /* the result */
};
/* Divides `limit` among n claims. No claim is granted more than it wants. If some do not use all of
 * their guaranteed share, claims that want more get the rest. The smallest wishes are satisfied
 * first; claims that cannot be satisfied get equal additions. Returns what nobody wants. */
uint64_t budget_settle(uint64_t limit, struct budget_claim *claims, size_t n);
/* Divides prof-symd's parts in *b again, for another share. */
void budget_symd(struct budget *b, uint64_t share);
/* The part of prof-export's share that its model may take. */
uint64_t budget_model(uint64_t share);
/* The private memory (RLIMIT_DATA) that a tool with this share and number of threads may have. */
uint64_t budget_fence(uint64_t share, unsigned threads);

#endif
