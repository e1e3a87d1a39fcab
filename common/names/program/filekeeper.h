/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: a process that starts the workers of prof-symd, which cannot start anything once it
 * is confined. prof-symd forks the keeper. The keeper has the same identity, but no descriptor
 * except its socket, and reads no file.
 *
 * There is one worker at a time of each kind. FILEKEEPER_START kills the worker of that kind and
 * starts the next one. A user can hold a lock of a file for ever; a worker that waits for it cannot
 * be killed, and is left behind. The answer comes with the worker's socket, or without one if none
 * could be started, or if too many were left behind. FILEKEEPER_CLOCK asks for the cpu time of a
 * worker: prof-symd may not read the clocks of other processes. The keeper ends with prof-symd, and
 * its workers end with it.
 *
 * The keeper does not know what workers do: its caller passes their classes.
 */
#ifndef COMMON_NAMES_PROGRAM_FILEKEEPER_H
#define COMMON_NAMES_PROGRAM_FILEKEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/confine/seccomp.h"

/* The kinds of workers. OF_ROOT: for files that only the host's root could have written. SECOND:
 * the second worker for programs, which changes roles with the first one (workers.c). */
enum filekeeper_kind {
	FILEKEEPER_PROGRAMS_OF_ROOT, /* fileworker_class */
	FILEKEEPER_PROGRAMS_OF_OTHERS,
	FILEKEEPER_SECOND_OF_ROOT,
	FILEKEEPER_SECOND_OF_OTHERS,
	FILEKEEPER_CODE_OF_ROOT, /* codeworker_class */
	FILEKEEPER_CODE_OF_OTHERS,
	FILEKEEPER_KINDS,
};

/* A class of workers: the name of its processes (at most 15 bytes), the function that a worker runs
 * after the fork, and the system calls that it may make besides those of baseline.h. The keeper's
 * own list includes these calls. heap: bytes of private memory that the worker may use. */
struct filekeeper_class {
	const char *name;
	void (*run)(int socket, uint64_t heap) __attribute__((noreturn));
	const struct seccomp_rule *calls;
};

/* Workers that are left behind, at most: in all, and before no more start for files of others. */
#define FILEKEEPER_HUNG 16
#define FILEKEEPER_HUNG_OF_OTHERS 12

enum filekeeper_what { FILEKEEPER_START = 1, FILEKEEPER_CLOCK };

struct filekeeper_ask {
	uint64_t heap; /* bytes that the worker may use */
	uint32_t kind, what;
};

struct filekeeper_answer {
	uint64_t cpu_ns; /* 0: not known */
	uint32_t killed; /* 1: somebody had killed the previous worker (SIGKILL); only known if its
			  * socket was closed */
	uint32_t zero;
};

/* Forks the keeper. Call it with the tool's identity, before its first thread and before anything
 * is written to stdio. programs, code: the classes of the workers of these kinds. heap: the most
 * bytes that any worker may use. *ret_control is for filekeeper_use. Returns 0 or -errno. */
int filekeeper_start(const struct filekeeper_class *programs, const struct filekeeper_class *code,
		     uint64_t heap, int *ret_control);

/* --- for the process that uses the keeper --- */

/* Takes ownership of the keeper's socket, until this process ends. */
void filekeeper_use(int control);
bool filekeeper_in_use(void);
/* Whether the keeper has died or stopped answering. */
bool filekeeper_gone(void);
/* Kills the worker of this kind and starts the next one. Returns its socket, which the caller owns;
 * -EAGAIN: the keeper cannot start one now; another -errno: the keeper is gone. *ret_killed:
 * whether somebody else had killed the previous worker. */
int filekeeper_worker(enum filekeeper_kind kind, uint64_t heap, bool *ret_killed);
/* Returns the cpu time of the worker of this kind, as the kernel counts it; 0: it is not known. */
uint64_t filekeeper_clock(enum filekeeper_kind kind);
/* Waits for an event on a descriptor. Returns 0, -ETIMEDOUT or -errno. */
int filekeeper_wait(int fd, short events, uint64_t deadline_ns);
/* Waits for an answer of the worker of this kind. Returns 0, -ETIMEDOUT, -EDEADLK if the worker
 * waits in the kernel for a file, or another -errno. */
int filekeeper_wait_for(int fd, enum filekeeper_kind kind, uint64_t deadline_ns);

/* A look reads a worker's clock. A worker that shows no cpu time in FILEKEEPER_STILL looks waits
 * for a file. It does not lack a cpu: this process has one, since its looks are punctual. */
#define FILEKEEPER_LOOK_NS 20000000ull
#define FILEKEEPER_STILL 15
#define FILEKEEPER_PUNCTUAL_NS 10000000ull

#endif
