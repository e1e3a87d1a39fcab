/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorded stream by hand: raw on standard input, named on standard output. Files are opened here
 * instead of asked of prof-bpf. A stream that is named already is passed on.
 */
#ifndef PROFPIPE_BY_HAND_H
#define PROFPIPE_BY_HAND_H

#include <stdint.h>

/* memory: bytes for symbols and DWARF; 0: the default. Logs errors; an exit status (exits.h). */
int by_hand_run(uint64_t memory);

#endif
