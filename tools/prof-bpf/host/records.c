/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes side-band records of processes.
 *
 * A reading of a process's /proc includes everything that earlier records tell, so those are
 * ignored (scanned_ns, counted_ns). Threads are counted so that the exit of a leader is not
 * mistaken for the end of its process. If the count may be wrong, /proc is read again a little
 * later.
 *
 * The kernel writes one false exit record. An exec that makes a process undumpable removes all
 * events of tasks from it, as if it exited (begin_new_exec in fs/exec.c). This happens for set-id
 * programs, programs with file capabilities, and those that their user may not read. The record
 * follows the exec's record directly.
 */
#include <string.h>
#include "common/base/system/procfs.h"
#include "common/wire/msg.h"
#include "tools/prof-bpf/host/admission.h"
#include "tools/prof-bpf/host/host.h"
#include "tools/prof-bpf/host/processes/entries.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/publish/reading.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/host/shares/places.h"
#include "tools/prof-bpf/kernel/sideband.h"

static void on_mmap(struct host *h, const struct sideband_event *e)
{
	struct process *p = process_find_alive(h, e->pid);
	struct str name = e->name;
	bool deleted;

	if (!p)
		return;
	p->just_execed = false;
	if (e->time_ns < p->scanned_ns || (p->pub.flags & MSG_PROCESS_KERNEL))
		return;
	enum procfs_name kind = procfs_name_kind(&name, &deleted);
	uint64_t end_addr;
	if (kind == PROCFS_VSYSCALL || __builtin_add_overflow(e->addr, e->length, &end_addr))
		return;
	struct map m = { .start = e->addr,
			 .end = end_addr,
			 .offset = kind == PROCFS_VDSO ? 0 : e->offset };
	struct files_backing_key key = { .dev = (uint64_t)e->dev_major << 32 | e->dev_minor,
					 .inode = e->inode,
					 .generation = e->inode_generation };

	const bool large = mapping_turns_large(p);

	if (!mapping_turns_may(h, p->pub.owner, large, e->time_ns)) {
		p->wants_maps = true;
		process_mark_dirty(h, p);
		return;
	}
	mapping_turns_spend(h, p->pub.owner, large, MAPPING_TURNS_RECORD_NS, e->time_ns);
	/* Ignore it: a JIT alternately makes the same pages writable and executable. */
	if ((kind != PROCFS_FILE || !e->inode) && kind != PROCFS_VDSO && p->maps && !p->reading &&
	    maps_has_anonymous(p->maps, m.start, m.end))
		return;
	m.backing = process_backing(h, p, &m, kind, key, name, deleted, e->time_ns);
	if (p->maps)
		process_note_displaced(p, p->maps, &m, e->time_ns, e->time_ns);
	reading_heard(p, &m, e->time_ns);
	admission_mapping(h, p, &m);
}

/* Drops what the kernel's hook copied for a process of which nothing else is known. A run for
 * selected programs keeps it, since it does not sample processes without an entry. */
static void drop_unknown(struct host *h, uint32_t pid)
{
	if (!h->config.only_selected)
		tables_process_drop(h->config.tables, pid);
}

static void on_fork(struct host *h, const struct sideband_event *e)
{
	/* If the parent has ended, an earlier process had the same pid. */
	struct process *parent = process_find_alive(h, e->parent_pid), *p = process_find(h, e->pid);

	if (e->pid == e->parent_pid) {
		if (p && !p->pub.end_ns && e->time_ns >= p->counted_ns)
			p->threads++;
		return;
	}
	if (p && !p->pub.end_ns && (e->time_ns < p->scanned_ns || e->time_ns < p->born_ns))
		return;
	const bool all = !h->config.only_selected && !h->config.is_wanted,
		   follows = h->config.follow_forks || h->config.is_wanted;
	const bool selected = all || (parent && parent->pub.selected && follows);
	if (!selected)
		return;
	p = admission_process(h, e->pid, e->time_ns);
	if (!p) {
		drop_unknown(h, e->pid);
		return;
	}
	/* admission_process may have forgotten the parent. */
	parent = process_find_alive(h, e->parent_pid);
	p->pub.parent_pid = e->parent_pid;
	p->pub.selected = true;
	/* The host may have been suspended since the last tick. */
	bootclock_read(&h->boot);
	uint64_t at = bootclock_at(&h->boot, e->time_ns, &p->vague_ns);
	p->pub.start_ns = at - at % SAMPLE_START_TICK_NS;
	p->start_guessed = true;
	if (!parent) {
		/* The parent may have had an entry when it forked. */
		drop_unknown(h, e->pid);
		/* A selected process needs an entry to be sampled. */
		p->wants_maps = h->config.only_selected;
		p->dropped = !p->wants_maps;
		process_mark_dirty(h, p);
		return;
	}
	p->pub.uid = parent->pub.uid;
	process_set_owner(h, p, parent->pub.owner->key);
	p->pub.flags |= parent->pub.flags & MSG_PROCESS_KERNEL;
	memcpy(p->pub.comm, parent->pub.comm, sizeof(p->pub.comm));
	p->pub.comm_len = parent->pub.comm_len;
	/* The kernel's hook gave the child its parent's mappings, if there was a place. */
	p->pub.first_generation = parent->pub.first_generation;
	p->pub.last_generation = parent->pub.last_generation;
	p->entered = parent->pub.last_generation && places_has_entry(h, e->pid);
	process_charge_entry(h, p);
	if (!displaced_copy(parent->displaced, &p->displaced))
		process_forget_generations(p, p->pub.last_generation);
	p->exe = files_backing_get(parent->exe);
	p->dropped = parent->dropped;
	p->wants_maps = parent->wants_maps || parent->reading ||
			(!parent->maps && !parent->dropped &&
			 !(parent->pub.flags & MSG_PROCESS_KERNEL));
	if (parent->maps)
		p->maps = maps_get(parent->maps);
	if (p->dropped)
		entry_drop(h, p);
	process_mark_dirty(h, p);
}

