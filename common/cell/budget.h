/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory budget: the ceiling of --memory-limit, each part's share of it, and the arithmetic of
 * dividing. tools/prof-bpf/limit decides during a run what the parts get.
 *
 * The limit covers the memory that the run adds to the host: the proportional set sizes of the
 * tools and the launcher, the kernel's memory for their BPF maps, and the rings of perf events.
 * prof-send and prof-metrics have a share in runs that have them.
 *
 * Each part has a share that it always gets (budget_split). Other parts may use memory of the share
 * that it does not need (budget_settle): prof-bpf divides this again one to ten times a second
 * (limit.c), and parts give back memory that others are granted. A tool's containers evict the
 * least recently used entries, or refuse new ones, and count both. Behind them stands a kernel
 * limit on a tool's private memory (budget_fence), for memory that nobody can bound beforehand: a
 * library that reads a user's file fails there, for that file only. Pure.
 */
#ifndef COMMON_CELL_BUDGET_H
#define COMMON_CELL_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_DEFAULT (128ull << 20)
#define BUDGET_LEAST (64ull << 20) /* with less the tools cannot run */
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
	/* The sure share of each tool, with its program text; send, metrics: 0 in runs without
	 * them. spare: what nobody is sure of, for growth between two looks (limit.h). With the
	 * maps these add up to limit. */
	uint64_t bpf, deltas, symd, export, launcher, send, metrics, spare;
	uint64_t maps;	   /* BPF maps and perf rings; tables get what the rings leave */
	uint64_t sideband; /* in maps: the perf rings of all cpus */
	uint64_t ring;	   /* in maps: at most, for each of the two rings of samples */

	/* In bpf. host: for processes, mappings and files. deltas has one container, the rows of
	 * one file, and the fence limits it. */
	uint64_t interned, outbox, deferred, host;
	/* In symd: symbols of programs, the process that reads DWARF, generated code, interpreted
	 * functions, definitions of the raw stream, names given out. */
	uint64_t programs, dwarf, generated, objects, definitions, names;
	uint64_t model;	 /* in export */
	uint64_t queues; /* in send: requests that wait, of all endpoints */

	/* The most that these two may be granted while the others keep what they need. */
	uint64_t symd_most, export_most;
	uint64_t dwarf_most; /* of symd_most: for the process that reads DWARF */
};

/* limit: BUDGET_LEAST to BUDGET_MOST. extra: the tools above that the run has. */
void budget_split(uint64_t limit, unsigned extra, struct budget *ret);
/* A claim on memory: of a part of the run, or of one of any number of owners in such a part. */
struct budget_claim {
	uint64_t sure;	  /* guaranteed, even if others want more */
	uint64_t wanted;  /* what it holds and could use in addition */
	uint64_t granted; /* the answer */
};
/* Divides `limit` among n claims. No claim is granted more than it wants. If some leave a part of
 * their sure share, claims that want more get it, the smallest wishes first; those that cannot be
 * met get equal additions. Returns what nobody wants. */
uint64_t budget_settle(uint64_t limit, struct budget_claim *claims, size_t n);
/* Divides prof-symd's parts in *b anew, for another share. */
void budget_symd(struct budget *b, uint64_t share);
/* The part of prof-export's share that its model may take. */
uint64_t budget_model(uint64_t share);
/* The private memory (RLIMIT_DATA) that a tool with this share and number of threads may have. */
uint64_t budget_fence(uint64_t share, unsigned threads);

#endif
