/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patience with receivers that never stop sending. libcurl 7.88 keeps reading while empty
 * HTTP/2 frames arrive, and checks no timeout meanwhile. Such a receiver would block prof-send for
 * all other receivers, and for prof-export. So a timer ends a read that takes seconds: it shuts
 * down the connections that have data to read, which curl then sees as closed.
 */
#ifndef PROF_SEND_TRANSFER_PATIENCE_H
#define PROF_SEND_TRANSFER_PATIENCE_H

#include <stdbool.h>
#include <curl/curl.h>

/* Starts the timer. Call it once, before the sandbox is closed and before threads start. -errno. */
int patience_begin(void);
/* Makes a handle report its connections. Returns false if there is no memory. */
bool patience_watch(CURL *easy);
/* Call these before and after a call of curl that may read. */
void patience_start(void);
void patience_stop(void);

#endif
