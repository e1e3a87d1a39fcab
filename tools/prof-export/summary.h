/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a status word for a person to read. */
#ifndef PROFPIPE_SUMMARY_H
#define PROFPIPE_SUMMARY_H

#include "common/buf.h"
#include "common/status.h"

/* Appends lines, names escaped for a terminal. Errors of buf_append. */
int summary_print(struct buf *b, const struct status *st);

#endif
