/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker: a small process that opens files and reads memory for prof-bpf. File systems and memory
 * of users may keep it waiting forever; then prof-bpf gives it up and has another one started.
 *
 * It has no perf event and no BPF map, and parses no file format. It has the capabilities that
 * opening needs: SYS_PTRACE, CHECKPOINT_RESTORE and DAC_READ_SEARCH.
 */
#ifndef PROF_BPF_OPEN_WORKERS_WORKER_H
#define PROF_BPF_OPEN_WORKERS_WORKER_H

#include "common/cell/confine/seccomp.h"

/* The system calls that it needs besides baseline_calls. */
extern const struct seccomp_rule worker_calls[];

/* Serves requests (work.h) from a socket until the other end is closed. proc: an O_PATH descriptor
 * of a mounted proc. Returns the exit status. */
int worker_serve(int socket, int proc);

#endif
