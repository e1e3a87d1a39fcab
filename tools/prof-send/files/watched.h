/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watched file: the contents of a file that may be replaced or rewritten while prof-send runs.
 * After a change it is read again; if that fails or the new contents cannot be used, the last
 * contents remain valid. The contents may be secret, so they are overwritten before their memory is
 * freed.
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
	/* Returns 0, or a verdict about contents that cannot be used. NULL: all can. */
	int (*check)(struct span contents);
	int verdict; /* the latest result of check */
	uint64_t dev, inode, size, mtime_ns, ctime_ns;
	uint8_t *data;
	size_t len;
};

/* In addition to enum lender_verdict. */
enum watched_verdict {
	WATCHED_CHANGED = 16,
	WATCHED_REFUSED = 17, /* `check` has refused the contents; `verdict` says why */
};

/* Returns 0 if nothing has changed, enum watched_verdict, or an error of lender_borrow or
 * contents_read. */
int watched_refresh(struct watched *w);
void watched_done(struct watched *w);
static inline struct span watched_bytes(const struct watched *w)
{
	return (struct span){ .data = w->data, .len = w->len };
}

#endif
