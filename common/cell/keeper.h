/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the keepers of workers: those of prof-bpf (tools/prof-bpf/open/openkeeper.h)
 * and of prof-symd (common/names/program/filekeeper.h).
 *
 * A keeper is a process that a tool forks early, while it still may. It starts workers later, when
 * the tool asks over a socket. It reads no untrusted bytes, and holds only that socket and what its
 * workers need. Neither it nor a worker outlives its parent.
 */
#ifndef COMMON_CELL_KEEPER_H
#define COMMON_CELL_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "common/cell/seccomp.h"

/* Of a keeper and of a worker: the socket to the process that asks it. Its other descriptors
 * follow. */
#define KEEPER_SOCKET 3

/* The calls of a keeper itself, beside baseline.h. It must also have those of its workers, since a
 * list that is entered later can only take away. */
extern const struct seccomp_rule keeper_calls[];

/* Forks a process that ends with this one. *ret_socket: of a pair (SOCK_SEQPACKET), the end of the
 * process that it is set in, the caller's. Returns as fork does, or -errno. */
pid_t keeper_fork(int *ret_socket);
/* In a new keeper: moves fds (n of them, the socket first) to KEEPER_SOCKET and the following
 * numbers, and closes all others. The standard ones lead to a pipe that nobody reads, so that no
 * worker holds a log open or writes into it. stderr_too: false leaves stderr as it is. 0,
 * -errno. */
int keeper_hold(const int *fds, unsigned n, bool stderr_too);
/* In a new worker: as keeper_hold, for the n descriptors that the keeper holds, with `socket` in
 * place of the keeper's own. 0, -errno. */
int keeper_hold_as_worker(int socket, unsigned n);
/* In a new keeper: forgets the tool's handlers of signals, and ignores those that a terminal sends
 * to all of its processes. */
void keeper_ignore_signals(void);
/* In a keeper: sends an answer, with a descriptor unless fd is -1. Takes fd. False: unsent. */
bool keeper_answer(const void *answer, size_t size, int fd);

#endif
