/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/cgroups.h"

#include <stdlib.h>
#include <string.h>

struct host_cgroup *cgroups_get(struct cgroups *c, struct str path)
{
	struct cgroup *g;

	HASH_FIND(hh, c->by_path, path.data, path.len, g);
	if (g) {
		g->refs++;
		return &g->pub;
	}
	g = calloc(1, sizeof(*g) + path.len + 1);
	if (!g)
		return NULL;
	if (path.len)
		memcpy(g->path, path.data, path.len);
	g->refs = 1;
	g->pub.id = ++c->next;
	g->pub.path = (struct str){ .data = g->path, .len = path.len };
	HASH_ADD_KEYPTR(hh, c->by_path, g->path, path.len, g);
	return &g->pub;
}

void cgroups_put(struct cgroups *c, struct host_cgroup *pub)
{
	struct cgroup *g = (struct cgroup *)pub;

	if (!g || --g->refs)
		return;
	HASH_DEL(c->by_path, g);
	free(g);
}
