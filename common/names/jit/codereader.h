/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map or jitdump of a process. A worker process (codeworker.h) reads it and answers which
 * code was at an address. There are two workers: one for files that only root could have written,
 * one for all others. Without a keeper (filekeeper.h), the files are read in this process.
 *
 * - If the worker crashes on a file, takes too long for it or sends an invalid answer, that file is
 *   lost. If another process killed the worker, the file is tried once more.
 * - The next worker reads all other files again. The more often workers of a class die, the longer
 *   the wait before the next one starts.
 */
#ifndef COMMON_NAMES_JIT_CODEREADER_H
#define COMMON_NAMES_JIT_CODEREADER_H

#include "common/names/jit/codefile.h"
#include "common/names/jit/codewire.h"

#define CODEREADER_BATCH CODEWIRE_BATCH	     /* addresses of one lookup: it is one message */
#define CODEREADER_PATIENCE_NS 3000000000ull /* for an answer */
#define CODEREADER_REST_NS 250000000ull	     /* wait after a death; doubled with each further one */
#define CODEREADER_REST_MAX_NS 16000000000ull
/* Time without a death after which the wait is reset. */
#define CODEREADER_FORGIVE_NS 60000000000ull

struct codereader;

enum codereader_verdict {
	CODEREADER_ANEW = 1,  /* the next worker has to read it from its beginning first */
	CODEREADER_LOST = 2,  /* its names are lost permanently */
	CODEREADER_LATER = 3, /* there is no worker now */
};

/* Uses workers of the keeper (filekeeper_use). heap: bytes of private memory that each may use. */
void codereader_use_workers(uint64_t heap);

/* Takes fd, also on error. max: bytes of memory. 0, -ENOMEM, -EMFILE. */
int codereader_open(int fd, enum jit_kind kind, size_t max, struct codereader **ret);
void codereader_free(struct codereader *c);
/* The size of the file now; UINT64_MAX: unknown. */
uint64_t codereader_file_size(const struct codereader *c);
/* As codefile_read, or a verdict. *ret is always written. */
int codereader_read(struct codereader *c, uint64_t most, struct codefile_progress *ret);
/* As codefile_flush, or a verdict. */
int codereader_flush(struct codereader *c);
/* Looks up `count` addresses. *ret_names has the calls of those that were found, in that order; it
 * is borrowed until the next call. 0, -ENOMEM, CODEREADER_ANEW, CODEREADER_LOST. */
int codereader_find(struct codereader *c, const uint64_t *addresses, unsigned count,
		    uint64_t time_ns, struct codefile_answer ret[static CODEREADER_BATCH],
		    const struct names **ret_names);
/* Bytes of memory that it takes, wherever that is. */
size_t codereader_bytes(const struct codereader *c);

#endif
