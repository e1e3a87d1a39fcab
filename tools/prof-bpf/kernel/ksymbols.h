/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernel symbols. It takes 12 bytes per symbol, sorted by distance from the lowest
 * text address, and one pool of names. In a run that goes on, zlib packs it, 256 symbols at a time,
 * to a fifth: a name is needed only once per epoch.
 *
 * A second, small table holds what BPF puts into the kernel; it can change at any time. If an
 * address has several names, the plainest is kept.
 */
#ifndef PROF_BPF_KERNEL_KSYMBOLS_H
#define PROF_BPF_KERNEL_KSYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/str.h"

#define KSYMBOLS_MAX (4u << 20)

struct ksymbol;
struct ksymbols_pack;
struct ksymbols_bpf;

/* All zero: empty. Only `any` and the counts are for others. */
struct ksymbols {
	uint64_t base;
	struct ksymbol *at;
	size_t len, cap;
	char *pool;
	size_t pool_len, pool_cap;
	/* Replaces at and pool when the table is packed; the last one is empty. */
	struct ksymbols_pack *packs;
	size_t pack_count;
	char *packed, *unpacked;      /* unpacked: room for the largest pack */
	size_t unpacked_bytes, shown; /* shown: the pack in it; SIZE_MAX: none yet */
	char **modules;
	unsigned module_count;
	struct ksymbols_bpf *dynamic;
	size_t dynamic_len, dynamic_cap;
	bool any; /* some address is not zero */
};

/* Adds a symbol, if it is one of text. module: empty for the kernel proper. -ENOMEM. */
int ksymbols_add(struct ksymbols *t, uint64_t address, char type, struct str name,
		 struct str module);
/* No more symbols come: sorts what there is. */
void ksymbols_finish(struct ksymbols *t);
/* Packs a table that is finished, unless it is packed. -ENOMEM: it stays as it is. */
int ksymbols_pack(struct ksymbols *t);
void ksymbols_done(struct ksymbols *t);

/* A BPF program or trampoline. length 0: unknown. At any time. -ENOMEM. */
int ksymbols_add_bpf(struct ksymbols *t, uint64_t start, uint64_t length, struct str name);
void ksymbols_remove_bpf(struct ksymbols *t, uint64_t start);
/* Takes the lengths of what BPF put into the kernel from the table before. */
void ksymbols_keep_lengths(struct ksymbols *t, const struct ksymbols *before);

/* As kallsyms_lookup, in a table that is finished. */
bool ksymbols_find(struct ksymbols *t, uint64_t addr, struct str *ret_name, struct str *ret_module,
		   uint64_t *ret_start);
size_t ksymbols_bytes(const struct ksymbols *t);

#endif
