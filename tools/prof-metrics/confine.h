/* SPDX-License-Identifier: Apache-2.0 */
/* The confinement of prof-metrics: it keeps its listening socket and the launcher's pipe, and can
 * open nothing else. */
#ifndef PROF_METRICS_CONFINE_H
#define PROF_METRICS_CONFINE_H

/* Gives up all rights, files, new sockets and access to other processes. Call it after the server
 * was made and before a client's first byte is read. Returns 0, or -errno, logged. */
int confine_seal(void);

#endif
