/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map or jitdump that is read in this process: its descriptor, how far it was read, and the
 * code map that it fills. codereader.h is what others use: it has these in a worker process, or
 * here.
 */
#ifndef COMMON_NAMES_JIT_CODEFILE_H
#define COMMON_NAMES_JIT_CODEFILE_H

#include "common/names/jit/codemap.h"
#include "common/names/names.h"
#include "common/wire/msg.h"

#define CODEFILE_CHUNK (64u << 10) /* bytes of one read */

struct codefile;

/* The result of codefile_read. */
struct codefile_progress {
	uint64_t read;	/* bytes */
	bool behind;	/* there is more to read */
	bool anew;	/* the file was rewritten, and is read from its beginning */
	bool reopened;	/* likewise, by the next worker (codereader.h) */
	bool full;	/* the ceiling was reached: nothing more is read */
	bool malformed; /* likewise, since it is no such file, or garbage follows */
};

/* The answer to a lookup. */
struct codefile_answer {
	bool found;
	/* It is valid for times from since_ns to before until_ns, until more of the file has been
	 * read. */
	uint64_t since_ns, until_ns;
};

/* Takes fd, even on error. max: limit of memory in bytes. Returns 0 or -ENOMEM. */
int codefile_open(int fd, enum jit_kind kind, size_t max, struct codefile **ret);
void codefile_free(struct codefile *f);
/* Reads about `most` bytes of what is new. Stops after this much cpu time of the process (0: no
 * limit). Returns 0, or -ENOMEM, after which the file is read again from its beginning. *ret is
 * always set. */
int codefile_read(struct codefile *f, uint64_t most, uint64_t cpu_ns,
		  struct codefile_progress *ret);
/* The file has ended: takes its last line, even without a line feed. 0, -ENOMEM. */
int codefile_flush(struct codefile *f);
/* Appends the call at an address to ret, if there is one. 0, -ENOMEM. */
int codefile_find(struct codefile *f, uint64_t address, uint64_t time_ns, struct names *ret,
		  struct codefile_answer *ret_answer);
/* The size of the file now; UINT64_MAX: unknown. */
uint64_t codefile_size(const struct codefile *f);
/* Bytes of memory that it takes. */
size_t codefile_bytes(const struct codefile *f);

#endif
