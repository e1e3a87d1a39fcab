/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between prof-bpf and its workers (worker.h). Both are the same program, so these are
 * plain structs. A request is a struct work and its bytes. Its answer is one or more messages of
 * struct work_answer and bytes; `last` marks the final one. After a slow request, WORK_READY
 * follows once the worker has closed what it opened.
 */
#ifndef PROF_BPF_OPEN_WORKERS_WORK_H
#define PROF_BPF_OPEN_WORKERS_WORK_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-bpf/open/opening/opening.h"

#define WORK_BYTES (32u << 10) /* limit of the bytes after a struct */
#define WORK_PIECES 256

enum work_kind { WORK_OPEN, WORK_READ, WORK_MAPS, WORK_ENVIRONMENT };

struct work {
	enum work_kind kind;
	bool slow; /* the request may hang */
	/* WORK_OPEN. The bytes are path, name and build id; the pointers in q are not valid. The
	 * folder's descriptor is sent with the message. */
	struct opener_request q;
	uint64_t granted[OPENING_GRANTS];
	uint32_t grants;
	bool may_copy;
	uint64_t copy_max;
	/* WORK_READ: of a process, or of the file whose descriptor is sent with the message (pid
	 * 0). The bytes are the addresses of the pieces, then their lengths. WORK_MAPS: of a
	 * process; at most `mappings` of them. No bytes. */
	uint32_t pid, pieces;
	uint32_t mappings;
	/* WORK_ENVIRONMENT: of a process. The bytes are the names of this many variables, each with
	 * a NUL. */
	uint32_t names;
	bool command_line;
};

/* A mapping, followed by its name. */
struct work_mapping {
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
	uint16_t name_len;
	uint8_t kind; /* enum procfs_name */
	bool deleted;
};

enum work_answer_kind { WORK_ANSWER, WORK_READY };

struct work_answer {
	enum work_answer_kind kind;
	bool last;
	int status; /* status of opener_result, reader_result, or mapreader_request.done */
	/* WORK_OPEN: with up to two descriptors, that of the result and a copy's probe. */
	struct opener_file file;
	uint32_t place;
	uint64_t copy_bytes;
	/* WORK_READ: the bytes are the lengths, in the first message, then what was read.
	 * WORK_ENVIRONMENT: the bytes are values, as of environment_next. */
	uint32_t exe_mode;
	bool exe_same;	 /* the process ran the same program before and after */
	uint64_t cpu_ns; /* WORK_OPEN and WORK_MAPS: the worker's cpu time for the whole request */
			 /* WORK_MAPS: the bytes are whole mappings. */
};

#endif
