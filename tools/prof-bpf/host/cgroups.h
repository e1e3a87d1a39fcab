/* SPDX-License-Identifier: Apache-2.0 */
/* The cgroups of sampled processes, by path. A cgroup is kept while a process refers to it. */
#ifndef PROF_BPF_HOST_CGROUPS_H
#define PROF_BPF_HOST_CGROUPS_H

#include <stdint.h>
#include <uthash.h>
#include "common/base/span.h"
#include "tools/prof-bpf/host/host_types.h"

struct cgroup {
	struct host_cgroup pub;
	uint32_t refs;
	UT_hash_handle hh;
	char path[]; /* pub.path */
};

/* Zero-initialise. */
struct cgroups {
	struct cgroup *by_path;
	uint32_t next;
};

/* A reference to the cgroup with this path, which is new if nobody has one. NULL: no memory. */
struct host_cgroup *cgroups_get(struct cgroups *c, struct str path);
/* Takes NULL. */
void cgroups_put(struct cgroups *c, struct host_cgroup *g);

#endif
