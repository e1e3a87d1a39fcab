/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: a process that starts workers (dwarfworker.h) for prof-symd, which cannot start
 * anything once it is sealed. prof-symd forks it. The keeper has the same identity, but no
 * descriptor except its socket, and reads no file.
 *
 * A request for a worker is 8 bytes: how much heap it may use. The answer is one byte, with the
 * worker's socket, or without if none could be started. The keeper first kills the previous worker.
 * The byte says whether somebody had already killed that one; this is only known if its socket was
 * closed. The keeper ends with prof-symd, and its worker ends with it.
 */
#ifndef COMMON_NAMES_DWARF_DWARFKEEPER_H
#define COMMON_NAMES_DWARF_DWARFKEEPER_H

#include <stdint.h>

#define DWARFKEEPER_KILLED 'k' /* by SIGKILL */
#define DWARFKEEPER_PLAIN 'w'

/* Call it in the tool's identity, before its first thread and before anything is written to stdio.
 * heap: the most bytes that any worker may use. *ret_control is for dwarf_use_keeper. 0, -errno. */
int dwarfkeeper_start(uint64_t heap, int *ret_control);

#endif
