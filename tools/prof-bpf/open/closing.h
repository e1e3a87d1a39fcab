/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing files that processes chose, in threads that may hang. close() asks a server where there
 * is one (FUSE, NFS), and whoever has a deleted file open as the last frees its blocks, for
 * seconds where the disk is told of each. There is one of it in the process, as there is one table
 * of descriptors.
 */
#ifndef PROFPIPE_CLOSING_H
#define PROFPIPE_CLOSING_H

#include <stdbool.h>
#include <stdint.h>

#define CLOSING_MAX 1024u      /* descriptors that wait; the next one is closed by its owner */
#define CLOSING_MAX_DEVICE 64u /* of one device, until closing_owes says so */

/* Starts the threads. 0, -errno: without them all is closed at once. */
int closing_start(void);
/* Closes fd (taken) soon, and at once before closing_start; -1 is passed over. By any thread. */
void closing_give(int fd);
/* Whether so many files of a device (as in struct opener_file) wait to be closed that no more of it
 * are to be opened. By any thread. */
bool closing_owes(uint64_t dev);

#endif
