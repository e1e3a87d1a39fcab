/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ceiling of --memory-limit, and who may take how much of it: the one place where memory is
 * divided.
 *
 * What counts is what the run adds to the host: the proportional set size of the four tools and the
 * launcher, what the kernel takes for their BPF maps, and the rings of perf events.
 *
 * Each part has a share that it is sure of when all want memory at once (budget_split). What one
 * part does not want, the others have (budget_settle): prof-bpf divides it again a few times a
 * second, and parts hand back what is granted to others. A tool's containers drop what was used
 * longest ago, or what does not fit, and count it. Behind them stands a limit of the kernel's on a
 * tool's private memory (budget_fence), for what nobody can bound beforehand: a library on a
 * stranger's file fails there, for that file. Pure.
 */
#ifndef PROFPIPE_BUDGET_H
#define PROFPIPE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_DEFAULT (128ull << 20)
#define BUDGET_LEAST (64ull << 20) /* below it the tools do not fit */
#define BUDGET_MOST (1ull << 40)

/* In bytes. */
struct budget {
	uint64_t limit;
	/* What each tool is sure of, its program text included: they and the maps are the limit. */
	uint64_t bpf, deltas, symd, export, launcher;
	uint64_t maps;	   /* BPF maps and perf rings; what is left of it by rings is for tables */
	uint64_t sideband; /* in maps: the perf rings of all cpus */
	uint64_t ring;	   /* in maps: each of the two rings that samples come through, at most */

	/* In bpf. A fifth of it is for what lives on the host: processes, mappings and files have
	 * their ceilings in numbers (host.h). deltas has one container, the rows of one file, whose
	 * ceiling is the fence. */
	uint64_t interned, outbox, deferred;
	/* in symd: of all programs' symbols, of the process that reads DWARF, of generated code, of
	 * interpreted functions, of the raw stream's definitions, of the names given out. */
	uint64_t programs, dwarf, generated, objects, definitions, names;
	uint64_t model; /* in export */

	/* What these two may be granted at most, while the others keep what they cannot do
	 * without. */
	uint64_t symd_most, export_most;
	uint64_t dwarf_most; /* of symd_most: of the process that reads DWARF */
};

/* limit: BUDGET_LEAST to BUDGET_MOST. */
void budget_split(uint64_t limit, struct budget *ret);
/* One that takes memory of the limit: a part of the run, or (any number of them) one owner's part
 * of that. */
struct budget_claim {
	uint64_t sure;	  /* it has so much, if it wants it, whatever the others want */
	uint64_t wanted;  /* what it holds, and could use beyond */
	uint64_t granted; /* the answer */
};
/* Divides `limit` among n claims. Nobody is granted more than it wants. What claims that are sure
 * of more leave goes to those that want more, the smallest wishes first: of two that cannot both be
 * met, none is granted more beyond its sure part than the other. What nobody wants is left over,
 * and returned. */
uint64_t budget_settle(uint64_t limit, struct budget_claim *claims, size_t n);
/* The parts of prof-symd's in *b are made anew, of another share. */
void budget_symd(struct budget *b, uint64_t share);
/* What prof-export's model may take of another share of its. */
uint64_t budget_model(uint64_t share);
/* What private memory a tool with this share may have, which runs so many threads: RLIMIT_DATA. */
uint64_t budget_fence(uint64_t share, unsigned threads);

#endif