static void on_exec(struct host *h, const struct sideband_event *e)
{
	struct process *old = process_find_alive(h, e->pid);
	const struct host_config *c = &h->config;
	const bool wanted = !c->is_wanted || c->is_wanted(c->ctx, e->pid, e->time_ns);

	if (!old) {
		/* Only for a process that was not wanted before its exec. */
		if (c->is_wanted && wanted)
			(void)admission_running(h, e->pid, true);
		return;
	}
	old->just_execed = true;
	if (e->time_ns < old->scanned_ns)
		return;
	if (!wanted) {
		old->unwanted = true;
		process_end(h, old, e->time_ns);
		return;
	}
	/* Copy what is needed: admission_process may forget the object. */
	struct host_process was = old->pub;
	const struct owner_key owner = old->pub.owner->key;
	bool guessed = old->start_guessed, entered = old->entered || was.generation;
	uint64_t fork_ns = old->fork_ns;
	struct process *p = admission_process(h, e->pid, e->time_ns);
	if (!p) {
		tables_process_drop(h->config.tables, e->pid);
		return;
	}
	p->just_execed = true;
	p->pub.parent_pid = was.parent_pid;
	p->pub.uid = was.uid;
	process_set_owner(h, p, owner);
	p->pub.execs = was.execs + 1;
	p->pub.start_ns = was.start_ns;
	p->pub.selected = was.selected;
	p->start_guessed = guessed;
	p->entered = entered;
	process_charge_entry(h, p);
	p->fork_ns = fork_ns;
	process_set_comm(&p->pub, e->name.data, e->name.len);
	h->figures.processes_seen--;
	h->figures.execs_seen++;
	process_mark_dirty(h, p);
}

static void on_exit_record(struct host *h, const struct sideband_event *e)
{
	struct process *p = process_find_alive(h, e->pid);
	struct process_thread *t;

	/* Of a process whose fork was lost or refused. If only some processes are wanted, nearly
	 * all are unknown, and have no entry; places.h finds the others. */
	if (!p && e->tid == e->pid && !h->config.is_wanted)
		drop_unknown(h, e->pid);
	if (!p || e->time_ns < p->born_ns)
		return;
	struct {
		uint32_t process, tid;
	} key = { .process = p->pub.id, .tid = e->tid };
	HASH_FIND(hh, h->threads, &key, sizeof(key), t);
	if (t)
		t->end_ns = e->time_ns;
	/* The leader's exit right after an exec is the false record, unless the process was killed
	 * during the exec. A real exit record comes before /proc shows the exit, so check later. */
	const bool of_exec = p->just_execed && e->tid == e->pid;

	p->just_execed = false;
	if (of_exec || e->time_ns < p->counted_ns) {
		if (e->tid == e->pid)
			process_lacks_leader(h, p, e->time_ns);
		return;
	}
	if (p->threads)
		p->threads--;
	if (!p->threads && (e->tid == e->pid || p->leader_gone)) {
		process_end(h, p, e->time_ns);
	} else if (e->tid == e->pid || p->leader_gone) {
		process_lacks_leader(h, p, e->time_ns);
	} else if (!p->threads) {
		/* The leader is alive, so the count of threads was too low. */
		p->threads = 1;
	}
}

void host_event(struct host *h, const struct sideband_event *e)
{
	struct process *p;

	/* Processes outside of our pid namespace have no number here. */
	if ((e->pid == 0 || e->pid == UINT32_MAX) && e->type <= SIDEBAND_EXIT)
		return;
	switch (e->type) {
	case SIDEBAND_MMAP:
		on_mmap(h, e);
		break;
	case SIDEBAND_FORK:
		on_fork(h, e);
		break;
	case SIDEBAND_EXIT:
		on_exit_record(h, e);
		break;
	case SIDEBAND_COMM:
		p = process_find_alive(h, e->pid);
		if (e->exec)
			on_exec(h, e);
		else if (p && e->tid == e->pid && e->time_ns >= p->scanned_ns)
			process_set_comm(&p->pub, e->name.data, e->name.len);
		break;
	case SIDEBAND_LOST:
		h->resync = true;
		break;
	case SIDEBAND_KSYMBOL:
	case SIDEBAND_THROTTLE:
		break;
	}
}
