/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels: names as every output shows them. Strangers choose names, so control characters,
 * characters that turn or hide text, and invalid UTF-8 become \xNN. A label is one line of UTF-8.
 * Each format replaces the other characters that it reserves.
 *
 * Labels show some kinds of frames by marks: `_[k]` at the end, `[truncated: reason]`, and
 * `[file+0xaddress]` or `[python: gone]` for what has no
 * name. A name that ends or begins like a mark gets a backslash
 * before its bracket: `do_sys_open_\[k]`, `\[truncated: no-rows]`. So no name can imitate a mark.
 */
#ifndef PROF_EXPORT_MODEL_LABEL_H
#define PROF_EXPORT_MODEL_LABEL_H

#include "tools/prof-export/model/definitions.h"

/* Appends s as described; backslashes stay as they are. Errors of buf_append. */
int label_escape(struct buf *b, struct str s);
/* The same for a name that must not look like a mark. */
int label_name(struct buf *b, struct str s);
/* The i-th call of a frame, innermost first: `name` or `name_[k]` (kernel). Without a name:
 * `[file+0xstart]` (the start of its function, or else the address), `[anon+0xaddress]`,
 * `[kernel+0xaddress]_[k]` or `[truncated: reason]`. */
int label_call(struct buf *b, const struct definitions *d, const struct model_frame *f, unsigned i);
/* The same without the kernel's mark. */
int label_plain(struct buf *b, const struct definitions *d, const struct model_frame *f,
		unsigned i);
/* For a function that its label names by its start: `at 0xaddress`, or `from 0xaddress to
 * 0xaddress`. Nothing for other frames. Models of MODEL_NAMES only. */
int label_where(struct buf *b, const struct model_frame *f);
/* How many calls a frame shows: at least one. */
static inline unsigned label_calls(const struct model_frame *f)
{
	return f->count ? f->count : 1;
}
/* The name that a process or thread gave itself, as label_name. One that looks like the words of
 * label_process and label_thread gets a backslash in front. Errors of buf_append. */
int label_comm(struct buf *b, struct str s);
/* The name of a process, or `pid-N` without one; [unknown] for MODEL_NONE. */
int label_process(struct buf *b, const struct definitions *d, uint32_t process);
int label_thread(struct buf *b, const struct definitions *d, uint32_t thread);
/* The file's path, `[kernel.kallsyms]`, `[module]`, or `[anon]`. */
int label_binary(struct buf *b, const struct definitions *d, const struct model_frame *f);

#endif
