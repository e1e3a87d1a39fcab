/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prof-bpf-loader, a process that loads the BPF programs of a runtime when the first file of that
 * runtime is seen. Most hosts run few runtimes, and the verifier needs half a second for some.
 *
 * prof-bpf gives up the right to load programs before it reads the first untrusted byte. This
 * process keeps that right, and reads nothing but the number of a runtime. It ends with prof-bpf.
 */
#ifndef PROF_BPF_KERNEL_LATE_LOADER_H
#define PROF_BPF_KERNEL_LATE_LOADER_H

#include <stdint.h>
#include <sys/types.h>
#include "bpf/runtime.h"

struct runtimes;

struct late_loader {
	pid_t pid; /* 0: there is none */
	int fd;	   /* a non-blocking socket to it; -1: there is none, or it ended */
};
#define LATE_LOADER_NONE ((struct late_loader){ .fd = -1 })

/* The result of loading a runtime's programs. */
struct late_loader_answer {
	uint32_t runtime;
	int32_t result;	   /* 0 or -errno */
	char trouble[256]; /* message of the verifier or libbpf, or empty */
};

/* Starts the process. The caller must have one thread and the right to load programs. trouble:
 * where libbpf's messages are stored, borrowed forever. Returns 0 or -errno. */
int late_loader_start(struct runtimes *r, char *trouble, struct late_loader *ret);
/* Requests the programs of a runtime; call it once for each. Returns 0; -EPIPE: the process ended;
 * -errno. */
int late_loader_ask(struct late_loader *l, enum runtime which);
/* Gives the next answer. Returns 0; -EAGAIN: there is none yet; -EPIPE: the process ended. */
int late_loader_hear(struct late_loader *l, struct late_loader_answer *ret);
void late_loader_stop(struct late_loader *l);

#endif
