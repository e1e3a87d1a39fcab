/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ceiling of --memory-limit, and what each part may take of it: the one place where memory is
 * divided.
 *
 * What counts is what the run adds to the host: the proportional set size of the four tools and the
 * launcher, what the kernel takes for their BPF maps, and the rings of perf events. Each tool has a
 * share, which a limit of the kernel's on its private memory (RLIMIT_DATA) makes hard, and gives
 * out of it to its containers, which drop what was used longest ago, or what does not fit, and
 * count it. So a container is full before the fence is reached; what nobody can bound beforehand (a
 * library on a stranger's file) fails there, for that file. Pure.
 */
#ifndef PROFPIPE_BUDGET_H
#define PROFPIPE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_DEFAULT (128ull << 20)
#define BUDGET_LEAST (64ull << 20) /* below it the tools do not fit */
#define BUDGET_MOST (1ull << 40)

/* In bytes. */
struct budget {
	uint64_t limit;
	/* What each tool may take, its program text included: they and the maps are the limit. */
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
};

/* limit: BUDGET_LEAST to BUDGET_MOST. */
void budget_split(uint64_t limit, struct budget *ret);
/* What private memory a tool with this share may have, which runs so many threads: RLIMIT_DATA. */
uint64_t budget_fence(uint64_t share, unsigned threads);
/* "128M", "1GiB", "134217728": a whole number of bytes, or with K, M or G behind it of those, with
 * or without "B" or "iB". False: it is none. */
bool budget_parse(const char *text, uint64_t *ret);

#endif
