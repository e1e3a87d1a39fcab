/* SPDX-License-Identifier: Apache-2.0 */
/* Prints messages as lines, for tests: `sample stack=3 thread=1 …`, with escaped strings. */
#ifndef TESTS_MSG_PRINT_H
#define TESTS_MSG_PRINT_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/base/bytes/buf.h"
#include "common/base/command/log.h"
#include "common/wire/msg.h"

static inline int msg_print_str(struct buf *b, struct str s)
{
	int r = buf_append(b, "\"", 1);

	/* Also escape quotes, which would end the string for a reader of the line. */
	while (!r && s.len) {
		const char *quote = memchr(s.data, '"', s.len);
		struct str part = { .data = s.data,
				    .len = quote ? (uint32_t)(quote - s.data) : s.len };

		r = log_escape(b, part, part.len);
		if (!r && quote)
			r = buf_append_str(b, "\\x22");
		s.data += part.len + (quote ? 1 : 0);
		s.len -= part.len + (quote ? 1 : 0);
	}
	return r ? r : buf_append(b, "\"", 1);
}

static inline int msg_print_bin(struct buf *b, struct span s)
{
	int r = 0;

	for (size_t i = 0; i < s.len && i < 64 && !r; i++)
		r = buf_printf(b, "%02x", s.data[i]);
	if (!r && s.len > 64)
		r = buf_printf(b, "…(%zu bytes)", s.len);
	return r;
}

static inline int msg_print_list(struct buf *b, struct msg_list l)
{
	int r = buf_append(b, "[", 1);

	for (uint32_t i = 0; i < l.len && !r; i++)
		r = buf_printf(b, "%s%" PRIu64, i ? "," : "", l.data[i]);
	return r ? r : buf_append(b, "]", 1);
}

static inline int msg_print_u64(struct buf *b, uint64_t n)
{
	return buf_printf(b, "%" PRIu64, n);
}

/* clang-format off */
static inline int msg_print_fields(struct buf *b, const struct msg *m)
{
	int r = 0;

	switch (m->id) {
#define MSG_BEGIN(NAME, name, id, way) \
	case MSG_##NAME: { \
		const struct msg_##name *at = &m->name; \
		r = buf_append_str(b, #name);
#define FIELD(how, field) \
		r = r ? r : buf_append_str(b, " " #field "="); \
		r = r ? r : how(b, at->field);
#define U64(field) FIELD(msg_print_u64, field)
#define STR(field, max) FIELD(msg_print_str, field)
#define BIN(field, max) FIELD(msg_print_bin, field)
#define LIST(field, max) FIELD(msg_print_list, field)
#define MSG_END(name) \
		break; \
	}
#include "common/wire/messages.def"
#undef FIELD
	}
	return r;
}
/* clang-format on */

static inline void msg_print(FILE *out, const struct msg *m)
{
	struct buf line = BUF_INIT(0);
	int r = msg_print_fields(&line, m);

	if (!r)
		r = buf_append(&line, "\n", 1);
	if (!r)
		fwrite(line.data, 1, line.len, out);
	else
		fprintf(out, "out of memory\n");
	buf_done(&line);
}

#endif
