/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/definitions.h"

#include "tools/prof-bpf/owners/owners.h"

struct emit_file definition_of_file(struct host_file *f)
{
	return (struct emit_file){
		.def = { .id = f->id,
			 .dev = f->dev,
			 .inode = f->inode,
			 .ctime_ns = f->ctime_ns,
			 .size = f->size,
			 .path = { .data = f->path, .len = f->path_len },
			 .flags = f->flags,
			 .uid = f->flags & MSG_FILE_ROOT_ONLY ? 0
				: f->foreign_owner	      ? UINT32_MAX
							      : f->uid },
		.sent = &f->sent,
	};
}

struct emit_process definition_of_process(struct host_process *p, struct emit_file *exe)
{
	if (p->exe)
		*exe = definition_of_file(p->exe);
	return (struct emit_process){
		.def = { .id = p->id,
			 .pid = p->pid,
			 .parent_pid = p->parent_pid,
			 .start_ns = p->start_ns,
			 .execs = p->execs,
			 .comm = { .data = p->comm, .len = p->comm_len },
			 .exe = p->exe ? p->exe->id : 0,
			 .uid = p->uid,
			 .flags = p->flags,
			 .owner = p->owner ? owner_word(p->owner) : 0,
			 .cgroup = p->cgroup ? p->cgroup->id : 0,
			 .inner_pid = p->inner_pid,
			 .host_pid = p->host_pid },
		.sent = &p->sent,
		.generated = &p->generated_sent,
		.changed = &p->changed,
		.charged = &p->definitions_charged,
		.owner = p->owner,
		.cgroup = { .id = p->cgroup ? p->cgroup->id : 0,
			    .kernel_id = p->cgroup ? p->cgroup->kernel_id : 0,
			    .path = p->cgroup ? p->cgroup->path : (struct str){ 0 } },
		.cgroup_sent = p->cgroup ? &p->cgroup->sent : NULL,
		.exe = p->exe ? exe : NULL,
	};
}

struct emit_thread definition_of_thread(struct host_thread *t)
{
	return (struct emit_thread){
		.def = { .id = t->id,
			 .process = t->process->id,
			 .tid = t->tid,
			 .comm = { .data = t->comm, .len = t->comm_len },
			 .title = { .data = t->title, .len = t->title_len } },
		.sent = &t->sent,
	};
}
