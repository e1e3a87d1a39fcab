/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two halves of prof-dump say to each other, over a SEQPACKET socket: the half that has
 * the caller's rights, which traces and opens, and the half that has none, which parses, walks and
 * prints.
 *
 *   process   MEMORY+fd, GENERATED+fd…, (PIECE…) MAPPING… (+fd), MAPS_END  -->
 *                                              <--  READY: the rows are made
 *   threads stop:      THREAD…, STOPPED        -->
 *                                              <--  WALKED, or AGAIN: mappings are missing
 *   threads go on; after AGAIN all of it once more
 *
 *   core      CORE+fd  -->
 *             <--  OPEN path
 *             FILE+fd, or error  -->  …
 *
 *   then, for names  <--  DEBUG what, of which program
 *             FILE+fd, or error  -->  …
 *
 * What the half without rights says is a stranger's word.
 */
#ifndef PROF_DUMP_HALF_H
#define PROF_DUMP_HALF_H

#include <stdbool.h>
#include <stdint.h>

#define HALF_TEXT 4096 /* bytes of a path, with its NUL */
#define HALF_ID 64     /* bytes of a build id */
#define HALF_ROUNDS 3  /* how often a process is stopped, when mappings came meanwhile */

enum half_kind {
	HALF_MEMORY = 1, /* the process's memory, as a file to be read by address */
	HALF_GENERATED,	 /* a file with names of code that it generated */
	HALF_PIECE, /* start, end and offset of any mapping of the file of the next HALF_MAPPING */
	HALF_MAPPING,
	HALF_MAPS_END,
	HALF_THREAD,
	HALF_STOPPED,
	HALF_CORE,
	HALF_FILE,
	HALF_READY,
	HALF_WALKED,
	HALF_AGAIN,
	HALF_OPEN,
	HALF_DEBUG, /* its text: a name, a NUL, and the program's path */
};

/* An executable mapping. Its file comes along as a descriptor, once for each inode that follows
 * another; without one `error` says why, and what is mapped of it came before as HALF_PIECE. */
struct half_mapping {
	uint64_t start, end, offset; /* bytes */
	uint64_t inode, dev;
	uint32_t kind; /* enum procfs_name */
	uint32_t zero;
};

/* A thread's registers. */
struct half_thread {
	uint64_t pc, tls;  /* tls: where fs:0 lies; 0: not known */
	uint64_t regs[16]; /* by DWARF number */
	uint32_t tid;
	uint16_t exact;	  /* pc is not behind a system call instruction */
	uint16_t partial; /* enum half_partial */
};

enum half_partial {
	HALF_WHOLE,
	HALF_BLOCKED, /* it could not be stopped: pc, rsp and the registers of arguments alone */
	HALF_RUNNING, /* nor that: nothing is known */
};

/* A file that helps to name a program's functions. */
struct half_debug {
	uint32_t want; /* enum program_want */
	uint32_t id_len;
	uint8_t id[HALF_ID]; /* a build id */
};

struct half_message {
	uint32_t kind; /* enum half_kind */
	int32_t error; /* -errno */
	union {
		struct half_mapping mapping;
		struct half_thread thread;
		struct half_debug debug;
		uint64_t generated; /* enum jit_kind */
	};
	uint32_t text_len; /* without a NUL */
	char text[HALF_TEXT];
};

/* fd: -1, or sent along; borrowed. 0 or -errno. */
int half_send(int socket, const struct half_message *m, int fd);
/* Waits so long at most (-1: for good). *ret_fd: given, or -1; text ends with a NUL. 0; -EPIPE: the
 * other half is gone; -ETIMEDOUT; -EPROTO; -errno. */
int half_receive(int socket, int timeout_ms, struct half_message *ret, int *ret_fd);

#endif
