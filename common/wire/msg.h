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

enum stream_kind { STREAM_RAW = 0, STREAM_NAMED = 1 };
enum process_flags { PROCESS_KERNEL = 1, PROCESS_SELF = 2 /* a process of profpipe */ };
enum source_kind {
	SOURCE_OTHER = 0,
	SOURCE_CPU = 1,
	SOURCE_EVENTS = 2, /* of the cpu */
	SOURCE_OFF_CPU = 3,
	SOURCE_MEMORY = 4,
	SOURCE_LOCKS = 5,
};
enum file_flags {
	FILE_DELETED = 1,
	FILE_MEMFD = 2,
	FILE_VDSO = 4,
	FILE_ROOT_ONLY = 8, /* only root could have written it */
	/* Its name is like an interpreter's: inspect it before its frames come. */
	FILE_OFFERED = 16,
};
enum frame_kind {
	FRAME_NATIVE = 0,
	FRAME_KERNEL = 1,
	FRAME_INTERPRETED = 2,
	FRAME_KIND_MAX = 253,
};
/* Stores a kind in one byte. Unknown kinds of a newer sender keep their number. */
static inline uint8_t msg_frame_kind(uint64_t kind)
{
	return (uint8_t)(kind < FRAME_KIND_MAX ? kind : FRAME_KIND_MAX);
}
enum frame_flags {
	/* offset is the pc itself, not a return address: look up offset, not offset - 1. */
	FRAME_LEAF = 1,
	FRAME_BY_FP = 2,  /* found by frame pointer, because rows are missing */
	FRAME_SIGNAL = 4, /* a signal interrupted it: offset is the pc itself */
	/* In an interpreter's own loop, which runs the interpreted frame after it. */
	FRAME_LOOP = 8,
	/* It has no name, for a reason of enum unnamed_reason: SLOW, or MEMORY_LIMIT. */
	FRAME_UNNAMED_SLOW = 16,
	FRAME_UNNAMED_MEMORY = 32,
};
enum rows_status {
	ROWS_OK = 0,
	ROWS_NOT_ELF = 1,
	ROWS_UNSUPPORTED = 2,
	ROWS_MALFORMED = 3,
	ROWS_TOO_LARGE = 4,
	ROWS_NONE = 5,
	ROWS_UNREADABLE = 6,
	ROWS_LATER = 7
};
enum end_reason {
	END_DONE = 0,
	END_KILLED = 1 /* the sender was told to stop */,
	END_FAILED = 2,
	END_PEER_LOST = 3
};
enum jit_kind {
	JIT_PERF_MAP = 0, /* /tmp/perf-PID.map in the process's root; PID is its innermost pid */
	JIT_DUMP = 1,	  /* the jitdump that the process has mapped */
	JIT_KINDS
};
#define LOST_ANY_CPU UINT64_MAX

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
 * its next use. Returns 0, enum msg_verdict or -ENOMEM. It allocates and nests no more than the
 * table allows, and reads only `in`. */
int msg_decode(struct span *in, struct msg_scratch *scratch, struct msg *ret);

/* The largest message that the table allows, in bytes. */
#define MSG_MAX_SIZE (1u << 20 | 4096)

#endif
