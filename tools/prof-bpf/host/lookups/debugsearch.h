/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for a debug file (debugsearch_open). The requester checks that it is the right one. A
 * process can have any root, with any file of root's in it. So a wrong file does not end the
 * search: the next request begins after it. It looks below these roots:
 *
 * - of the process that was sampled last among those that have the file mapped
 * - of the host
 * - of other sampled processes that have it mapped, one of each owner
 *
 * Each root has DEBUGSEARCH_PLACES places (opener_kind). The number of a place is the number of its
 * root times DEBUGSEARCH_PLACES, plus its number within the root.
 */
#ifndef PROF_BPF_HOST_LOOKUPS_DEBUGSEARCH_H
#define PROF_BPF_HOST_LOOKUPS_DEBUGSEARCH_H

#define DEBUGSEARCH_PLACES 8u
#define DEBUGSEARCH_ROOTS 16u

#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "tools/prof-bpf/host/processes/host_types.h"
#include "tools/prof-bpf/open/opener.h"

struct host;

/* Opens a debug file of f, as host_open does: by build id (name empty) or by name. place: number of
 * the first place to look in; opener_result.place tells where the file was found. */
int debugsearch_open(struct host *h, struct host_file *f, struct span build_id, struct str name,
		     uint64_t place, opener_done *done, void *ctx);

/* Ends all searches without calling back. */
void debugsearch_done(struct host *h);

#endif
