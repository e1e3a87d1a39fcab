/* SPDX-License-Identifier: Apache-2.0 */
/* The report: the outcome of an endpoint's requests, as one line of text. Pure. */
#ifndef PROF_SEND_REPORT_H
#define PROF_SEND_REPORT_H

#include "common/base/bytes/buf.h"
#include "tools/prof-send/queue/queue.h"

/* Appends "NAME: 5 requests, 3 delivered, …", without a line feed. Returns 0, or an error of
 * buf_append. */
int report_print(struct buf *b, const char *name, const struct queue_counts *c);
/* Whether every request was delivered and no profile was rejected. */
bool report_is_good(const struct queue_counts *c);

#endif
