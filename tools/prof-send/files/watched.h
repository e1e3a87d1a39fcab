/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watched file: the contents of a file that may be replaced or rewritten while prof-send runs.
 * After a change it is read again; if that fails, the last contents remain valid. The contents may
 * be secret, so they are overwritten before their memory is freed.
 */
#ifndef PROF_SEND_FILES_WATCHED_H
#define PROF_SEND_FILES_WATCHED_H

#include <stdint.h>
#include "common/base/bytes/span.h"
#include "tools/prof-send/files/lender.h"

struct watched {
	struct lender *lender; /* borrowed; NULL: there is no such file */
	unsigned number;       /* the lender's number of the file */
	size_t max;	       /* bytes; a larger file is refused with -EFBIG */
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
	uint8_t *data;
	size_t len;
};

enum watched_verdict { WATCHED_CHANGED = 16 /* in addition to enum lender_verdict */ };

/* Returns 0 if nothing has changed, WATCHED_CHANGED, or an error of lender_borrow or
 * contents_read. */
int watched_refresh(struct watched *w);
void watched_done(struct watched *w);
static inline struct span watched_bytes(const struct watched *w)
{
	return (struct span){ .data = w->data, .len = w->len };
}

#endif
