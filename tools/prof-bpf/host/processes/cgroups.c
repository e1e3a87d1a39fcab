/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/cgroups.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define PATH_BYTES 4096

/* Opens a folder if it is the root of a unified hierarchy. Returns false otherwise. */
static bool take_root(struct cgroups *c, const char *path)
{
	const int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return false;
	if (fstatfs(fd, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC || fstat(fd, &st)) {
		close(fd);
		return false;
	}
	c->root = fd;
	c->dev = st.st_dev;
	return true;
}

void cgroups_init(struct cgroups *c, const char *mount)
{
	char unified[PATH_BYTES];

	*c = (struct cgroups){ .root = -1 };
	if (!mount || take_root(c, mount))
		return;
	snprintf(unified, sizeof(unified), "%s/unified", mount);
	(void)take_root(c, unified);
}

void cgroups_done(struct cgroups *c)
{
	if (c->root >= 0)
		close(c->root);
	c->root = -1;
}

/* Whether the path leads upwards: this is how the kernel shows cgroups outside of our namespace. */
static bool leads_out(const char *path)
{
	const size_t len = strlen(path);

	return strstr(path, "/../") || (len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

uint64_t cgroups_kernel_id(const struct cgroups *c, struct str path)
{
	char name[PATH_BYTES];
	struct stat st;

	if (c->root < 0 || !path.len || path.data[0] != '/' || path.len >= sizeof(name))
		return 0;
	memcpy(name, path.data, path.len);
	name[path.len] = '\0';
	if (leads_out(name) ||
	    fstatat(c->root, path.len > 1 ? name + 1 : ".", &st, AT_SYMLINK_NOFOLLOW) ||
	    st.st_dev != c->dev)
		return 0;
	return st.st_ino;
}

struct host_cgroup *cgroups_get(struct cgroups *c, struct str path, bool unified)
{
	const size_t head = offsetof(struct cgroup, path) - offsetof(struct cgroup, kernel_id);
	struct cgroup *fresh = calloc(1, sizeof(*fresh) + path.len + 1), *known;

	if (!fresh)
		return NULL;
	if (path.len)
		memcpy(fresh->path, path.data, path.len);
	fresh->kernel_id = unified ? cgroups_kernel_id(c, path) : 0;
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
