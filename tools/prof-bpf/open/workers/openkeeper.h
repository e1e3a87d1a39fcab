/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper (common/cell/keeper.h) of the pool of workers. It starts workers (worker.h) when
 * prof-bpf asks, and kills those that prof-bpf gives up.
 */
#ifndef PROF_BPF_OPEN_WORKERS_OPENKEEPER_H
#define PROF_BPF_OPEN_WORKERS_OPENKEEPER_H

#include <stdint.h>
#include <sys/types.h>

/* Orders of prof-bpf, and the keeper's answer to OPENKEEPER_START. The answer carries the socket of
 * the new worker; if there is none, pid is 0 and error is set. */
struct openkeeper_order {
	enum { OPENKEEPER_START, OPENKEEPER_END } what;
	pid_t pid; /* OPENKEEPER_END */
};
struct openkeeper_answer {
	pid_t pid;
	int error;
};

/* Starts the keeper. The calling process must have one thread; its capabilities are reduced for the
 * keeper and for the workers. *ret_socket: for orders, non-blocking; the keeper ends when it is
 * closed. Returns 0 or -errno. */
int openkeeper_start(const char *proc, int *ret_socket, pid_t *ret_pid);

#endif
