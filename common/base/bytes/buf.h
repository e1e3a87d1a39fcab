/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a ceiling. It owns its bytes. Zero-initialise it with a ceiling;
 * buf_done frees. */
#ifndef COMMON_BASE_BYTES_BUF_H
#define COMMON_BASE_BYTES_BUF_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/span.h"

struct buf {
	uint8_t *data;
	size_t len, cap;
	size_t max; /* ceiling in bytes; 0 means none */
};

#define BUF_INIT(ceiling) ((struct buf){ .max = (ceiling) })

/* Makes room for n more bytes. 0, -ENOBUFS at the ceiling, -ENOMEM. */
int buf_reserve(struct buf *b, size_t n);
/* Appends, or changes nothing on error. The same errors. */
int buf_append(struct buf *b, const void *data, size_t n);
int buf_append_str(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drops the first n bytes (n <= len). */
void buf_consume(struct buf *b, size_t n);
void buf_reset(struct buf *b);
void buf_done(struct buf *b);
static inline struct span buf_span(const struct buf *b)
{
	return (struct span){ .data = b->data, .len = b->len };
}

#endif
