/* SPDX-License-Identifier: Apache-2.0 */
/* A loopback address to listen at: 127.0.0.1:PORT or [::1]:PORT. Pure. */
#ifndef PROFPIPE_OPTIONS_LISTEN_H
#define PROFPIPE_OPTIONS_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

/* Returns false if the text is no such address; *ret is then unchanged. */
bool listen_parse(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len);

#endif
