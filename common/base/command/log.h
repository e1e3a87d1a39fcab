/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: lines on standard error, `prof-bpf: warning: …`, with control characters and invalid
 * UTF-8 escaped. A message names the thing, the reason and the remedy, and quotes no memory of a
 * profiled process. Only main files log.
 */
#ifndef COMMON_BASE_COMMAND_LOG_H
#define COMMON_BASE_COMMAND_LOG_H

#include <stdio.h>
#include "common/base/bytes/str.h"

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO };

/* Sets the tool's name (borrowed permanently) and the least important level to print (default:
 * LOG_WARNING). */
void log_init(const char *tool, enum log_level level);
void log_print(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_print(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_print(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_print(LOG_INFO, __VA_ARGS__)

struct buf;
/* Appends s in a form that is safe for a terminal: printable UTF-8 unchanged, `\` as `\\`,
 * everything else (control characters, C1, bidirectional overrides, broken sequences) as \xNN.
 * Truncates s after max bytes and adds "…". Returns 0 or an error of buf_append. */
int log_escape(struct buf *b, struct str s, size_t max);
/* The same for text that may be escaped already: `\` is not changed. */
int log_escape_again(struct buf *b, struct str s, size_t max);

#endif
