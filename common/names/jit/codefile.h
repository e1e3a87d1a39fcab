/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perf map or jitdump that is read in this process: its descriptor, how far it was read, and the
 * code map that it fills. Other parts use codereader.h, which reads these files in a worker
 * process, or in this one.
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
	uint64_t read;	/* bytes read by this call */
	bool behind;	/* there is more to read */
	bool anew;	/* the file was rewritten, and is read from its beginning again */
	bool reopened;	/* lost: a new worker reads it again (codereader.h) */
	bool full;	/* the limit was reached: the rest is not read */
	bool malformed; /* likewise, since it is no perf map or jitdump, or garbage follows */
};

/* The answer to a lookup. */
struct codefile_answer {
	bool found;
	/* The answer is valid for times from since_ns to before until_ns, until more of the file is
	 * read. */
	uint64_t since_ns, until_ns;
};

/* Opens a file that owns fd from then on; fd is closed on error. max: limit of memory in bytes.
 * Returns 0 or -ENOMEM. */
int codefile_open(int fd, enum msg_jit_kind kind, size_t max, struct codefile **ret);
void codefile_free(struct codefile *f);
/* Reads about `most` new bytes. Stops after this much cpu time of the process (0: no limit).
 * Returns 0, or -ENOMEM, after which the file is read again from its beginning. *ret is always
 * set. */
int codefile_read(struct codefile *f, uint64_t most, uint64_t cpu_ns,
		  struct codefile_progress *ret);
/* Takes the last line of a file that has ended, even without a line feed. Returns 0 or -ENOMEM. */
int codefile_flush(struct codefile *f);
/* Appends the call at an address to ret, if there is one. Returns 0 or -ENOMEM. */
int codefile_find(struct codefile *f, uint64_t address, uint64_t time_ns, struct names *ret,
		  struct codefile_answer *ret_answer);
/* Returns the current size of the file; UINT64_MAX: unknown. */
uint64_t codefile_size(const struct codefile *f);
/* Returns how many bytes of memory the file takes. */
size_t codefile_bytes(const struct codefile *f);

#endif
