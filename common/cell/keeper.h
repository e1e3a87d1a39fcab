/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the keepers of workers: of prof-bpf
 * (tools/prof-bpf/open/workers/openkeeper.h) and of prof-symd
 * (common/names/program/filekeeper.h).
 *
 * A keeper is a process that a tool forks early, while it still may. It starts workers later, when
 * the tool asks for them over a socket. It reads no untrusted bytes, and holds only that socket and
 * what its workers need. Neither the keeper nor a worker outlives its parent.
 */
#ifndef COMMON_CELL_KEEPER_H
#define COMMON_CELL_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "common/cell/confine/seccomp.h"

/* In a keeper or a worker: the socket to the process that sends it requests. Its other descriptors
 * have the following numbers. */
#define KEEPER_SOCKET 3

/* The system calls of a keeper itself, in addition to baseline.h. The keeper's filter must also
 * allow the calls of its workers, since a later filter can only remove calls. */
extern const struct seccomp_rule keeper_calls[];

/* Forks a process that ends with this one. *ret_socket, in each of the two processes: its end of a
 * pair of sockets (SOCK_SEQPACKET), which the caller owns. Returns as fork does, or -errno. */
pid_t keeper_fork(int *ret_socket);
/* In a new keeper: moves the n fds (the socket first) to KEEPER_SOCKET and the following numbers,
 * and closes all others. The standard descriptors become a pipe that nobody reads, so that no
 * worker holds a log open or writes into it. stderr_too: false leaves stderr unchanged. Returns 0
 * or -errno. */
int keeper_hold(const int *fds, unsigned n, bool stderr_too);
/* In a new worker: as keeper_hold, for the n descriptors that the keeper holds, but with `socket`
 * instead of the keeper's own. Returns 0 or -errno. */
int keeper_hold_as_worker(int socket, unsigned n);
/* In a new keeper: removes the tool's signal handlers, and ignores signals that a terminal sends to
 * all of its processes. */
void keeper_ignore_signals(void);
/* In a keeper: sends an answer, with a descriptor unless fd is -1. Takes fd. Returns false if it
 * was not sent. */
bool keeper_answer(const void *answer, size_t size, int fd);

#endif
