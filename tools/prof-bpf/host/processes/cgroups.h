/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of sampled processes. A cgroup is kept while a process refers to it. One that was
 * removed and made again under its path is another one, if the kernel's number of it is known. */
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
	uint64_t kernel_id; /* with the path, the key */
	char path[];	    /* pub.path */
};

struct cgroups {
	struct cgroup *by_key;
	uint32_t next;
	int root;     /* of the unified hierarchy, O_PATH; -1: it is not mounted */
	uint64_t dev; /* of its file system */
};

/* mount: where cgroups are mounted (/sys/fs/cgroup), or the unified hierarchy beside others
 * (/sys/fs/cgroup/unified). NULL, or no such file system: no cgroup has a number. */
void cgroups_init(struct cgroups *c, const char *mount);
void cgroups_done(struct cgroups *c);
/* The kernel's number of the cgroup with this path in the unified hierarchy: the inode of its
 * folder. 0: it is unknown, since the cgroup is gone, or outside of what is mounted. */
uint64_t cgroups_kernel_id(const struct cgroups *c, struct str path);
/* A reference to the cgroup with this path, which is new if nobody has one. unified: the path is
 * one of the unified hierarchy. NULL: no memory. */
struct host_cgroup *cgroups_get(struct cgroups *c, struct str path, bool unified);
/* Takes NULL. */
void cgroups_put(struct cgroups *c, struct host_cgroup *g);

#endif
