/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a parser is working on, how it ended, where prof-bpf can read it when the parser is dead,
 * and how much memory it wants and may have: a page of memory that both have. prof-bpf makes one
 * for each peer and hands it over by the lane, under the id LASTWORD_LANE_ID; to write there costs
 * a store.
 *
 * A parser that was taken over may write whatever it likes. It is read with pread, as words, once,
 * and only names and rows of files hang on it, and memory that others have no use for.
 *
 * A parser that spends LASTWORD_SLOW_S seconds of cpu time on one thing ends itself (SIGXCPU).
 */
#ifndef PROFPIPE_LASTWORD_H
#define PROFPIPE_LASTWORD_H

#include <stdint.h>

#define LASTWORD_LANE_ID 0 /* no request has it */
#define LASTWORD_SLOW_S 10

enum lastword_kind { LASTWORD_NOTHING, LASTWORD_FILE, LASTWORD_PROCESS };
enum lastword_end {
	LASTWORD_NONE,	/* killed from outside, or nothing could be said any more */
	LASTWORD_CRASH, /* by a signal of its own making: SIGSEGV, SIGABRT and their like */
	LASTWORD_SLOW,	/* of its own accord, after LASTWORD_SLOW_S */
};

/* prof-bpf's side. */
struct lastword {
	enum lastword_kind kind;
	enum lastword_end end;
	uint64_t id; /* of what the kind says; below 2^56 */
};
/* A new page: a descriptor, O_CLOEXEC, of fixed size for ever. -errno. */
int lastword_new(void);
/* What is there; nothing, where that makes no sense. */
struct lastword lastword_read(int fd);

/* Tells it how many bytes it may take. */
void lastword_grant(int fd, uint64_t bytes);
/* How many it says that it could use; 0: it says nothing. */
uint64_t lastword_wanted(int fd);

/* The parser's side: one a process, and its main thread alone parses. */

/* Takes the signals that it dies of, and starts the clock: slow_s is LASTWORD_SLOW_S. Before the
 * sandbox. */
void lastword_watch(unsigned slow_s);
/* Begins to write there instead of where nobody reads it. fd: taken. 0 or -errno. */
int lastword_take(int fd);
/* From here on it works on this. Returns what to hand to lastword_back afterwards. */
uint64_t lastword_begin(enum lastword_kind kind, uint64_t id);
void lastword_back(uint64_t former);
/* What it may take, in bytes; 0: nobody has said. */
uint64_t lastword_granted(void);
void lastword_want(uint64_t bytes);

#endif
