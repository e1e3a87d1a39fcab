/* SPDX-License-Identifier: Apache-2.0 */
/* The page: the figures of a run, in the text format of Prometheus (version 0.0.4). Pure. */
#ifndef PROF_METRICS_PAGE_H
#define PROF_METRICS_PAGE_H

#include <stdbool.h>
#include "common/base/bytes/buf.h"
#include "common/status/metrics.h"

/* Appends the page. up: the launcher has sent figures recently. Errors of buf_append. */
int page_print(struct buf *b, const struct metrics_word *w, bool up);

#endif
