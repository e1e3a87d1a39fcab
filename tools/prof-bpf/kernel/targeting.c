/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/targeting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "bpf/tables.h"
#include "bpf/target/target.h"
#include "common/base/command/log.h"
#include "common/base/system/procfs.h"
#include "common/cell/targets/cgrouptree.h"

#define CGROUPS_MOST 4096 /* cgroups that targets name at one time */
#define PIDS_MOST 4096	  /* excluded processes and their descendants at the start */
#define FAMILY_ROUNDS 8	  /* if a child's pid is below its parent's, one more round is needed */

static_assert(TARGET_NAME == TARGETS_NAME_MOST + 1 && TARGET_COMM == TARGETS_COMM + 1,
	      "both sides cut at the same length");

struct targeting {
	const struct targets *targets;
	struct targeting_plan plan;
	struct targeting_maps maps;
	struct cgrouptrees trees;
	bool again;
};

const struct targeting_plan *targeting_plan(const struct targeting *t)
{
	return &t->plan;
}

/* --- the plan --- */

static uint32_t checks_of(const struct target *t)
{
	switch (t->kind) {
	case TARGETS_CGROUP:
	case TARGETS_CONTAINER:
	case TARGETS_UNIT:
		return TARGET_CGROUPS | (t->exclude ? 0 : TARGET_CGROUPS_ONLY);
	case TARGETS_COMM_NAME:
		return TARGET_COMMS | (t->exclude ? 0 : TARGET_COMMS_ONLY);
	case TARGETS_USER:
		return TARGET_USERS | (t->exclude ? 0 : TARGET_USERS_ONLY);
	case TARGETS_PID:
		return TARGET_PIDS;
	}
	return 0;
}

static uint32_t tree_of(enum cgrouptree_controller c)
{
	return c == CGROUPTREE_MEMORY ? TARGET_MEMORY
	       : c == CGROUPTREE_PIDS ? TARGET_PIDS_TREE
	       : c == CGROUPTREE_CPU  ? TARGET_CPU
				      : TARGET_NO_TREE;
}

int targeting_new(const struct targets *targets, bool again, struct targeting **ret)
{
	struct targeting *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	struct targeting_plan *p = &t->plan;
	const uint32_t n = (uint32_t)targets->count + 1;

	t->targets = targets;
	t->again = again;
	for (size_t i = 0; i < targets->count; i++)
		p->checks |= checks_of(&targets->list[i]);
	p->cgroups = p->checks & TARGET_CGROUPS;
	p->checks |= targets->min_age > 0 ? TARGET_AGES : 0;
	p->min_age_ns = (uint64_t)(targets->min_age * 1e9);
	p->descendants = targets->descendants && p->checks & TARGET_PIDS;
	p->cgroup_room = p->cgroups ? CGROUPS_MOST : 1;
	p->name_room = p->id_room = p->cgroups ? 2 * n : 1;
	p->comm_room = p->checks & TARGET_COMMS ? n : 1;
	p->user_room = p->checks & TARGET_USERS ? n : 1;
	p->pid_room = p->descendants ? PIDS_MOST : p->checks & TARGET_PIDS ? n : 1;
	p->descended_room = p->descendants ? TABLES_MAX_PROCESSES : 1;
	if (p->cgroups && cgrouptrees_find(&t->trees)) {
		log_error("/sys/fs/cgroup: no cgroups are mounted; mount -t cgroup2 none "
			  "/sys/fs/cgroup");
		free(t);
		return -ENOENT;
	}
	p->tree = tree_of(t->trees.v1.controller);
	*ret = t;
	return 0;
}

void targeting_free(struct targeting *t)
{
	free(t);
}

/* --- the maps --- */

static uint32_t flags_of(const struct target *t)
{
	return t->exclude ? TARGET_EXCLUDE : TARGET_INCLUDE;
}

/* Adds flags to an element. Returns 0 or -errno. */
static int add(int map, const void *key, uint32_t flags)
{
	uint32_t all = 0;

	(void)bpf_map_lookup_elem(map, key, &all);
	all |= flags;
	return bpf_map_update_elem(map, key, &all, BPF_ANY) < 0 ? -errno : 0;
}

