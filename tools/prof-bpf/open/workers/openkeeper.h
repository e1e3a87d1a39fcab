/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper (common/cell/keeper.h) of the pool of workers. It starts workers (worker.h) when
 * prof-bpf asks, and ends those that prof-bpf gives up.
 */
#ifndef PROF_BPF_OPEN_WORKERS_OPENKEEPER_H
#define PROF_BPF_OPEN_WORKERS_OPENKEEPER_H

#include <stdint.h>
#include <sys/types.h>

/* prof-bpf's words to it, and its answer to OPENKEEPER_START, which carries the socket of the new
 * worker; pid is 0 and error is set if there is none. */
struct openkeeper_order {
	enum { OPENKEEPER_START, OPENKEEPER_END } what;
	pid_t pid; /* OPENKEEPER_END */
};
struct openkeeper_answer {
	pid_t pid;
	int error;
};

/* Starts the keeper: from a process with one thread, whose capabilities it reduces for itself and
 * for the workers. *ret_socket: for orders, non-blocking; the keeper ends when it is closed. 0,
 * -errno. */
int openkeeper_start(const char *proc, int *ret_socket, pid_t *ret_pid);

#endif
