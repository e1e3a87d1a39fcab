/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes files that processes chose, in threads that may hang. close() may ask a server (FUSE,
 * NFS). And the last close of a deleted file frees its blocks, which takes seconds if the disk is
 * told of each. The module is global, like the table of descriptors.
 */
#ifndef PROF_BPF_OPEN_CLOSING_H
#define PROF_BPF_OPEN_CLOSING_H

#include <stdbool.h>
#include <stdint.h>

#define CLOSING_MAX 1024u      /* waiting descriptors; beyond this the owner closes */
#define CLOSING_MAX_DEVICE 64u /* waiting ones of a device that make closing_owes true */

/* Starts the threads. 0, -errno: without them every file is closed at once. */
int closing_start(void);
/* Closes fd (taken) soon, or at once before closing_start. Ignores -1. From any thread. */
void closing_give(int fd);
/* Whether a device (as in struct opener_file) has so many files waiting to be closed that nobody
 * should open more there. From any thread. */
bool closing_owes(uint64_t dev);

#endif
