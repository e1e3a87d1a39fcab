/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that the half without rights asks for, opened by the half that has the caller's. What it
 * names is a stranger's word, so it is handed ELF files alone; and files with names for a program,
 * which may be any, only where everybody may read them, or the caller owns them.
 */
#ifndef PROF_DUMP_LEND_H
#define PROF_DUMP_LEND_H

/* Hands over one file with names that the other half asks for. 0; -EPIPE: it is done; -ETIMEDOUT
 * after so long (-1: waits for good); -errno. */
int lend_debug(int socket, int timeout_ms);
/* Hands the core over, and then files by their paths below sysroot ("": the caller's own), until
 * the other half is done. 0 or -errno. */
int lend_core(int socket, int core, const char *sysroot);

#endif
