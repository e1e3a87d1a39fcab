/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map or jitdump of a process. A worker process (codeworker.h) reads it and answers which
 * code was at an address. There are two workers: one for files that only the host's root could have
 * written, one for all others. Without a keeper (filekeeper.h), the files are read in this process.
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
#define CODEREADER_PATIENCE_NS 3000000000ull /* timeout of an answer */
#define CODEREADER_REST_NS 250000000ull	     /* wait after a worker died; doubled each time */
#define CODEREADER_REST_MAX_NS 16000000000ull
/* If no worker dies for this long, the wait is reset. */
#define CODEREADER_FORGIVE_NS 60000000000ull

struct codereader;

enum codereader_verdict {
	CODEREADER_ANEW = 1,  /* the next worker has to read the file from its beginning first */
	CODEREADER_LOST = 2,  /* the file's names are lost permanently */
	CODEREADER_LATER = 3, /* there is no worker at the moment */
};

/* From now on files are read by workers that the keeper starts (filekeeper_use). heap: bytes of
 * private memory that each may use. */
void codereader_use_workers(uint64_t heap);

/* Opens a file that owns fd from then on; fd is closed on error. contained: it belongs to a process
 * in a container, so its root is not the host's. max: limit of memory in bytes. Returns 0, -ENOMEM
 * or -EMFILE. */
int codereader_open(int fd, enum msg_jit_kind kind, bool contained, size_t max,
		    struct codereader **ret);
void codereader_free(struct codereader *c);
/* Returns the current size of the file; UINT64_MAX: unknown. */
uint64_t codereader_file_size(const struct codereader *c);
/* Returns as codefile_read does, or a verdict. *ret is always set. */
int codereader_read(struct codereader *c, uint64_t most, struct codefile_progress *ret);
/* Returns as codefile_flush does, or a verdict. */
int codereader_flush(struct codereader *c);
/* Looks up `count` addresses. *ret_names holds the calls of those that were found, in that order;
 * it is borrowed until the next call. Returns 0, -ENOMEM, CODEREADER_ANEW or CODEREADER_LOST. */
int codereader_find(struct codereader *c, const uint64_t *addresses, unsigned count,
		    uint64_t time_ns, struct codefile_answer ret[static CODEREADER_BATCH],
		    const struct names **ret_names);
/* Returns how many bytes of memory the file takes, in this process or in a worker. */
size_t codereader_bytes(const struct codereader *c);

#endif
