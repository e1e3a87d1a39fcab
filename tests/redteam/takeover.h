/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a tool over: linked into the tool, it waits for SIGUSR2, or until the tool begins to read a
 * file that it was handed, and then tries one thing that a tool must not do. It makes only raw
 * system calls, without libc.
 *
 * Orders and results are in a page shared with the test (REDTEAM_ORDERS names its file, which is
 * mapped before main), so that neither takes a system call. Without that variable nothing is taken
 * over. REDTEAM_PART says which of a tool's processes is taken over (takeover.c); REDTEAM_WITHOUT
 * says which parts of its cell are left out (layers.c).
 */
#ifndef TESTS_REDTEAM_TAKEOVER_H
#define TESTS_REDTEAM_TAKEOVER_H

#include <stdint.h>

enum takeover_state {
	TAKEOVER_DONE,	  /* result is there */
	TAKEOVER_ORDERED, /* by the test */
	TAKEOVER_BEGUN,	  /* the process died of it, if it stays so */
};
/* The layout is also in test_redteam.py. */
struct takeover_orders {
	uint32_t attempt;     /* its place in attempts.def */
	uint32_t state;	      /* enum takeover_state */
	int64_t result;	      /* >= 0: it worked; else -errno */
	int32_t victim;	      /* a process of root that may be harmed */
	int32_t group;	      /* its process group */
	int32_t kin;	      /* a process of the tool's own user that is not a tool */
	int32_t self;	      /* the pid that is taken over, once it is; filled in */
	int64_t tried;	      /* and the pid that carried the order out */
	uint64_t address;     /* 16 bytes that can be read and written in the victim */
	uint64_t kin_address; /* and in the kin */
	uint64_t entered;     /* how many lists of system calls it has entered; filled in */
	uint64_t port;	      /* the TCP port of a server on this host */
	char dir[128];	      /* the run's folder, as the host has it */
	char secret[128];     /* a file that only root may read */
	char open_file[128];  /* a file that everybody may write, in a closed folder */
	char ran[128];	      /* writable for all; a program that runs writes it */
	char socket[128];     /* of a server that accepts everybody */
	char abstract[128];   /* the same, an abstract one; without its first byte */
};

/* Called when the tool begins with a file that it was handed. */
void takeover_holding(int fd);
/* Sets this process, if it is the part that the test wants; the order is then carried out when the
 * signal arrives. */
void takeover_begin(const char *part);
/* Carries it out now. */
void takeover_now(void);
/* Called after a list of system calls was entered. */
void takeover_entered(void);

#endif
