/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kernel symbols. It is filled, then finished. A finished table takes six bytes per
 * symbol, sorted by distance from the lowest text address, and names in digram coding (digrams.h).
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
#include "tools/prof-bpf/kernel/digrams.h"

#define KSYMBOLS_MAX (4u << 20)
#define KSYMBOLS_NAME_MAX 1023u /* bytes of a name; the rest is cut off */

struct ksymbol;
struct ksymbols_run;
struct ksymbols_bpf;

/* All zeros: empty. Users may read only `any` and the counts. */
struct ksymbols {
	uint64_t base;
	size_t len;
	/* Until it is finished: */
	struct ksymbol *at;
	size_t cap;
	char *pool;
	size_t pool_len, pool_cap;
	/* From then on, by symbol: its distance from base, and its padding and encoded length. */
	uint32_t *offsets;
	uint16_t *lengths;
	uint32_t *groups; /* position in `names` of the first name of each group */
	struct ksymbols_run *runs;
	size_t run_count;
	char *names;
	size_t names_len;
	struct digrams digrams;
	char name[2 * KSYMBOLS_NAME_MAX]; /* the name that was found last */
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
/* Finishes the table. Call it once, after the last symbol. Returns 0; -ENOMEM: the table is of no
 * use. */
int ksymbols_finish(struct ksymbols *t);
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
