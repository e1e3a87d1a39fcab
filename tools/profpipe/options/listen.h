/* SPDX-License-Identifier: Apache-2.0 */
/* An address of this host alone to listen at: 127.0.0.1:PORT, or [::1]:PORT. Pure. */
#ifndef PROFPIPE_OPTIONS_LISTEN_H
#define PROFPIPE_OPTIONS_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

/* False: it is none; *ret is unchanged then. */
bool listen_parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len);

#endif
