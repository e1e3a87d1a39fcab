/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes files that processes chose, in threads that may hang. close() may wait for a server (FUSE,
 * NFS). And the last close of a deleted file frees its blocks, which takes seconds if the file
 * system discards each of them on the disk. The module is global, like the table of descriptors.
 */
#ifndef PROF_BPF_OPEN_CLOSING_H
#define PROF_BPF_OPEN_CLOSING_H

#define CLOSING_MAX 1024u /* waiting descriptors; if there are more, the caller closes */

/* Starts the threads. Returns 0 or -errno; without threads every file is closed at once. */
int closing_start(void);
/* Closes fd soon, or at once before closing_start. fd is not the caller's any more. Ignores -1.
 * Only the main thread may call it. */
void closing_give(int fd);

#endif
