/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: the structs, encoder and decoder that messages.def defines.
 *
 * Source: the msgpack specification; a message is a 2-array of a positive integer and an array of
 * fields.
 */
#ifndef COMMON_WIRE_MSG_H
#define COMMON_WIRE_MSG_H

#include <stdio.h>
#include "bpf/reasons.h"
#include "common/base/bytes/buf.h"
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

struct msg_list {
	const uint64_t *data; /* borrowed */
	uint32_t len;
};

#define MSG_BEGIN(NAME, name, id, way) struct msg_##name {
#define U64(field) uint64_t field;
#define STR(field, max) struct str field;
#define BIN(field, max) struct span field;
#define LIST(field, max) struct msg_list field;
#define MSG_END(name) \
	} \
	;
#include "common/wire/messages.def"

enum msg_id {
#define MSG_BEGIN(NAME, name, id, way) MSG_##NAME = id,
#define U64(field)
#define STR(field, max)
#define BIN(field, max)
#define LIST(field, max)
#define MSG_END(name)
#include "common/wire/messages.def"
};

/* The sender and the receiver of a message. The last column of messages.def says it for each
 * message; busroute.c lists them for each route. */
enum msg_way {
	MSG_NO_WAY = 0,
	MSG_BPF_TO_DELTAS = 1,
	MSG_DELTAS_TO_BPF = 2,
	MSG_BPF_TO_SYMD = 4, /* on the files route, besides the raw stream */
	MSG_SYMD_TO_BPF = 8,
	MSG_RAW_STREAM = 16,   /* prof-bpf to prof-symd */
	MSG_NAMED_STREAM = 32, /* prof-symd to prof-export */
	MSG_STREAMS = MSG_RAW_STREAM | MSG_NAMED_STREAM,
	MSG_EXPORT_TO_SEND = 64, /* finished requests */
	MSG_ENDINGS = MSG_STREAMS | MSG_EXPORT_TO_SEND,
	MSG_EVERY_WAY = 127,
};

/* One message of any kind. */
struct msg {
	enum msg_id id;
	union {
#define MSG_BEGIN(NAME, name, id, way) struct msg_##name name;
#define U64(field)
#define STR(field, max)
#define BIN(field, max)
#define LIST(field, max)
#define MSG_END(name)
#include "common/wire/messages.def"
	};
};

