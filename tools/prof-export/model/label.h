/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as every output shows them. They are bytes of strangers: control characters, characters
 * that turn or hide text, and invalid UTF-8 become \xNN, so what comes out of here is one line of
 * UTF-8. What else a format reserves is for that format to replace.
 */
#ifndef PROFPIPE_LABEL_H
#define PROFPIPE_LABEL_H

#include "tools/prof-export/model/definitions.h"

/* Appends s as described; backslashes stay as they are. Errors of buf_append. */
int label_escape(struct buf *b, struct str s);
/* The i-th call of a frame, innermost first: `name`, `name_[k]`, `[file+0xstart]` by where the
 * function begins or, where nothing tells, `[file+0xaddress]`; `[anon+0xaddress]`,
 * `[kernel+0xaddress]_[k]`, `[truncated: reason]`. */
int label_call(struct buf *b, const struct definitions *d, const struct model_frame *f, unsigned i);
/* The same without the kernel's mark. */
int label_plain(struct buf *b, const struct definitions *d, const struct model_frame *f,
		unsigned i);
/* Where in an unnamed function that its label calls by its start: `at 0xaddress`, `from 0xaddress
 * to 0xaddress`; nothing for other frames. Models of MODEL_NAMES. */
int label_where(struct buf *b, const struct model_frame *f);
/* How many calls a frame shows: at least one. */
static inline unsigned label_calls(const struct model_frame *f)
{
	return f->count ? f->count : 1;
}
/* A process by its name, or `pid-N` without one; [unknown] for MODEL_NONE. */
int label_process(struct buf *b, const struct definitions *d, uint32_t process);
int label_thread(struct buf *b, const struct definitions *d, uint32_t thread);
/* The file's path, `[kernel.kallsyms]`, `[module]`, or `[anon]`. */
int label_binary(struct buf *b, const struct definitions *d, const struct model_frame *f);

#endif
