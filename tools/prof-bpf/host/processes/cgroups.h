/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of sampled processes. A cgroup is kept while a process refers to it. If a cgroup was
 * removed and created again with the same path, it counts as another one, provided that the
 * kernel's number of it is known. */
#ifndef PROF_BPF_HOST_PROCESSES_CGROUPS_H
#define PROF_BPF_HOST_PROCESSES_CGROUPS_H

#include <stdbool.h>
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
	int root;     /* of the unified hierarchy, O_PATH; -1: it is not mounted */
	uint64_t dev; /* device number of its file system */
};

/* mount: where cgroups are mounted (/sys/fs/cgroup), or the unified hierarchy beside others
 * (/sys/fs/cgroup/unified). If it is NULL or not mounted, no cgroup has a number. */
void cgroups_init(struct cgroups *c, const char *mount);
void cgroups_done(struct cgroups *c);
/* Returns the kernel's number of the cgroup with this path in the unified hierarchy: the inode of
 * its folder. 0: it is unknown, since the cgroup is gone, or outside of what is mounted. */
uint64_t cgroups_kernel_id(const struct cgroups *c, struct str path);
/* Returns a reference to the cgroup with this path, which is made if there is none. unified: the
 * path is one of the unified hierarchy. NULL: no memory. */
struct host_cgroup *cgroups_get(struct cgroups *c, struct str path, bool unified);
/* Accepts NULL. */
void cgroups_put(struct cgroups *c, struct host_cgroup *g);

#endif
