/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw stream: turns samples of the kernel's program into messages. Everything that a message
 * names is defined before it, once per epoch. Frames and stacks are interned.
 *
 * The owner of processes, threads and files (host.c) makes their definitions. It also keeps a word
 * for each, in which this module marks that it was sent.
 */
#ifndef PROF_BPF_STREAM_EMIT_H
#define PROF_BPF_STREAM_EMIT_H

#include "bpf/sample.h"
#include "common/wire/msg.h"

struct emit;
struct owner;
struct owners;

/* An object and its mark. sent: borrowed, zero in a new object. */
struct emit_file {
	struct msg_file def;
	uint64_t *sent;
};
struct emit_process {
	struct msg_process def;
	uint64_t *sent, *generated;  /* marks of the process, and of its first generated code */
	bool *changed;		     /* differs from the sent definition: send it again */
	uint64_t *charged;	     /* what it and its threads cost the receiver, in this epoch */
	const struct emit_file *exe; /* def.exe is its id; NULL: unknown */
	struct msg_cgroup cgroup;    /* def.cgroup is its id */
	uint64_t *cgroup_sent;	     /* its mark; NULL: unknown */
	struct owner *owner; /* whom its definitions are charged to; borrowed; NULL: nobody */
};
struct emit_thread {
	struct msg_thread def;
	uint64_t *sent;
};

struct emit_config {
	struct msg_hello
		/* Schema and clocks are filled in. Its borrowed parts stay valid. */
		hello;
	size_t ceiling;	 /* bytes of interned frames and stacks before a new epoch begins */
	size_t receiver; /* the same of the receiver's tables (common/wire/epoch.h); 0: no end */
	struct owners *owners; /* the ledger; borrowed; NULL: none */
	int (*flush)(void *ctx, struct span batch);
	/* The file in a slot of the tables. False: it is gone. */
	bool (*file)(void *ctx, uint16_t slot, struct emit_file *ret);
	/* The kernel function that covers an address: its name, its module (empty for the kernel
	 * proper) and its start. False: unknown. */
	bool (*kernel)(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
		       uint64_t *ret_start);
	/* The runtime in a slot's file; NULL: none. Borrowed. */
	const struct runtime_config *(*runtime)(void *ctx, uint16_t slot);
	void *ctx;
};
int emit_new(const struct emit_config *c, struct emit **ret);
void emit_free(struct emit *e);
/* There is another receiver: begins a new epoch with a hello. */
int emit_restart(struct emit *e);
/* How many samples lost their user frames for lack of room, and a user whose samples did. */
struct emit_truncations {
	uint64_t samples;
	uint32_t uid;
};
struct emit_truncations emit_truncations(const struct emit *e);
/* Sends a sample with its process and thread. reason: why its walk ended. -errno of flush, -ENOMEM,
 * -E2BIG. */
int emit_sample(struct emit *e, const struct sample *s, uint32_t reason,
		const struct emit_process *p, const struct emit_thread *t);
/* Sends the memory of an object of a process. */
int emit_object(struct emit *e, const struct msg_object *o);
/* Defines a file before anything names it. */
int emit_file(struct emit *e, const struct emit_file *f);
/* Only if the file was defined in this epoch. */
int emit_file_end(struct emit *e, const struct emit_file *f);
/* Sends a process again that changed after its definition in this epoch. */
int emit_process(struct emit *e, const struct emit_process *p);
/* Only if the process was defined in this epoch. */
int emit_process_end(struct emit *e, const struct emit_process *p, uint64_t time_ns);
/* Only if the thread, of this process, was defined in this epoch. */
int emit_thread_end(struct emit *e, const struct emit_process *p, const struct emit_thread *t);
/* The process has mapped the file, at this address. Both are defined, unless they were. */
int emit_mapping(struct emit *e, const struct emit_process *p, const struct emit_file *f,
		 const struct msg_mapping *m);
/* A property of the process, which is defined, unless it was. */
int emit_attribute(struct emit *e, const struct emit_process *p, struct str key, struct str value);
/* The mark of what was sent in this epoch: other than in any other epoch. */
uint64_t emit_mark(const struct emit *e);
int emit_lost(struct emit *e, const struct msg_lost *lost);
int emit_figure(struct emit *e, const char *name, uint64_t value);
int emit_clock(struct emit *e);
int emit_end(struct emit *e, enum end_reason reason);
int emit_flush(struct emit *e);
/* Bytes of unflushed messages. */
size_t emit_packed(const struct emit *e);
/* Whether unflushed messages name something for the first time in this epoch that prof-symd must
 * request while it exists. This is a file, generated code of a process, or an interpreted frame. */
bool emit_urgent(const struct emit *e);

#endif
