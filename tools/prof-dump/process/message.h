/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between the two halves of prof-dump, over a SEQPACKET socket. The half with the
 * caller's rights traces and opens files. The half without rights parses, walks and prints.
 *
 *   process   MEMORY+fd, GENERATED+fd…, (PIECE…) MAPPING… (+fd), MAPS_END  -->
 *                                              <--  READY: the rows are made
 *   threads stop:      THREAD…, STOPPED        -->
 *                                              <--  WALKED, or AGAIN: mappings are missing
 *   threads continue; after AGAIN everything once more
 *
 *   core      CORE+fd  -->
 *             <--  OPEN path
 *             FILE+fd, or error  -->  …
 *
 *   then, for names  <--  DEBUG what, of which program
 *             FILE+fd, or error  -->  …
 *
 * Messages of the half without rights are untrusted.
 */
#ifndef PROF_DUMP_PROCESS_MESSAGE_H
#define PROF_DUMP_PROCESS_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_TEXT 4096 /* bytes of a path, with its NUL */
#define MESSAGE_ID 64	  /* of a build id, in bytes */
#define MESSAGE_ROUNDS 3  /* how often threads are stopped, if mappings change meanwhile */

enum message_kind {
	MESSAGE_MEMORY = 1, /* the process's memory, readable by address */
	MESSAGE_GENERATED,  /* a file with names of code that the process generated */
	/* Start, end and offset of any mapping of the next MESSAGE_MAPPING's file. */
	MESSAGE_PIECE,
	MESSAGE_MAPPING,
	MESSAGE_MAPS_END,
	MESSAGE_THREAD,
	MESSAGE_STOPPED,
	MESSAGE_CORE,
	MESSAGE_FILE,
	MESSAGE_READY,
	MESSAGE_WALKED,
	MESSAGE_AGAIN,
	MESSAGE_OPEN,
	MESSAGE_DEBUG, /* text: a name, a NUL, and the program's path */
};

/* An executable mapping. Of successive mappings with one inode, the first brings the file's
 * descriptor. If the file cannot be opened, `error` has the reason, and MESSAGE_PIECE messages
 * before this one describe the file's pieces in memory. */
struct message_mapping {
	uint64_t start, end, offset; /* bytes */
	uint64_t inode, dev;
	uint32_t kind; /* enum procfs_name */
	uint32_t zero;
};

/* A thread's registers. */
struct message_thread {
	uint64_t pc, tls;  /* tls: address of fs:0; 0: unknown */
	uint64_t regs[16]; /* by DWARF number */
	uint32_t tid;
	uint16_t in_syscall; /* pc may be behind the system call's instruction */
	uint16_t partial;    /* enum message_partial */
};

enum message_partial {
	MESSAGE_WHOLE,
	MESSAGE_BLOCKED, /* cannot be stopped: only pc, rsp and argument registers are known */
	MESSAGE_RUNNING, /* not even these are known */
};

/* A request for a file that helps to name a program's functions. */
struct message_debug {
	uint32_t want; /* enum program_want */
	uint32_t id_len;
	uint8_t id[MESSAGE_ID]; /* a build id */
};

struct message {
	uint32_t kind; /* enum message_kind */
	int32_t error; /* -errno */
	union {
		struct message_mapping mapping;
		struct message_thread thread;
		struct message_debug debug;
		uint64_t generated; /* enum msg_jit_kind */
	};
	uint32_t text_len; /* without a NUL */
	char text[MESSAGE_TEXT];
};

/* fd (borrowed) is sent along; -1: none. Returns 0 or -errno. */
int message_send(int socket, const struct message *m, int fd);
/* Waits up to timeout_ms (-1: forever). *ret_fd: the received descriptor, which the caller owns, or
 * -1. text ends with a NUL. Returns 0; -EPIPE: the other half is gone; -ETIMEDOUT; -EPROTO;
 * -errno. */
int message_receive(int socket, int timeout_ms, struct message *ret, int *ret_fd);

#endif
