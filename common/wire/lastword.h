/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last word of a parser: a shared page of memory that prof-bpf can still read when the parser
 * is dead. It says what the parser works on, for how long, how it ended, and how much memory it
 * wants and may have. prof-bpf also writes there which work is to be put aside, and how much the
 * parser must rest. prof-bpf makes one page for each peer and sends it over the lane, under the id
 * LASTWORD_LANE_ID. Writing to it costs one store.
 *
 * An attacker in the parser can write anything there. prof-bpf reads it with pread, as words, once.
 * Only names and rows of files, and memory that others do not use, depend on it.
 *
 * A parser that spends LASTWORD_SLOW_S seconds of cpu time on one request ends itself (SIGXCPU).
 */
#ifndef COMMON_WIRE_LASTWORD_H
#define COMMON_WIRE_LASTWORD_H

#include <stdbool.h>
#include <stdint.h>

#define LASTWORD_LANE_ID 0 /* no request has it */
#define LASTWORD_SLOW_S 10
#define LASTWORD_TICK_MS 25  /* of cpu time, after which the parser looks at the clock */
#define LASTWORD_REST_MS 975 /* the longest rest after a tick */

enum lastword_kind { LASTWORD_NOTHING, LASTWORD_FILE, LASTWORD_PROCESS };
enum lastword_end {
	LASTWORD_NONE,	/* killed from outside, or unable to write */
	LASTWORD_CRASH, /* by a signal that it caused: SIGSEGV, SIGABRT and the like */
	LASTWORD_SLOW,	/* ended itself after LASTWORD_SLOW_S */
};

/* prof-bpf's side. */
struct lastword {
	enum lastword_kind kind;
	enum lastword_end end;
	uint64_t id; /* of the file or process; below 2^56 */
	uint64_t
		spent_ns; /* cpu time that it took so far, to within one tick; the parser says so */
};
/* A new page, as a descriptor: O_CLOEXEC, with a size that nobody can change. -errno. */
int lastword_new(void);
/* The page's contents; LASTWORD_NOTHING if they are invalid. */
struct lastword lastword_read(int fd);

/* Tells the parser how many bytes it may take. */
void lastword_grant(int fd, uint64_t bytes);
/* How many bytes the parser could use; 0: it has not said. */
uint64_t lastword_wanted(int fd);
/* Makes the parser put this file aside once it has taken this much cpu time; 0: no file. */
void lastword_stop(int fd, uint64_t id, uint64_t after_ns);
/* After each tick of work the parser rests for this long, at most LASTWORD_REST_MS. Forwarded data
 * does not count as work. */
void lastword_rest(int fd, uint64_t ms);

/* The parser's side: one page per process. Only its main thread parses. */

/* Handles the signals that it may die of, and starts the clock: slow_s is LASTWORD_SLOW_S. Call it
 * before the sandbox. */
void lastword_watch(unsigned slow_s);
/* Switches from a private page to this one. fd: taken. 0 or -errno. */
int lastword_take(int fd);
/* The parser works on this from now on. Returns the argument for lastword_back afterwards. */
uint64_t lastword_begin(enum lastword_kind kind, uint64_t id);
void lastword_back(uint64_t former);
/* Also rest for work that a worker did for the parser. Meanwhile it calls the function of
 * lastword_rest_with a few times a second. */
void lastword_rest_for(uint64_t worked_ns);
/* fn NULL: nothing. */
void lastword_rest_with(void (*fn)(void *ctx), void *ctx);
/* Whether the present work is to be put aside now. */
bool lastword_is_stopped(void);
/* The bytes that it may take; 0: not known. */
uint64_t lastword_granted(void);
void lastword_want(uint64_t bytes);

#endif
