/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/cgroups.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct host_cgroup *cgroups_get(struct cgroups *c, struct str path, uint64_t kernel_id)
{
	const size_t head = offsetof(struct cgroup, path) - offsetof(struct cgroup, kernel_id);
	struct cgroup *fresh = calloc(1, sizeof(*fresh) + path.len + 1), *known;

	if (!fresh)
		return NULL;
	if (path.len)
		memcpy(fresh->path, path.data, path.len);
	fresh->kernel_id = kernel_id;
	HASH_FIND(hh, c->by_key, &fresh->kernel_id, head + path.len, known);
	if (known) {
		free(fresh);
		known->refs++;
		return &known->pub;
	}
	fresh->refs = 1;
	fresh->pub = (struct host_cgroup){ .id = ++c->next,
					   .kernel_id = fresh->kernel_id,
					   .path = { .data = fresh->path, .len = path.len } };
	HASH_ADD_KEYPTR(hh, c->by_key, &fresh->kernel_id, head + path.len, fresh);
	return &fresh->pub;
}

void cgroups_put(struct cgroups *c, struct host_cgroup *pub)
{
	struct cgroup *g = (struct cgroup *)pub;

	if (!g || --g->refs)
		return;
	HASH_DEL(c->by_key, g);
	free(g);
}
