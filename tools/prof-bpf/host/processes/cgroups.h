/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of sampled processes. A cgroup is kept while a process refers to it. If a cgroup was
 * removed and created again with the same path, it counts as another one, if the kernel's number of
 * it is known. The numbers come with the samples, since a user can hold the lock of a cgroup's
 * folder for ever, and then its inode cannot be looked up. */
#ifndef PROF_BPF_HOST_PROCESSES_CGROUPS_H
#define PROF_BPF_HOST_PROCESSES_CGROUPS_H

#include <stdint.h>
#include "common/base/bytes/str.h"
#include "common/base/tables/hashtable.h"
#include "tools/prof-bpf/host/processes/host_types.h"

struct cgroup {
	struct host_cgroup pub;
	uint32_t refs;
	UT_hash_handle hh;
	uint64_t kernel_id; /* the key, together with the path */
	char path[];	    /* pub.path */
};

struct cgroups {
	struct cgroup *by_key;
	uint32_t next;
};

/* Returns a reference to the cgroup with this path, which is made if there is none. kernel_id: its
 * number in the unified hierarchy (struct sample); 0: unknown. NULL: no memory. */
struct host_cgroup *cgroups_get(struct cgroups *c, struct str path, uint64_t kernel_id);
/* Accepts NULL. */
void cgroups_put(struct cgroups *c, struct host_cgroup *g);

#endif
