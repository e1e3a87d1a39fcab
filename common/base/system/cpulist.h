/* SPDX-License-Identifier: Apache-2.0 */
/* A set of cpus, written as the kernel and perf write it: "0-3,5". */
#ifndef COMMON_BASE_SYSTEM_CPULIST_H
#define COMMON_BASE_SYSTEM_CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPULIST_MOST 8192 /* the largest number of cpus that Linux can be built for */

struct cpulist {
	uint64_t bits[CPULIST_MOST / 64];
};

/* Adds the cpus of a text to a set: numbers and ranges, in any order, with commas between them. A
 * line feed may end it. False: malformed, empty, or a cpu beyond CPULIST_MOST; then *l may have
 * some of them. */
bool cpulist_add(struct cpulist *l, const char *text);
bool cpulist_has(const struct cpulist *l, unsigned cpu);
bool cpulist_empty(const struct cpulist *l);
/* Returns the first cpu of a that is not in b; -1: there is none. */
int cpulist_beyond(const struct cpulist *a, const struct cpulist *b);
bool cpulist_meets(const struct cpulist *a, const struct cpulist *b);
/* Writes the set in ascending order, with ranges where possible. Returns false if `size` bytes do
 * not suffice; the text is then truncated. */
bool cpulist_print(const struct cpulist *l, char *ret, size_t size);

#endif
