/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of prof-symd: files of the stream, their debug files, perf maps and jitdumps, and memory
 * of interpreters. Also takes prof-symd's reports about which files contain a runtime.
 */
#ifndef PROF_BPF_PEERS_REQUESTS_H
#define PROF_BPF_PEERS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/wire/msg.h"

#define REQUESTS_UNKNOWN 8

struct requests_described;
struct file_server;
struct host;
struct jitfiles;
struct lastword;
struct loader;
struct offers;
struct parser_deaths;
struct workerpool;
struct tables;

struct requests {
	/* Borrowed. */
	struct file_server *file_server; /* takes the answers */
	struct host *host;
	struct jitfiles *jitfiles;
	struct workerpool *pool;
	struct loader *loader;
	struct tables *tables;
	struct offers *offers;
	struct parser_deaths *deaths;
	bool may_read_memory;
	/* Unknown builds of interpreters, so that each is logged once. */
	char unknown[REQUESTS_UNKNOWN][64];
	bool lie_logged; /* it was logged that prof-symd reported a runtime in a file that has
			  * none */
	/* prof-symd's reports about files that could not be checked yet, and when they were last
	 * tried. */
	struct requests_described *unmarked;
	uint64_t unmarked_ns;
	struct requests_described *unloaded; /* reports that wait for the runtime's programs */
	uint64_t refused; /* a bit for each runtime of which it was logged that it has no
			   * programs */
};

/* The callbacks of file_server.h; ctx is the struct requests. */
void requests_file(void *ctx, uint64_t ticket, const struct msg_file_request *m);
void requests_debug(void *ctx, uint64_t ticket, const struct msg_debug_request *m);
void requests_jit(void *ctx, uint64_t ticket, const struct msg_jit_request *m);
void requests_memory(void *ctx, uint64_t ticket, const struct msg_memory_request *m);
bool requests_runtime(void *ctx, const struct msg_runtime *m);
void requests_peer_died(void *ctx, const struct lastword *last);
/* Retries the files that could not be checked. */
void requests_tick(struct requests *r, uint64_t now_ns);
/* Continues after a runtime's programs were loaded, or could not be. */
void requests_loaded(struct requests *r);
/* Frees what the struct owns. */
void requests_done(struct requests *r);

#endif
