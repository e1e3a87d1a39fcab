/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel code, read once from /proc/kallsyms into a packed sorted table. If that shows no
 * addresses (kptr_restrict=2, no CAP_SYSLOG), they come from the kernel's ksym iterator (6.0 and
 * later, ksyms.bpf.c). Side-band records add and remove BPF programs and trampolines. When
 * /proc/modules changes, all names are read again.
 */
#ifndef PROF_BPF_KERNEL_KALLSYMS_H
#define PROF_BPF_KERNEL_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/str.h"

#define KALLSYMS_CHECK_NS 5000000000ull		     /* interval between checks of /proc/modules */
#define KALLSYMS_LONGEST_NS (64 * KALLSYMS_CHECK_NS) /* longest interval after failed readings */

struct kallsyms;
struct sideband_event;

struct kallsyms_config {
	const char *path;    /* NULL: /proc/kallsyms */
	const char *modules; /* NULL: /proc/modules */
	/* For tests: */
	bool no_iterator;   /* never load BPF for names */
	bool only_iterator; /* do not use the file */
};
/* Opens the source of names. This needs rights (CAP_SYSLOG; CAP_BPF and CAP_PERFMON for the
 * iterator), which are not needed later. The table is still empty. The caller owns *ret. Returns 0,
 * -errno if the file does not exist, or -ENOMEM. */
int kallsyms_open(const struct kallsyms_config *c, struct kallsyms **ret);
/* Reads the names, which takes a tenth of a second. Having no names is not an error. Returns 0,
 * -errno if the file cannot be read, or -ENOMEM. */
int kallsyms_read(struct kallsyms *k);
/* Calls kallsyms_open and kallsyms_read. */
int kallsyms_new(const struct kallsyms_config *c, struct kallsyms **ret);
void kallsyms_free(struct kallsyms *k);
/* Returns false if no addresses are available, so that each lookup fails. */
bool kallsyms_available(const struct kallsyms *k);
/* Finds the function that covers an address: its name, its start, and its module (empty for the
 * kernel proper, "bpf" for BPF programs). Borrowed until the next call. Returns false if
 * unknown. */
bool kallsyms_lookup(struct kallsyms *k, uint64_t addr, struct str *ret_name,
		     struct str *ret_module, uint64_t *ret_start);
/* Takes a SIDEBAND_KSYMBOL record and ignores others. */
void kallsyms_event(struct kallsyms *k, const struct sideband_event *e);
/* Reads all names again if the modules have changed or the last reading failed. Checks every
 * KALLSYMS_CHECK_NS, and half as often after each failure. now_ns: CLOCK_MONOTONIC. Returns 0 or
 * -errno (the old names stay). */
int kallsyms_tick(struct kallsyms *k, uint64_t now_ns);

struct kallsyms_figures {
	size_t symbols, dynamic, bytes;
	bool by_iterator;
	uint64_t reads, failures;
};
void kallsyms_figures(const struct kallsyms *k, struct kallsyms_figures *ret);

#endif
