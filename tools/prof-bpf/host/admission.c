/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/admission.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "common/base/tables/hashtable.h"
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/shares/eviction.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/publish/reading.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/host/shares/statuses.h"

struct process *admission_process(struct host *h, uint32_t pid, uint64_t born_ns)
{
	struct process *older = process_find(h, pid), *p;

	if (older && !older->pub.end_ns)
		process_retire(h, older, born_ns ? born_ns : clock_mono_ns());
	if (h->process_count >= h->max_processes && h->retired) {
		if (h->retired == older)
			older = older->older;
		process_forget(h, h->retired);
	}
	if (h->process_count >= h->max_processes) {
		eviction_forget_processes(h, pid);
		older = process_find(h, pid);
	}
	if (h->process_count >= h->max_processes) {
		h->figures.limit++;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pub.id = ++h->next_process;
	p->pub.pid = pid;
	process_set_owner(h, p, (struct owner_key){ .uid = UINT32_MAX });
	p->born_ns = p->fork_ns = born_ns;
	p->threads = 1;
	p->older = older;
	if (older) {
		older->newer = p;
		HASH_DEL(h->by_pid, older);
	}
	HASH_ADD(hh, h->by_pid, pub.pid, sizeof(p->pub.pid), p);
	h->process_count++;
	h->living++;
	h->figures.processes_seen++;
	for (unsigned i = 0; i < h->self_count; i++) {
		if (h->self[i] == pid)
			p->pub.flags |= MSG_PROCESS_SELF;
	}
	return p;
}

struct process *admission_behind(struct host *h, struct process *last, uint64_t end_ns)
{
	struct process *p = h->process_count < h->max_processes ? calloc(1, sizeof(*p)) : NULL;

	if (!p) {
		h->figures.limit++;
		return NULL;
	}
	while (last->older)
		last = last->older;
	last->older = p;
	p->newer = last;
	p->pub.id = ++h->next_process;
	p->pub.pid = last->pub.pid;
	process_set_owner(h, p, last->pub.owner->key);
	h->process_count++;
	h->living++;
	h->figures.processes_seen++;
	process_retire(h, p, end_ns);
	return p;
}

/* Finds who is charged until its first sample. The owner of its folder is its effective user, or
 * root if it may not be dumped. Only for that, its status is read, unless too many of these were
 * slow. */
static void find_user(struct host *h, struct process *p)
{
	struct stat st;
	char name[16];
	uint32_t uid;

	snprintf(name, sizeof(name), "%u", p->pub.pid);
	if (fstatat(h->proc, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	uid = st.st_uid;
	if (uid == 0 && (p->pub.flags & MSG_PROCESS_KERNEL ||
			 statuses_read_uid(h, NULL, p->pub.pid, &uid) == 0))
		process_describe(h, p, uid);
	process_set_owner(h, p, (struct owner_key){ .uid = uid });
}

struct process *admission_running(struct host *h, uint32_t pid, bool selected)
{
	struct procfs_stat st;
	uint64_t now_ns = clock_mono_ns();

	if (procfs_read_thread_stat(h->proc, pid, &st) != 0 || st.state == 'X' ||
	    (st.state == 'Z' && st.threads <= 1))
		return NULL;
	struct process *p = admission_process(h, pid, 0);
	if (!p)
		return NULL;
	p->pub.parent_pid = st.parent_pid;
	p->pub.start_ns = st.start_ns;
	p->pub.selected = selected;
	p->pub.flags |= st.kernel ? MSG_PROCESS_KERNEL : 0;
	process_set_comm(&p->pub, st.comm, st.comm_len);
	p->threads = st.threads ? st.threads : 1;
	p->scanned_ns = p->counted_ns = now_ns;
	find_user(h, p);
	if (st.kernel)
		return p;
	if (mapping_turns_may(h, p->pub.owner, false, now_ns)) {
		reading_begin(h, p);
	} else {
		p->wants_maps = true;
		process_mark_dirty(h, p);
	}
	return p;
}

void admission_mapping(struct host *h, struct process *p, const struct map *m)
{
	if (!eviction_keep_mappings(h, p, 1)) {
		files_backing_put(m->backing);
		h->figures.limit++;
		owner_refuse(p->pub.owner, OWNER_MAPPINGS, 1);
		/* Its first sample may find room, and has all mappings read. */
		if (!p->sampled)
			eviction_drop_maps(h, p);
		return;
	}
	if (!p->maps)
		p->maps = maps_new();
	if (!p->maps) {
		files_backing_put(m->backing);
		reading_later(h, p, clock_mono_ns());
		return;
	}
	if (m->backing && !p->exe && m->backing->path)
		p->exe = files_backing_get(m->backing);
	if (maps_add(&p->maps, m) == -ENOMEM)
		reading_later(h, p, clock_mono_ns());
	if (p->maps->noted_len >= PROCESSES_NOTED_MAX && p->maps->noted_len >= p->maps->len / 2)
		process_settle(h, p);
	else
		maps_charge(p->maps, h->owners, p->pub.owner);
	process_mark_dirty(h, p);
}