enum msg_stream_kind { MSG_STREAM_RAW = 0, MSG_STREAM_NAMED = 1 };
enum msg_process_flags { MSG_PROCESS_KERNEL = 1, MSG_PROCESS_SELF = 2 /* a process of profpipe */ };
enum msg_source_kind {
	MSG_SOURCE_OTHER = 0,
	MSG_SOURCE_CPU = 1,
	MSG_SOURCE_EVENTS = 2, /* of the cpu */
	MSG_SOURCE_OFF_CPU = 3,
	MSG_SOURCE_MEMORY = 4,
	MSG_SOURCE_LOCKS = 5,
};
enum msg_file_flags {
	MSG_FILE_DELETED = 1,
	MSG_FILE_MEMFD = 2,
	MSG_FILE_VDSO = 4,
	MSG_FILE_ROOT_ONLY = 8, /* only the host's root could have written it */
	/* Its name is like an interpreter's: inspect it before its frames come. */
	MSG_FILE_OFFERED = 16,
};
enum msg_frame_kind {
	MSG_FRAME_NATIVE = 0,
	MSG_FRAME_KERNEL = 1,
	MSG_FRAME_INTERPRETED = 2,
	MSG_FRAME_KIND_MAX = 253,
};
/* Stores a kind in one byte. Unknown kinds of a newer sender keep their number. */
static inline uint8_t msg_frame_kind(uint64_t kind)
{
	return (uint8_t)(kind < MSG_FRAME_KIND_MAX ? kind : MSG_FRAME_KIND_MAX);
}
enum msg_frame_flags {
	/* offset is the pc itself, not a return address: look up offset, not offset - 1. */
	MSG_FRAME_LEAF = 1,
	MSG_FRAME_BY_FP = 2,  /* found by frame pointer, because rows are missing */
	MSG_FRAME_SIGNAL = 4, /* a signal interrupted it: offset is the pc itself */
	/* In an interpreter's own loop, which runs the interpreted frame after it. */
	MSG_FRAME_LOOP = 8,
	/* It has no name, for a reason of enum unnamed_reason: SLOW, MEMORY_LIMIT, NO_FILE, or,
	 * of interpreted code, GONE. */
	MSG_FRAME_UNNAMED_SLOW = 16,
	MSG_FRAME_UNNAMED_MEMORY = 32,
	MSG_FRAME_UNNAMED_FILE = 64,
	MSG_FRAME_UNNAMED_GONE = 128,
};
enum msg_rows_status {
	MSG_ROWS_OK = 0,
	MSG_ROWS_NOT_ELF = 1,
	MSG_ROWS_UNSUPPORTED = 2,
	MSG_ROWS_MALFORMED = 3,
	MSG_ROWS_TOO_LARGE = 4,
	MSG_ROWS_NONE = 5,
	MSG_ROWS_UNREADABLE = 6,
	MSG_ROWS_LATER = 7
};
enum msg_end_reason {
	MSG_END_DONE = 0,
	MSG_END_KILLED = 1 /* the sender was told to stop */,
	MSG_END_FAILED = 2,
	MSG_END_PEER_LOST = 3
};
enum msg_jit_kind {
	/* /tmp/perf-PID.map in the process's root; PID is its innermost pid */
	MSG_JIT_PERF_MAP = 0,
	MSG_JIT_DUMP = 1, /* the jitdump that the process has mapped */
	MSG_JIT_KINDS
};
#define MSG_LOST_ANY_CPU UINT64_MAX

/* hello.schema: increased only when a reader of the previous number would misunderstand a stream.
 * New messages, and new fields at the end of messages, do not change it. */
#define MSG_SCHEMA 1u

/* Whether this build can read a stream with this number in its hello. */
bool msg_reads(uint64_t schema);

/* hello.build: a hash of our version and of the table's names, ids, types, limits and order. Tools
 * of one run also exchange raw structs, so a peer with another hash is refused. */
uint64_t msg_build(void);

/* Whether the message may travel one of these ways. */
bool msg_travels(enum msg_id id, enum msg_way way);

/* Appends m, without empty fields at its end. Truncates too long strings at a UTF-8 boundary.
 * Returns 0, -ENOBUFS, -ENOMEM, or -E2BIG if a list or binary is too long. On error b is
 * unchanged. */
int msg_encode(struct buf *b, const struct msg *m);

/* The lists of one decoded message, until the next one reuses the memory. Zero-initialise;
 * msg_scratch_done frees. */
struct msg_scratch {
	uint64_t *data;
	size_t len, cap;
	uint64_t skipped; /* fields of the message decoded last that this build does not know */
};
void msg_scratch_done(struct msg_scratch *s);

enum msg_verdict {
	MSG_SHORT = 1,	   /* the beginning of a message: needs more bytes */
	MSG_MALFORMED = 2, /* not a message, or beyond a limit of the table */
	MSG_UNKNOWN = 3,   /* well-formed, but with an unknown id; `in` is past it */
};
/* Takes one message from `in`. Its strings borrow bytes of `in`; its lists borrow the scratch until
 * its next use. Returns 0, enum msg_verdict or -ENOMEM. It allocates no more than the table
 * allows, and reads only `in`. Additional fields may be any values; lists and maps nest at most 16
 * deep in them. */
int msg_decode(struct span *in, struct msg_scratch *scratch, struct msg *ret);

/* The largest message that the table allows, in bytes. */
#define MSG_MAX_SIZE (1u << 20 | 4096)

#endif
