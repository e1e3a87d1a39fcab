/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instance of procfs of our own. Any user can hold the lock of a folder of the host's /proc for
 * ever: a thread reads the folder into a page that never comes, another one tries to make a file
 * there. Who then looks up a name in that folder waits, and cannot be killed. Nobody else can reach
 * the folders of an instance that we mount (since Linux 5.8).
 */
#ifndef COMMON_CELL_CONFINE_PROCROOT_H
#define COMMON_CELL_CONFINE_PROCROOT_H

/* Enters a mount namespace that only this process and its children have, in which such an instance
 * is mounted on /proc instead of the host's. If the host shares its mounts, as with systemd, later
 * mounts of the host also appear there, and later unmounts happen there too. Call it before
 * anything is looked up in /proc. Returns 0 or -errno; then nothing has changed. This process needs
 * CAP_SYS_ADMIN and CAP_SYS_CHROOT, its root must be a mount, and /proc must show its pid
 * namespace. */
int procroot_take(void);
/* Takes a child that shall see what its user sees back to the mount namespace, the root and the
 * working folder that procroot_take left. Returns 0, also if it left none, or -errno. */
int procroot_leave(void);

#endif
