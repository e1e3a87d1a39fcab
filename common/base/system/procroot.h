/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instance of procfs of our own. Any user can hold the lock of a folder of the host's /proc for
 * ever: a thread reads the folder into a page that never comes, another one tries to make a file
 * there. Who then looks up a name in that folder waits, and cannot be killed. Nobody else can reach
 * the folders of an instance that we mount (since Linux 5.8).
 */
#ifndef COMMON_BASE_SYSTEM_PROCROOT_H
#define COMMON_BASE_SYSTEM_PROCROOT_H

/* Opens an instance of procfs, with O_PATH, or /proc as it is: if this process may not mount, or if
 * /proc does not show this process's pid namespace. The instance vanishes when the descriptor is
 * closed. Returns -errno. */
int procroot_open(void);
/* Mounts an instance on /proc, in a mount namespace that only this process and its children have.
 * Later mounts of the host also appear there. Returns 0 or -errno, as when this process may not
 * mount; /proc is then the host's. */
int procroot_take(void);

#endif
