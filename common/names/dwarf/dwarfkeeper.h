/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that starts workers (dwarfworker.h) for prof-symd, which may not start anything once
 * its sandbox was closed. It is of prof-symd's program and has its identity, and less: no
 * descriptor but its socket. It reads no byte of any file.
 *
 * Eight bytes, how much heap it may have, ask for a worker; the answer is a byte with the worker's
 * socket, or without it where none could be started. The worker before is killed; the byte says
 * whether it had been already, where its socket was closed: else that cannot be told. The keeper
 * ends with prof-symd, and its worker with it.
 */
#ifndef PROFPIPE_DWARFKEEPER_H
#define PROFPIPE_DWARFKEEPER_H

#include <stdint.h>

#define DWARFKEEPER_KILLED 'k' /* by SIGKILL */
#define DWARFKEEPER_PLAIN 'w'

/* In the tool's identity, before its first thread is started and anything is written to stdio.
 * heap: as for dwarfworker_run, the most that one may have. *ret_control is for dwarf_use_keeper.
 * 0, -errno. */
int dwarfkeeper_start(uint64_t heap, int *ret_control);

#endif
