/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tool that was taken over: linked into a tool, it waits for SIGUSR2, or for the moment that the
 * tool begins to read a file it was handed, and then tries one thing that a tool has no business
 * doing. Only raw system calls: no libc between it and the kernel.
 *
 * Orders and outcome are a page shared with the test (REDTEAM_ORDERS names its file, which is
 * mapped before main), so that neither takes a system call. Without that variable the tool is
 * itself. REDTEAM_PART says which of a tool's processes is taken over (takeover.c); REDTEAM_WITHOUT
 * which parts of its cell are left out (layers.c).
 */
#ifndef TESTS_REDTEAM_TAKEOVER_H
#define TESTS_REDTEAM_TAKEOVER_H

#include <stdint.h>

enum takeover_state {
	TAKEOVER_DONE,	  /* result is there */
	TAKEOVER_ORDERED, /* by the test */
	TAKEOVER_BEGUN,	  /* the process died of it, if it stays so */
};
/* As packed by test_redteam.py. */
struct takeover_orders {
	uint32_t attempt;     /* its place in attempts.def */
	uint32_t state;	      /* enum takeover_state */
	int64_t result;	      /* >= 0: it worked; else -errno */
	int32_t victim;	      /* a process of root's that may be harmed */
	int32_t group;	      /* its process group */
	int32_t kin;	      /* one of the tool's own user, that is no tool */
	int32_t self;	      /* who is taken over, once it is; filled in */
	int64_t tried;	      /* and who carried the order out */
	uint64_t address;     /* of 16 bytes that can be read and written in the victim */
	uint64_t kin_address; /* and in the kin */
	uint64_t entered;     /* how many lists of system calls it has entered; filled in */
	uint64_t port;	      /* of TCP, where somebody listens on this host */
	char dir[128];	      /* the run's folder, as the host has it */
	char secret[128];     /* a file that only root may read */
	char open_file[128];  /* one that anybody may write, behind a closed folder */
	char ran[128];	      /* one that anybody may write, and a program that was run does */
	char socket[128];     /* of a server that takes anybody */
	char abstract[128];   /* the same, an abstract one; without its first byte */
};

/* Called where the tool begins with a file that it was handed. */
void takeover_holding(int fd);
/* This process, if this is the part that the test wants; then the order is carried out when the
 * signal comes. */
void takeover_begin(const char *part);
/* Carries it out now. */
void takeover_now(void);
/* Called when a list of system calls was entered. */
void takeover_entered(void);

#endif
