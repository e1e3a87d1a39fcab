/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel code: /proc/kallsyms read once into a packed sorted table; or, where that shows
 * no addresses (kptr_restrict=2, no CAP_SYSLOG), the kernel's ksym iterator (6.0 and later,
 * bpf/ksyms.bpf.c). BPF programs and trampolines come and go by side-band records; a change of
 * /proc/modules has all read again.
 */
#ifndef PROFPIPE_KALLSYMS_H
#define PROFPIPE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/span.h"

#define KALLSYMS_MAX (4u << 20)			     /* symbols */
#define KALLSYMS_CHECK_NS 5000000000ull		     /* how often /proc/modules is looked at */
#define KALLSYMS_LONGEST_NS (64 * KALLSYMS_CHECK_NS) /* the same, after readings that failed */

struct kallsyms;
struct sideband_event;

struct kallsyms_config {
	const char *path;    /* NULL: /proc/kallsyms */
	const char *modules; /* NULL: /proc/modules */
	bool no_iterator;    /* never load BPF for it */
	bool only_iterator;  /* not the file; for tests */
};
/* Opens what they are read from, with the rights that this takes (CAP_SYSLOG; CAP_BPF and
 * CAP_PERFMON for the iterator): none are needed later. -errno where there is no such file,
 * -ENOMEM. The caller owns *ret, which knows no symbol yet. */
int kallsyms_open(const struct kallsyms_config *c, struct kallsyms **ret);
/* Reads the symbols, which takes a tenth of a second. That there are none is no error. -errno where
 * the file could not be read, -ENOMEM. */
int kallsyms_read(struct kallsyms *k);
/* Both. */
int kallsyms_new(const struct kallsyms_config *c, struct kallsyms **ret);
void kallsyms_free(struct kallsyms *k);
/* False: no addresses are to be had, and every look-up fails. */
bool kallsyms_available(const struct kallsyms *k);
/* The function that covers an address: its name, its module (empty for the kernel proper, "bpf" for
 * BPF programs) and start. Borrowed until the next call. False: none known.
 */
bool kallsyms_lookup(struct kallsyms *k, uint64_t addr, struct str *ret_name,
		     struct str *ret_module, uint64_t *ret_start);
/* Takes a SIDEBAND_KSYMBOL record; others are ignored. */
void kallsyms_event(struct kallsyms *k, const struct sideband_event *e);
/* Reads all again when the modules have changed, or the last reading failed; looks every
 * KALLSYMS_CHECK_NS, and half as often after each failure. now_ns: CLOCK_MONOTONIC. 0, -errno (what
 * was known stays). */
int kallsyms_tick(struct kallsyms *k, uint64_t now_ns);

struct kallsyms_figures {
	size_t symbols, dynamic, bytes;
	bool by_iterator;
	uint64_t reads, failures;
};
void kallsyms_figures(const struct kallsyms *k, struct kallsyms_figures *ret);

#endif
