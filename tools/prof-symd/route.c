/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/route.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEBUG_NAME 255 /* as in messages.def */

/* Puts a message, and flushes. If the route is full, the message stays packed and goes with a later
 * flush: it counts as sent. Returns -EAGAIN only if it could not be put. */
static int put(struct route *to, const struct msg *m)
{
	int r = peer_put(to->files, m);

	if (r)
		return r;
	r = peer_flush(to->files);
	return r == -EAGAIN ? 0 : r;
}

/* Returns the name of the .dwp file beside a program; empty if it is unknown or too long. */
static struct str package_name(const struct route *to, uint64_t file,
			       char into[static MAX_DEBUG_NAME + 1])
{
	struct msg_file f;

	if (!namer_file(to->namer, file, &f) || !f.path.len)
		return (struct str){ 0 };
	const char *slash = memrchr(f.path.data, '/', f.path.len);
	const char *own = slash ? slash + 1 : f.path.data;
	const int n = snprintf(into, MAX_DEBUG_NAME + 1, "%.*s.dwp",
			       (int)(f.path.data + f.path.len - own), own);

	return n > 0 && n <= MAX_DEBUG_NAME ? str_from(into) : (struct str){ 0 };
}

int route_ask_file(void *ctx, const struct filestore_request *rq)
{
	struct route *to = ctx;
	char name[MAX_DEBUG_NAME + 1];
	struct msg m;

	switch (rq->want) {
	case PROGRAM_WANTS_NOTHING:
		m = (struct msg){ .id = MSG_FILE_REQUEST,
				  .file_request = { .id = rq->id, .file = rq->file->file } };
		break;
	case PROGRAM_WANTS_PACKAGE:
		m = (struct msg){ .id = MSG_DEBUG_REQUEST,
				  .debug_request = {
					  .id = rq->id,
					  .file = rq->file->file,
					  .name = package_name(to, rq->file->file, name) } };
		if (!m.debug_request.name.len)
			return -ENOENT;
		break;
	case PROGRAM_WANTS_BUILD_ID:
	case PROGRAM_WANTS_ALT:
		/* PROGRAM_WANTS_ALT also has a path. */
		m = (struct msg){ .id = MSG_DEBUG_REQUEST,
				  .debug_request = { .id = rq->id,
						     .file = rq->file->file,
						     .build_id = rq->build_id } };
		if (rq->name && strlen(rq->name) <= MAX_DEBUG_NAME)
			m.debug_request.name = str_from(rq->name);
		break;
	default:
		m = (struct msg){ .id = MSG_DEBUG_REQUEST,
				  .debug_request = { .id = rq->id,
						     .file = rq->file->file,
						     .name = str_from(rq->name) } };
		break;
	}
	if (m.id == MSG_DEBUG_REQUEST)
		m.debug_request.place = rq->place;
	return put(to, &m);
}

int route_ask_jit(void *ctx, const struct jit_request *rq)
{
	struct route *to = ctx;

	return put(to, &(struct msg){ .id = MSG_JIT_REQUEST,
				      .jit_request = { .id = rq->id,
						       .process = rq->process,
						       .pid = rq->pid,
						       .kind = rq->kind } });
}

int route_ask_memory(void *ctx, const struct objects_request *rq)
{
	struct route *to = ctx;

	return put(to, &(struct msg){ .id = MSG_MEMORY_REQUEST,
				      .memory_request = { .id = rq->id,
							  .process = rq->process,
							  .pid = rq->pid,
							  .addresses = rq->addresses,
							  .lengths = rq->lengths } });
}

int route_tell_runtime(void *ctx, uint64_t file, const struct runtime_build *b)
{
	struct route *to = ctx;
	struct msg m = { .id = MSG_RUNTIME, .runtime.file = file };

	if (b) {
		m.runtime.name = str_from(b->name);
		m.runtime.mark = b->mark;
	}
	if (b && b->known)
		m.runtime.config = (struct span){ .data = (const uint8_t *)&b->config,
						  .len = sizeof(b->config) };
	return put(to, &m);
}
