/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patience with receivers that never pause. curl reads on for as long as frames of HTTP/2 come
 * that hold nothing (libcurl 7.88), and looks at no timeout meanwhile. Such a receiver would keep
 * prof-send from all other ones, and from prof-export. So a timer ends a read that takes seconds:
 * it shuts down the connections that have something to read, which curl takes for their end.
 */
#ifndef PROF_SEND_TRANSFER_PATIENCE_H
#define PROF_SEND_TRANSFER_PATIENCE_H

#include <stdbool.h>
#include <curl/curl.h>

/* Once, before the cell is sealed and before there are threads: starts the timer. -errno. */
int patience_begin(void);
/* Has a handle tell of its connections. False: no memory. */
bool patience_watch(CURL *easy);
/* Around a call of curl that may read. */
void patience_start(void);
void patience_stop(void);

#endif
