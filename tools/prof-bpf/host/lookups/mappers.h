/* SPDX-License-Identifier: Apache-2.0 */
/* The living processes that have a file mapped. Only processes with samples, and processes of the
 * owner who is charged for the file, count: an idle process of another user proves nothing about
 * the file. */
#ifndef PROF_BPF_HOST_LOOKUPS_MAPPERS_H
#define PROF_BPF_HOST_LOOKUPS_MAPPERS_H

#include "tools/prof-bpf/files/files.h"

struct host;
struct map;

/* Finds a process for a backing, or else for a file (struct files_mapper_search). pid 0: none. ctx:
 * the struct host. A search for a file looks at a limited number of mappings of each owner, and
 * charges its time to the owner of the file (mapping_turns.h). The caller charges a search for a
 * backing. */
struct files_mapper mappers_find(void *ctx, const struct files_mapper_search *s);
/* Lists such processes of different owners that have samples: first the one sampled last, then the
 * others in a fixed order. Charges the owner of the file likewise. Returns how many there are. */
size_t mappers_list(struct host *h, const struct file *f,
		    struct files_mapper ret[static FILES_LISTED]);
/* Whether one of n mappings is of b (of f if b is NULL). *ret gets its place. */
bool mappers_maps_have(const struct map *at, size_t n, const struct files_backing *b,
		       const struct file *f, struct files_mapper *ret);

#endif
