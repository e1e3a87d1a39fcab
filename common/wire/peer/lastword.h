/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last word of a parser: a shared page of memory that prof-bpf can still read when the parser
 * is dead. It says what the parser works on, for how long, how it ended, and how much memory it
 * wants and may have. prof-bpf also writes there which work the parser must abort, and for how long
 * it must pause. prof-bpf makes one page for each peer and sends it over the lane, under the id
 * LASTWORD_LANE_ID. Writing to the page costs one store.
 *
 * An attacker in the parser can write anything to the page. prof-bpf reads it with pread, as words,
 * once. Only names and rows of files, and the use of spare memory, depend on it.
 *
 * A parser that spends LASTWORD_SLOW_S seconds of cpu time on one request ends itself (SIGXCPU).
 * So does one that was told to abort its work, and has not done so LASTWORD_OVERDUE_NS later: it is
 * in some loop that never asks, and others wait.
 */
#ifndef COMMON_WIRE_PEER_LASTWORD_H
#define COMMON_WIRE_PEER_LASTWORD_H

#include <stdbool.h>
#include <stdint.h>

#define LASTWORD_LANE_ID 0 /* not the id of any request */
#define LASTWORD_SLOW_S 10
#define LASTWORD_OVERDUE_NS 1000000000ull /* of cpu time */
#define LASTWORD_TICK_MS 25  /* cpu time between two checks of the clock by the parser */
#define LASTWORD_REST_MS 975 /* the longest pause after a tick */

enum lastword_kind { LASTWORD_NOTHING, LASTWORD_FILE, LASTWORD_PROCESS };
enum lastword_end {
	LASTWORD_NONE,	/* killed from outside, or unable to write */
	LASTWORD_CRASH, /* by a signal that it caused itself: SIGSEGV, SIGABRT and the like */
	LASTWORD_SLOW,	/* ended itself after LASTWORD_SLOW_S, or since it was overdue */
};

/* prof-bpf's side. */
struct lastword {
	enum lastword_kind kind;
	enum lastword_end end;
	uint64_t id; /* of the file or process; below 2^56 */
	uint64_t
		/* Cpu time that it took so far, as the parser reports it, accurate to one tick. */
		spent_ns;
};
/* Makes a page and returns its descriptor: O_CLOEXEC, with a fixed size. -errno. */
int lastword_new(void);
/* The page's contents; LASTWORD_NOTHING if they are invalid. */
struct lastword lastword_read(int fd);

/* Tells the parser how many bytes of memory it may use. */
void lastword_grant(int fd, uint64_t bytes);
/* How many bytes the parser could use; 0: it has not reported any. */
uint64_t lastword_wanted(int fd);
/* Makes the parser abort its work on this file once it has taken this much cpu time; 0: no file. */
void lastword_stop(int fd, uint64_t id, uint64_t after_ns);
/* Makes the parser pause for this long after each tick of work, at most LASTWORD_REST_MS.
 * Forwarding data does not count as work. */
void lastword_rest(int fd, uint64_t ms);

/* The parser's side: one page per process. Only its main thread parses. */

/* Handles the signals that may kill the parser, and starts the clock: slow_s is LASTWORD_SLOW_S.
 * Call it before the sandbox. */
void lastword_watch(unsigned slow_s);
/* Switches from a private page to this one. Takes fd. Returns 0 or -errno. */
int lastword_take(int fd);
/* The parser starts to work on this. Returns the argument for lastword_back, to be called
 * afterwards. */
uint64_t lastword_begin(enum lastword_kind kind, uint64_t id);
void lastword_back(uint64_t former);
/* Also pauses for work that a worker did for the parser. During the pause it calls the function of
 * lastword_rest_with a few times a second. */
void lastword_rest_for(uint64_t worked_ns);
/* Whether the parser must pause for its work, and for how long if that took worked_ns. */
bool lastword_rests(void);
uint64_t lastword_rest_ns(uint64_t worked_ns);
/* From now on, a pause takes only this part of its time, 0 to LASTWORD_PARTS: all of it. */
#define LASTWORD_PARTS 8u
void lastword_rest_part(unsigned part);
/* Sets the function that is called during pauses; NULL: none. */
void lastword_rest_with(void (*fn)(void *ctx), void *ctx);
/* Calls that function. For a parser that waits for a worker. */
void lastword_beat(void);
/* Whether the present work must be aborted now. */
bool lastword_is_stopped(void);
/* The bytes of memory that it may use; 0: unknown. */
uint64_t lastword_granted(void);
void lastword_want(uint64_t bytes);

#endif
