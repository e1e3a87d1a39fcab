/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instance of procfs of our own. Any user can hold the lock of a folder of the host's /proc for
 * ever: a thread reads the folder into a page that never comes, another one tries to make a file
 * there. Who then looks up a name in that folder waits, and cannot be killed. Nobody else can reach
 * the folders of an instance that we mount (since Linux 5.8).
 */
#ifndef COMMON_BASE_SYSTEM_PROCROOT_H
#define COMMON_BASE_SYSTEM_PROCROOT_H

/* Enters a mount namespace that only this process and its children have, in which such an instance
 * is mounted on /proc instead of the host's. Later mounts of the host also appear there. Call it
 * before anything is looked up in /proc. Returns 0 or -errno, as when this process may not mount,
 * or if /proc does not show its pid namespace; then nothing has changed. */
int procroot_take(void);
/* Takes a child that shall see what its user sees back to the mount namespace, the root and the
 * working folder that procroot_take left. Returns 0, also if it left none, or -errno. */
int procroot_leave(void);

#endif
