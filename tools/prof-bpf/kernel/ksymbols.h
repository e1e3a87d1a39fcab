/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernel symbols. It takes 12 bytes per symbol, sorted by distance from the lowest
 * text address, and one pool of names. In a longer run, zlib packs it, 64 symbols at a time, to
 * less than a third of its size: a name is needed only once per epoch.
 *
 * The padding before a function, which has symbols of its own (`__pfx_…`), counts as the function.
 *
 * A second, small table holds BPF programs and trampolines, which can change at any time. If an
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
struct ksymbols_packing;
struct ksymbols_bpf;

/* All zeros: empty. Users may read only `any` and the counts. */
struct ksymbols {
	uint64_t base;
	struct ksymbol *at;
	size_t len, cap;
	char *pool;
	size_t pool_len, pool_cap;
	/* Replaces at and pool when the table is packed. The last element is empty. */
	struct ksymbols_pack *packs;
	size_t pack_count;
	char *packed, *unpacked;	  /* unpacked: space for the largest pack */
	size_t unpacked_bytes, shown;	  /* shown: the pack that it holds; SIZE_MAX: none yet */
	struct ksymbols_packing *packing; /* NULL: not now; `at` and `pool` are used meanwhile */
	struct z_stream_s *unpacking;	  /* NULL: nothing was unpacked yet */
	char **modules;
	unsigned module_count;
	struct ksymbols_bpf *dynamic;
	size_t dynamic_len, dynamic_cap;
	uint64_t padded; /* address of the last symbol that names padding */
	bool any;	 /* at least one address is not zero */
};

/* Adds a symbol, if it is one of text. module: empty for the kernel proper. Returns 0 or
 * -ENOMEM. */
int ksymbols_add(struct ksymbols *t, uint64_t address, char type, struct str name,
		 struct str module);
/* Sorts the table. Call it after the last symbol. */
void ksymbols_finish(struct ksymbols *t);
/* Packs at most this many times 64 symbols of a finished table. Returns 0: it is packed now;
 * -EAGAIN: call it again; -ENOMEM: the table stays as it is. Until it is packed, ksymbols_find
 * works as before. */
int ksymbols_pack(struct ksymbols *t, size_t most);
void ksymbols_done(struct ksymbols *t);

/* Adds a BPF program or trampoline, at any time. length 0: unknown. Returns 0 or -ENOMEM. */
int ksymbols_add_bpf(struct ksymbols *t, uint64_t start, uint64_t length, struct str name);
void ksymbols_remove_bpf(struct ksymbols *t, uint64_t start);
/* Copies the lengths of BPF programs and trampolines from the previous table. */
void ksymbols_keep_lengths(struct ksymbols *t, const struct ksymbols *before);

/* Like kallsyms_lookup, in a finished table. In the padding of a function, *ret_start is above
 * addr. */
bool ksymbols_find(struct ksymbols *t, uint64_t addr, struct str *ret_name, struct str *ret_module,
		   uint64_t *ret_start);
size_t ksymbols_bytes(const struct ksymbols *t);

#endif
