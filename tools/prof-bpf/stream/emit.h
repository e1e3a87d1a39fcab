/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The raw stream: from samples as the kernel's program wrote them to messages. What a message names
 * is defined before it, once an epoch; frames and stacks are interned.
 *
 * Definitions of processes, threads and files are made by whoever keeps them (host.c), which also
 * keeps for each a word in which this marks that it was sent.
 */
#ifndef PROFPIPE_EMIT_H
#define PROFPIPE_EMIT_H

#include "bpf/sample.h"
#include "common/wire/msg.h"

struct emit;

/* A thing and its mark. sent: borrowed, zero in a new thing. */
struct emit_file {
	struct msg_file def;
	uint64_t *sent;
};
struct emit_process {
	struct msg_process def;
	uint64_t *sent, *generated;  /* of the process, and of its first generated code */
	bool *changed;		     /* it differs from what was sent: it is sent again */
	const struct emit_file *exe; /* whose id def.exe is; NULL: unknown */
};
struct emit_thread {
	struct msg_thread def;
	uint64_t *sent;
};

struct emit_config {
	struct msg_hello
		hello;	/* schema and clocks are filled in; what it borrows holds for good */
	size_t ceiling; /* of interned frames and stacks, in bytes: then a new epoch begins */
	int (*flush)(void *ctx, struct span batch);
	/* The file in a slot of the tables. False: none any more. */
	bool (*file)(void *ctx, uint16_t slot, struct emit_file *ret);
	/* The kernel function that covers an address: its name and module (empty for the kernel
	 * proper) and start. False: unknown. */
	bool (*kernel)(void *ctx, uint64_t address, struct str *ret_name, struct str *ret_module,
		       uint64_t *ret_start);
	/* The runtime that a slot's file holds; NULL: none. Borrowed. */
	const struct runtime_config *(*runtime)(void *ctx, uint16_t slot);
	void *ctx;
};
int emit_new(const struct emit_config *c, struct emit **ret);
void emit_free(struct emit *e);
/* Another receiver: a new epoch, from the hello on. */
int emit_restart(struct emit *e);
/* A sample and whose it is; reason: why its walk ended. -errno of flush, -ENOMEM, -E2BIG. */
int emit_sample(struct emit *e, const struct sample *s, uint32_t reason,
		const struct emit_process *p, const struct emit_thread *t);
/* What was in memory at an object of a process. */
int emit_object(struct emit *e, const struct msg_object *o);
/* Defines a file before anything names it. */
int emit_file(struct emit *e, const struct emit_file *f);
/* Sends a process again that changed after it was defined in this epoch. */
int emit_process(struct emit *e, const struct emit_process *p);
/* Only if the process was defined in this epoch. */
int emit_process_end(struct emit *e, const struct emit_process *p, uint64_t time_ns);
int emit_lost(struct emit *e, enum lost_reason reason, uint64_t count, uint64_t cpu);
int emit_figure(struct emit *e, const char *name, uint64_t value);
int emit_clock(struct emit *e);
int emit_end(struct emit *e, enum end_reason reason);
int emit_flush(struct emit *e);
/* What was not flushed yet names something that prof-symd has to ask for while it can be had, for
 * the first time in this epoch: a file, generated code of a process, or an interpreted frame. */
bool emit_urgent(const struct emit *e);

#endif