/* Returns how many bytes of a name count. *ret_begins: whether names that begin with these are
 * meant. */
static size_t comm_of(const struct target *t, bool *ret_begins)
{
	const size_t len = strlen(t->text);

	*ret_begins = len <= TARGETS_COMM && t->text[len - 1] == '*';
	if (*ret_begins)
		return len - 1;
	return len < TARGETS_COMM ? len : TARGETS_COMM;
}

/* Adds a name with the flags of all that match it, since the kernel only looks at the longest
 * match. */
static int add_comm(struct targeting *t, const struct target *target)
{
	struct target_comm key = { 0 };
	uint32_t flags = 0;
	bool begins;
	const size_t len = comm_of(target, &begins);

	memcpy(key.comm, target->text, len);
	key.bits = 8 * (begins ? (uint32_t)len : TARGET_COMM);
	for (size_t i = 0; i < t->targets->count; i++) {
		const struct target *other = &t->targets->list[i];

		if (other->kind != TARGETS_COMM_NAME)
			continue;
		bool any;
		const size_t n = comm_of(other, &any);

		if (memcmp(key.comm, other->text, n) == 0 && (any ? n <= len : n == len) &&
		    (any || !begins))
			flags |= flags_of(other);
	}
	return add(t->maps.comms, &key, flags);
}

/* Like add_comm, for the beginnings of ids. */
static int add_id(struct targeting *t, const struct target *target)
{
	const size_t len = strlen(target->text);
	struct target_id key = { .bits = 8 * (uint32_t)len };
	uint32_t flags = 0;

	memcpy(key.id, target->text, len);
	for (size_t i = 0; i < t->targets->count; i++) {
		const struct target *other = &t->targets->list[i];

		if (other->kind == TARGETS_CONTAINER &&
		    strncmp(other->text, target->text, strlen(other->text)) == 0)
			flags |= flags_of(other);
	}
	return add(t->maps.ids, &key, flags);
}

static int add_unit(struct targeting *t, const struct target *target)
{
	struct target_name key = { .name = "" };

	cgrouptree_unit(target->text, key.name);
	return add(t->maps.names, &key, flags_of(target));
}

struct finding {
	struct targeting *t;
	const struct target *target;
	bool names; /* add the name, for a cgroup that will be created later */
	int error;
};

static void on_found(void *ctx, const struct cgrouptree_found *f)
{
	struct finding *by = ctx;
	const struct target_cgroup id = { .id = f->id, .hierarchy = f->tree->hierarchy };
	struct target_name key = { .parent = { .id = f->parent_id,
					       .hierarchy = f->tree->hierarchy } };
	int r = 0;

	if (!by->names) {
		r = add(by->t->maps.cgroups, &id, flags_of(by->target));
	} else if (f->parent_id && strlen(f->name) < sizeof(key.name)) {
		memcpy(key.name, f->name, strlen(f->name));
		r = add(by->t->maps.names, &key, flags_of(by->target));
	}
	by->error = by->error ? by->error : r;
}

static int fill_one(struct targeting *t, const struct target *target)
{
	struct finding f = { .t = t, .target = target, .names = true };

	switch (target->kind) {
	case TARGETS_CGROUP:
		(void)cgrouptrees_each(&t->trees, target, on_found, &f);
		return f.error;
	case TARGETS_CONTAINER:
		return add_id(t, target);
	case TARGETS_UNIT:
		return add_unit(t, target);
	case TARGETS_COMM_NAME:
		return add_comm(t, target);
	case TARGETS_USER:
		return add(t->maps.users, &target->number, flags_of(target));
	case TARGETS_PID:
		break;
	}
	return 0;
}

int targeting_fill(struct targeting *t, const struct targeting_maps *maps)
{
	t->maps = *maps;
	for (size_t i = 0; i < t->targets->count; i++) {
		const int r = fill_one(t, &t->targets->list[i]);

		if (r) {
			log_error("--%s: %s: cannot be entered into a BPF map: %s; "
				  "this is a bug: report this line",
				  targets_name(&t->targets->list[i]), t->targets->list[i].text,
				  strerror(-r));
			return r;
		}
	}
	return 0;
}

