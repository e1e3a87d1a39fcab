/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw stream: turns samples of the kernel's program into messages. Everything that a message
 * refers to is defined before it, once per epoch. Frames and stacks are interned.
 *
 * The owner of processes, threads and files (host.c) provides their definitions. It also keeps a
 * word for each, in which this module marks that it was sent.
 */
#ifndef PROF_BPF_STREAM_EMIT_H
#define PROF_BPF_STREAM_EMIT_H

#include "bpf/sample.h"
#include "common/wire/msg.h"

struct emit;
struct owner;
struct owners;

/* An object and its mark. sent is borrowed, and zero in a new object. */
struct emit_file {
	struct msg_file def;
	uint64_t *sent;
};
struct emit_process {
	struct msg_process def;
	uint64_t *sent, *generated;  /* marks: of the process, and of its first generated code */
	bool *changed;		     /* set if the process differs from the sent definition, which
				      * is then sent again */
	uint64_t *charged;	     /* the receiver's cost of it and its threads in this epoch */
	const struct emit_file *exe; /* def.exe is its id; NULL: unknown */
	struct msg_cgroup cgroup;    /* def.cgroup is its id */
	uint64_t *cgroup_sent;	     /* its mark; NULL: the cgroup is unknown */
	struct owner *owner; /* the owner charged for its definitions; borrowed; NULL: none */
};
struct emit_thread {
	struct msg_thread def;
	uint64_t *sent;
};

struct emit_config {
	struct msg_hello
		/* Schema and clocks are filled in here. Its borrowed parts must stay valid. */
		hello;
	size_t ceiling;	 /* limit of bytes of interned frames and stacks; beyond it a new epoch
			  * begins */
	size_t receiver; /* likewise, for the receiver's tables (common/wire/epoch.h); 0: no
			  * limit */
	struct owners *owners; /* the ledger, borrowed; NULL: none */
	int (*flush)(void *ctx, struct span batch);
	/* Gives the file in a slot of the tables. Returns false if it is gone. */
	bool (*file)(void *ctx, uint16_t slot, struct emit_file *ret);
	/* Gives the kernel function that covers an address: its name, its module (empty for the
	 * kernel proper) and its start. Returns false if it is unknown. */
	bool (*kernel)(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
		       uint64_t *ret_start);
	/* Returns the runtime in a slot's file, borrowed; NULL: none. */
	const struct runtime_config *(*runtime)(void *ctx, uint16_t slot);
	void *ctx;
};
int emit_new(const struct emit_config *c, struct emit **ret);
void emit_free(struct emit *e);
/* Begins a new epoch with a hello, because there is another receiver. */
int emit_restart(struct emit *e);
/* How many samples lost their user frames because definitions did not fit, and a user of such
 * samples. */
struct emit_truncations {
	uint64_t samples;
	uint32_t uid;
};
struct emit_truncations emit_truncations(const struct emit *e);
/* Sends a sample with its process and thread. reason: why its walk ended. Returns 0, -errno of
 * flush, -ENOMEM or -E2BIG. */
int emit_sample(struct emit *e, const struct sample *s, uint32_t reason,
		const struct emit_process *p, const struct emit_thread *t);
/* Sends the memory of an object of a process. */
int emit_object(struct emit *e, const struct msg_object *o);
/* Defines a file before any message refers to it. */
int emit_file(struct emit *e, const struct emit_file *f);
/* Sends the end of a file, if the file was defined in this epoch. */
int emit_file_end(struct emit *e, const struct emit_file *f);
/* Sends a process again that changed after its definition in this epoch. */
int emit_process(struct emit *e, const struct emit_process *p);
/* Sends the end of a process, if the process was defined in this epoch. */
int emit_process_end(struct emit *e, const struct emit_process *p, uint64_t time_ns);
/* Sends the end of a thread of this process, if the thread was defined in this epoch. */
int emit_thread_end(struct emit *e, const struct emit_process *p, const struct emit_thread *t);
/* Sends where the process has mapped the file. Defines both, unless they are defined. */
int emit_mapping(struct emit *e, const struct emit_process *p, const struct emit_file *f,
		 const struct msg_mapping *m);
/* Sends an attribute of the process. Defines the process, unless it is defined. */
int emit_attribute(struct emit *e, const struct emit_process *p, struct str key, struct str value);
/* Returns the mark of what was sent in this epoch. It differs from those of all other epochs. */
uint64_t emit_mark(const struct emit *e);
int emit_lost(struct emit *e, const struct msg_lost *lost);
int emit_figure(struct emit *e, const char *name, uint64_t value);
int emit_clock(struct emit *e);
int emit_end(struct emit *e, enum msg_end_reason reason);
int emit_flush(struct emit *e);
/* Returns the bytes of messages that are not flushed yet. */
size_t emit_packed(const struct emit *e);
/* Whether messages that are not flushed yet refer to something for the first time in this epoch
 * that prof-symd must request while it exists: a file, generated code of a process, or an
 * interpreted frame. */
bool emit_urgent(const struct emit *e);

#endif
