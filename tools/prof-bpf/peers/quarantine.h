/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parsers died on, so that they are not given it again, and on whose files they died
 * often, so that nobody keeps them from working for others.
 *
 * A file is known by the kernel's identity, not by its name or what is in it. A parser that crashed
 * on one gets it once more; after the second time, or the first where it took too long, the file is
 * given up for good. Where nothing says that the file was to blame (the parser was killed from
 * outside, or for want of memory) it takes five times in a row, and is for a second, then for
 * twice as long each time.
 *
 * Crashes are charged to whoever could have written the file, also before it is given up: after
 * QUARANTINE_USER_DEATHS of a user's no file of theirs is parsed for QUARANTINE_USER_NS, and after
 * QUARANTINE_GROUP_DEATHS of a group's none of the group's. A group is the file system, for root's
 * files (the root of a container is one) and for those of file systems whose server says who owns
 * what; and else 65,536 ids, as user namespaces are given them, above the first 65,536. To take too
 * long counts as four; of deaths that nothing explains it takes twice as many, in a row.
 */
#ifndef PROFPIPE_QUARANTINE_H
#define PROFPIPE_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/wire/lastword.h"

#define QUARANTINE_USER_DEATHS 8
#define QUARANTINE_GROUP_DEATHS 64
#define QUARANTINE_USER_NS 3600000000000ull
#define QUARANTINE_DOUBT_NS 1000000000ull
#define QUARANTINE_FILES_MAX 4096
#define QUARANTINE_USERS_MAX 1024

enum quarantine_parser { QUARANTINE_ROWS, QUARANTINE_NAMES };

/* A file; or a process, whose generated code and memory are what is parsed: dev
 * QUARANTINE_PROCESS, inode its id. */
#define QUARANTINE_PROCESS UINT64_MAX
struct quarantine_key {
	uint64_t dev, inode, ctime_ns, size;
	uint32_t uid;		/* the owner */
	uint32_t foreign_owner; /* 1: the owner is what a server of files says it is */
};

enum quarantine_verdict {
	QUARANTINE_FREE, /* it may be parsed */
	QUARANTINE_GIVEN_UP,
	QUARANTINE_OF_USER, /* of a user, or a group, whose files are not parsed for a time */
};

struct quarantine;
int quarantine_new(struct quarantine **ret);
void quarantine_free(struct quarantine *q);
/* Nothing has died yet: everything may be parsed. */
bool quarantine_is_empty(const struct quarantine *q);
/* May the parser have it? */
enum quarantine_verdict quarantine_check(const struct quarantine *q, enum quarantine_parser parser,
					 const struct quarantine_key *of, uint64_t now_ns);
/* The parser has died on it. Returns what quarantine_check says from now on, each verdict but
 * QUARANTINE_FREE once only: what is to be said. */
enum quarantine_verdict quarantine_blame(struct quarantine *q, enum quarantine_parser parser,
					 const struct quarantine_key *of, enum lastword_end end,
					 uint64_t now_ns);
/* One that was given up in doubt, and may be parsed again by now: once each time, so that it is
 * asked for again. False: there is none. */
bool quarantine_freed(struct quarantine *q, uint64_t now_ns, enum quarantine_parser *ret_parser,
		      struct quarantine_key *ret_of);
/* Deaths on it so far: such a file is given alone. */
unsigned quarantine_deaths(const struct quarantine *q, enum quarantine_parser parser,
			   const struct quarantine_key *of);

#endif
