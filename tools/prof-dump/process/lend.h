/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lends files: the half with the caller's rights opens files for the half without rights, whose
 * requests are untrusted. So it lends only ELF files. Other files with names for a program are lent
 * only if everybody may read them or the caller owns them.
 */
#ifndef PROF_DUMP_PROCESS_LEND_H
#define PROF_DUMP_PROCESS_LEND_H

/* Lends one file with names on the other half's request. Returns 0; -EPIPE: the other half is done;
 * -ETIMEDOUT after timeout_ms (-1: waits forever); -errno. */
int lend_debug(int socket, int timeout_ms);
/* Lends the core, then files by their paths below sysroot ("": the caller's root), until the other
 * half is done. Returns 0 or -errno. */
int lend_core(int socket, int core, const char *sysroot);

#endif
