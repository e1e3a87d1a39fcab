/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes files that processes chose, in threads that may hang. close() may ask a server (FUSE,
 * NFS). And the last close of a deleted file frees its blocks, which takes seconds if the disk is
 * told of each. The module is global, like the table of descriptors.
 */
#ifndef PROFPIPE_CLOSING_H
#define PROFPIPE_CLOSING_H

#include <stdbool.h>
#include <stdint.h>

#define CLOSING_MAX 1024u      /* waiting descriptors; at most this many, else the owner closes */
#define CLOSING_MAX_DEVICE 64u /* of one device, before closing_owes says so */

/* Starts the threads. 0, -errno: without them every file is closed at once. */
int closing_start(void);
/* Closes fd (taken) soon, or at once before closing_start. Ignores -1. From any thread. */
void closing_give(int fd);
/* Whether so many files of a device (as in struct opener_file) wait to be closed that no more of it
 * should be opened. From any thread. */
bool closing_owes(uint64_t dev);

#endif
