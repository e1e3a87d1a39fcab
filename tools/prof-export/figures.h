/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a status word (struct status) as text for a terminal. */
#ifndef PROF_EXPORT_FIGURES_H
#define PROF_EXPORT_FIGURES_H

#include "common/base/bytes/buf.h"
#include "common/status/status.h"

/* Appends lines of text with all names escaped. Errors of buf_append. */
int figures_print(struct buf *b, const struct status *st);

#endif
