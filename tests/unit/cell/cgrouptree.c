/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/targets/cgrouptree.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

Test(cgrouptree, a_unit_without_a_suffix_is_a_service)
{
	char name[TARGETS_NAME_MOST + 1];

	cgrouptree_unit("nginx", name);
	cr_assert_str_eq(name, "nginx.service");
	cgrouptree_unit("user.slice", name);
	cr_assert_str_eq(name, "user.slice");
}

/* --- trees, of ordinary folders --- */

static char place[] = "/tmp/cgrouptree.XXXXXX";
static struct cgrouptrees trees;

static void make(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/%s", place, path);
	cr_assert_eq(mkdir(full, 0700), 0, "%s", full);
}

static void set_up(void)
{
	static const char *const all[] = { "v2",
					   "v2/a.slice",
					   "v2/a.slice/x.service",
					   "v2/a.slice/x.service/x.service",
					   "v2/x.service",
					   "v2/" ID,
					   "v1",
					   "v1/old",
					   "v1/a.slice",
					   "v1/docker-" ID ".scope" };

	cr_assert_not_null(mkdtemp(place));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		make(all[i]);
	trees = (struct cgrouptrees){ .v1 = { .controller = CGROUPTREE_PIDS, .hierarchy = 7 } };
	snprintf(trees.unified.root, sizeof(trees.unified.root), "%s/v2", place);
	snprintf(trees.v1.root, sizeof(trees.v1.root), "%s/v1", place);
}

static void clean_up(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", place);
	cr_assert_eq(system(command), 0);
}

TestSuite(cgrouptree_find, .init = set_up, .fini = clean_up);

struct seen {
	char text[1024];
};

static void note(void *ctx, const struct cgrouptree_found *f)
{
	struct seen *s = ctx;
	const size_t len = strlen(s->text);

	cr_assert(f->id != 0);
	snprintf(s->text + len, sizeof(s->text) - len, "%u:%s%s ", f->tree->hierarchy, f->name,
		 f->parent_id ? "" : "(root)");
}

static void expect_found(enum targets_kind kind, const char *text, size_t count, const char *found)
{
	const struct target t = { .kind = kind, .text = text };
	struct seen s = { "" };

	cr_assert_eq(cgrouptrees_each(&trees, &t, note, &s), count, "%s", text);
	if (found)
		cr_assert_str_eq(s.text, found);
}

Test(cgrouptree_find, a_path_is_of_the_unified_tree_or_else_of_the_other)
{
	char mounted[512];

	expect_found(TARGETS_CGROUP, "/a.slice/x.service", 1, "0:x.service ");
	expect_found(TARGETS_CGROUP, "a.slice//x.service/", 1, "0:x.service ");
	expect_found(TARGETS_CGROUP, "a.slice", 1, "0:a.slice ");
	expect_found(TARGETS_CGROUP, "old", 1, "7:old ");
	expect_found(TARGETS_CGROUP, "/", 1, "0:(root) ");
	expect_found(TARGETS_CGROUP, "none", 0, "");
	snprintf(mounted, sizeof(mounted), "%s/v1/old", place);
	expect_found(TARGETS_CGROUP, mounted, 1, "7:old ");
}

Test(cgrouptree_find, units_and_containers_are_of_both_trees_and_end_a_search)
{
	expect_found(TARGETS_UNIT, "x", 2, "0:x.service 0:x.service ");
	expect_found(TARGETS_UNIT, "a.slice", 2, "0:a.slice 7:a.slice ");
	expect_found(TARGETS_CONTAINER, "0123456789ab", 2, "0:" ID " 7:docker-" ID ".scope ");
	expect_found(TARGETS_CONTAINER, ID, 2, NULL);
	expect_found(TARGETS_CONTAINER, "123456789abc", 0, "");
}

Test(cgrouptree_find, a_file_and_a_link_are_no_cgroups)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/v2/file", place);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "%s/v2/link.service", place);
	cr_assert_eq(symlink("a.slice", path), 0);
	expect_found(TARGETS_CGROUP, "file", 0, "");
	expect_found(TARGETS_CGROUP, "link.service", 0, "");
	expect_found(TARGETS_UNIT, "link", 0, "");
}

Test(cgrouptree_find, without_a_mounted_tree_nothing_is_found)
{
	trees.unified.root[0] = trees.v1.root[0] = '\0';
	expect_found(TARGETS_CGROUP, "/", 0, "");
	expect_found(TARGETS_UNIT, "x", 0, "");
}
