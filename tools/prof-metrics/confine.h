/* SPDX-License-Identifier: Apache-2.0 */
/* The confinement of prof-metrics: it keeps its listener and the launcher's pipe, and opens nothing
 * more. */
#ifndef PROF_METRICS_CONFINE_H
#define PROF_METRICS_CONFINE_H

/* Gives up all rights, files, new sockets and other processes. Call it after the server was made,
 * before the first byte of a client. 0; -errno, logged. */
int confine_seal(void);

#endif
