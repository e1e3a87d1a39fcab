/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What prof-symd asks for: files of the stream, their debug files, what processes write about the
 * code that they generate, and memory of interpreters. And what it says of files: which runtime
 * they hold.
 */
#ifndef PROFPIPE_REQUESTS_H
#define PROFPIPE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/wire/msg.h"

#define REQUESTS_UNKNOWN 8

struct described;
struct filesrv;
struct host;
struct jitfiles;
struct lastword;
struct loader;
struct offers;
struct parser_deaths;
struct reader;
struct tables;

struct requests {
	/* Borrowed. */
	struct filesrv *filesrv; /* takes the answers */
	struct host *host;
	struct jitfiles *jitfiles;
	struct reader *reader;
	struct loader *loader;
	struct tables *tables;
	struct offers *offers;
	struct parser_deaths *deaths;
	bool may_read_memory;
	/* Builds of interpreters that nobody knows: each is logged once. */
	char unknown[REQUESTS_UNKNOWN][64];
	bool lie_logged; /* prof-symd took a file for what it is not */
	/* What prof-symd said of files that could not be looked at, and when they were tried last.
	 */
	struct described *unmarked;
	uint64_t unmarked_ns;
};

/* The callbacks of filesrv.h; ctx is the struct requests. */
void requests_file(void *ctx, uint64_t ticket, const struct msg_file_request *m);
void requests_debug(void *ctx, uint64_t ticket, const struct msg_debug_request *m);
void requests_jit(void *ctx, uint64_t ticket, const struct msg_jit_request *m);
void requests_memory(void *ctx, uint64_t ticket, const struct msg_memory_request *m);
bool requests_runtime(void *ctx, const struct msg_runtime *m);
void requests_peer_died(void *ctx, const struct lastword *last);
/* Looks at files again that could not be looked at. */
void requests_tick(struct requests *r, uint64_t now_ns);
/* Frees what it owns. */
void requests_done(struct requests *r);

#endif