/* --- targets that exist at the start --- */

static int find_cgroups(struct targeting *t, const struct target *target)
{
	struct finding f = { .t = t, .target = target };
	const size_t n = cgrouptrees_each(&t->trees, target, on_found, &f);

	if (f.error) {
		log_error("--%s: %s: names more than %d cgroups; name one above them",
			  targets_name(target), target->text, CGROUPS_MOST);
		return -E2BIG;
	}
	if (n)
		return 0;
	if (target->kind == TARGETS_CGROUP && !t->again) {
		log_error("--%s: %s: there is no such cgroup; see /proc/PID/cgroup",
			  targets_name(target), target->text);
		return -ENOENT;
	}
	/* If an excluded cgroup does not exist, no warning is needed. */
	if (target->exclude)
		log_info("--%s: %s: no cgroup has this name yet", targets_name(target),
			 target->text);
	else
		log_warning("--%s: %s: no cgroup has this name yet; it is sampled once it starts",
			    targets_name(target), target->text);
	return 0;
}

static int enter_pid(struct targeting *t, uint32_t pid, uint64_t start_ns)
{
	return bpf_map_update_elem(t->maps.pids, &pid, &start_ns, BPF_ANY) < 0 ? -errno : 0;
}

static int find_pid(struct targeting *t, int proc, const struct target *target)
{
	struct procfs_stat st;

	if (!procfs_read_thread_stat(proc, target->number, &st))
		return enter_pid(t, target->number, st.start_ns);
	if (t->again)
		return 0;
	log_error("--exclude-pid: %u: there is no such process; see `ps -e`", target->number);
	return -ESRCH;
}

struct targeting_family {
	struct targeting *t;
	int proc, error;
	bool grown;
};

static bool is_entered(const struct targeting *t, uint32_t pid, uint64_t least_ns, uint64_t most_ns)
{
	uint64_t start_ns;

	return bpf_map_lookup_elem(t->maps.pids, &pid, &start_ns) == 0 && start_ns >= least_ns &&
	       start_ns <= most_ns;
}

static void note_child(void *ctx, uint32_t pid)
{
	struct targeting_family *f = ctx;
	struct procfs_stat st;

	/* A parent is not younger than its child. */
	if (f->error || procfs_read_thread_stat(f->proc, pid, &st) ||
	    is_entered(f->t, pid, st.start_ns, st.start_ns) ||
	    !is_entered(f->t, st.parent_pid, 0, st.start_ns))
		return;
	f->error = enter_pid(f->t, pid, st.start_ns);
	f->grown = true;
}

/* The hook of forks handles later descendants. */
static int find_descendants(struct targeting *t, int proc)
{
	struct targeting_family f = { .t = t, .proc = proc, .grown = true };

	for (unsigned i = 0; i < FAMILY_ROUNDS && f.grown && !f.error; i++) {
		f.grown = false;
		const int r = procfs_each(proc, note_child, &f);

		f.error = f.error ? f.error : r;
	}
	return f.error;
}

static int find_pids(struct targeting *t)
{
	const int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = proc < 0 ? -errno : 0;

	for (size_t i = 0; i < t->targets->count && !r; i++)
		if (t->targets->list[i].kind == TARGETS_PID)
			r = find_pid(t, proc, &t->targets->list[i]);
	if (!r && t->plan.descendants)
		r = find_descendants(t, proc);
	if (proc >= 0)
		close(proc);
	if (r && r != -ESRCH)
		log_error("--exclude-pid: %s; exclude fewer than %d processes, or their cgroup",
			  strerror(-r), PIDS_MOST);
	return r;
}

int targeting_find(struct targeting *t)
{
	int r = t->plan.checks & TARGET_PIDS ? find_pids(t) : 0;

	for (size_t i = 0; i < t->targets->count && !r; i++)
		if (checks_of(&t->targets->list[i]) & TARGET_CGROUPS)
			r = find_cgroups(t, &t->targets->list[i]);
	return r;
}
