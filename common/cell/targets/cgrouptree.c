/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/targets/cgrouptree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/cell/targets/container.h"

#define DEPTH_MOST 64 /* of nested cgroups; the programs of bpf/ look no deeper */
#define LINE_MOST 8192

static const char *const controllers[CGROUPTREE_CONTROLLERS] = {
	[CGROUPTREE_MEMORY] = "memory",
	[CGROUPTREE_PIDS] = "pids",
	[CGROUPTREE_CPU] = "cpu",
};

/* --- pure --- */

void cgrouptree_unit(const char *text, char ret[static TARGETS_NAME_MOST + 1])
{
	snprintf(ret, TARGETS_NAME_MOST + 1, "%s%s", text, strchr(text, '.') ? "" : ".service");
}

static bool is_named(const struct target *t, const char *name)
{
	char unit[TARGETS_NAME_MOST + 1];

	if (t->kind == TARGETS_CONTAINER)
		return container_matches(name, t->text);
	cgrouptree_unit(t->text, unit);
	return strcmp(name, unit) == 0;
}

/* --- the trees --- */

/* The number of v1's tree with this controller; 0: there is none. */
static uint32_t hierarchy_of(const char *controller)
{
	char line[LINE_MOST];
	uint32_t number = 0;
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && !number && fgets(line, sizeof(line), f)) {
		char *end, *rest, *list = strchr(line, ':');

		if (!list)
			continue;
		list++;
		list[strcspn(list, ":")] = '\0';
		for (char *word = strtok_r(list, ",", &rest); word && !number;
		     word = strtok_r(NULL, ",", &rest))
			if (strcmp(word, controller) == 0)
				number = (uint32_t)strtoul(line, &end, 10);
	}
	if (f)
		fclose(f);
	return number;
}

static void note_mount(struct cgrouptrees *t, const struct mntent *m)
{
	if (strcmp(m->mnt_type, "cgroup2") == 0 && !t->unified.root[0])
		snprintf(t->unified.root, sizeof(t->unified.root), "%s", m->mnt_dir);
	if (strcmp(m->mnt_type, "cgroup") != 0)
		return;
	for (int i = CGROUPTREE_MEMORY; i < CGROUPTREE_CONTROLLERS; i++) {
		if (!hasmntopt(m, controllers[i]) || (t->v1.root[0] && (int)t->v1.controller <= i))
			continue;
		t->v1.hierarchy = hierarchy_of(controllers[i]);
		if (!t->v1.hierarchy)
			continue;
		t->v1.controller = (enum cgrouptree_controller)i;
		snprintf(t->v1.root, sizeof(t->v1.root), "%s", m->mnt_dir);
	}
}

int cgrouptrees_find(struct cgrouptrees *ret)
{
	char line[LINE_MOST];
	struct mntent m;
	FILE *f = setmntent("/proc/self/mounts", "re");

	*ret = (struct cgrouptrees){ .unified.controller = CGROUPTREE_UNIFIED };
	while (f && getmntent_r(f, &m, line, sizeof(line)))
		note_mount(ret, &m);
	if (f)
		endmntent(f);
	return ret->unified.root[0] || ret->v1.root[0] ? 0 : -ENOENT;
}

/* --- the cgroups of a target --- */

/* Calls fn with the cgroup at a path. Users write either the path of the mounted folder, or the
 * path below the root that /proc/PID/cgroup shows. Returns how many were found: 0 or 1. */
static size_t give_path(const struct cgrouptree *t, const char *path, cgrouptree_fn *fn, void *ctx)
{
	const size_t root = strlen(t->root);
	char full[2 * PATH_MAX];
	struct stat st, above;

	if (!root)
		return 0;
	if (strncmp(path, t->root, root) == 0 && (path[root] == '/' || !path[root]))
		path += root;
	path += strspn(path, "/");
	size_t len = strlen(path);
	while (len && path[len - 1] == '/')
		len--;
	int n = snprintf(full, sizeof(full), "%s/%.*s", t->root, (int)len, path);
	if (n < 0 || (size_t)n >= sizeof(full) || lstat(full, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	struct cgrouptree_found found = { .tree = t, .id = st.st_ino, .name = "" };
	if (len) {
		char *name = strrchr(full, '/') + 1;

		*(name - 1) = '\0';
		if (lstat(full, &above) < 0)
			return 0;
		found.parent_id = above.st_ino;
		found.name = name;
	}
	fn(ctx, &found);
	return 1;
}

/* Searches a folder of a tree and the folders below it. Takes the descriptor. */
static size_t give_below(const struct cgrouptree *t, const struct target *target, int fd,
			 unsigned depth, cgrouptree_fn *fn, void *ctx)
{
	DIR *d = fdopendir(fd);
	struct stat st, here;
	size_t count = 0;

	if (!d) {
		close(fd);
		return 0;
	}
	for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (e->d_type != DT_DIR || strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0)
			continue;
		if (is_named(target, e->d_name)) {
			/* It may have been removed by now. */
			if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			    fstat(dirfd(d), &here) < 0)
				continue;
			fn(ctx, &(struct cgrouptree_found){ .tree = t,
							    .id = st.st_ino,
							    .parent_id = here.st_ino,
							    .name = e->d_name });
			count++;
			continue;
		}
		const int below = depth < DEPTH_MOST
					  ? openat(dirfd(d), e->d_name,
						   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
					  : -1;
		if (below >= 0)
			count += give_below(t, target, below, depth + 1, fn, ctx);
	}
	closedir(d);
	return count;
}

static size_t give_named(const struct cgrouptree *t, const struct target *target, cgrouptree_fn *fn,
			 void *ctx)
{
	const int fd = t->root[0] ? open(t->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	return fd >= 0 ? give_below(t, target, fd, 1, fn, ctx) : 0;
}

size_t cgrouptrees_each(const struct cgrouptrees *t, const struct target *target, cgrouptree_fn *fn,
			void *ctx)
{
	if (target->kind != TARGETS_CGROUP)
		return give_named(&t->unified, target, fn, ctx) +
		       give_named(&t->v1, target, fn, ctx);
	const size_t unified = give_path(&t->unified, target->text, fn, ctx);

	return unified ? unified : give_path(&t->v1, target->text, fn, ctx);
}
