/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quarantine holds files on which parsers died, so that the parsers do not get them again. It
 * also holds users whose files killed parsers often, so that no user can keep the parsers from
 * serving others.
 *
 * A file is identified by the kernel's numbers, not by its name or contents. After a first crash
 * the parser gets it once more. After a second one, or if it took too much cpu time once, it never
 * gets the file again. If a parser is killed from outside, or for lack of memory, nothing proves
 * that the file is to blame. So only five such deaths in a row count. The file is then given up for
 * a second, and for twice as long each further time.
 *
 * Crashes are also charged to those who could have written the file, even before it is given up.
 * After QUARANTINE_USER_DEATHS of a user, no file of the user is parsed for QUARANTINE_USER_NS.
 * After QUARANTINE_GROUP_DEATHS of a group, none of the group's is.
 *
 * - Files that are parsed for a container are charged to the container, like to a user: its own
 *   root can give a file any owner.
 * - A group is the file system, for root's files and for files whose owners a file server reports.
 * - Otherwise a group is a range of 65,536 ids above the first 65,536, as user namespaces get them.
 *
 * Too much cpu time counts as four crashes. For unexplained deaths the limit is twice as high, and
 * they must be in a row.
 */
#ifndef PROF_BPF_PEERS_QUARANTINE_H
#define PROF_BPF_PEERS_QUARANTINE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/wire/peer/lastword.h"

#define QUARANTINE_USER_DEATHS 8
#define QUARANTINE_GROUP_DEATHS 64
#define QUARANTINE_USER_NS 3600000000000ull
#define QUARANTINE_DOUBT_NS 1000000000ull
#define QUARANTINE_FILES_MAX 4096
#define QUARANTINE_USERS_MAX 1024

enum quarantine_parser { QUARANTINE_ROWS, QUARANTINE_NAMES };

/* A file, or a process whose generated code and memory are parsed. For a process, dev is
 * QUARANTINE_PROCESS and inode is its id. */
#define QUARANTINE_PROCESS UINT64_MAX
struct quarantine_key {
	uint64_t dev, inode, ctime_ns, size;
	uint32_t uid;		/* the owner */
	uint32_t foreign_owner; /* 1: a file server reports the owner */
	uint32_t container;	/* container that it is parsed for (owners.h); 0: none */
};

enum quarantine_verdict {
	QUARANTINE_FREE, /* may be parsed */
	QUARANTINE_GIVEN_UP,
	QUARANTINE_OF_USER, /* belongs to a user or group whose files are not parsed for some
			     * time */
};

struct quarantine;
int quarantine_new(struct quarantine **ret);
void quarantine_free(struct quarantine *q);
/* Whether no parser has died yet, so that everything may be parsed. */
bool quarantine_is_empty(const struct quarantine *q);
/* Whether the parser may have the file. */
enum quarantine_verdict quarantine_check(const struct quarantine *q, enum quarantine_parser parser,
					 const struct quarantine_key *of, uint64_t now_ns);
/* Records that the parser has died on the file. Returns the verdict that quarantine_check gives
 * from now on. Each verdict other than QUARANTINE_FREE is returned only once, to be logged. */
enum quarantine_verdict quarantine_blame(struct quarantine *q, enum quarantine_parser parser,
					 const struct quarantine_key *of, enum lastword_end end,
					 uint64_t now_ns);
/* Gives a file whose temporary quarantine has expired, once each time: nobody else will request it
 * again. Returns false if there is none. */
bool quarantine_freed(struct quarantine *q, uint64_t now_ns, enum quarantine_parser *ret_parser,
		      struct quarantine_key *ret_of);
/* Returns how many deaths the file has caused; such files are parsed alone. */
unsigned quarantine_deaths(const struct quarantine *q, enum quarantine_parser parser,
			   const struct quarantine_key *of);

#endif
