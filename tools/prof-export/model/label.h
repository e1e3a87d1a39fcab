/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels: names as every output shows them. Profiled programs choose their names and are untrusted.
 * So control characters, characters that reverse or hide text, and invalid UTF-8 become \xNN. A
 * label is one line of UTF-8. Each format replaces the other characters that it reserves.
 *
 * Labels mark some kinds of frames: `_[k]` at the end for the kernel, `[truncated: reason]`, and
 * `[file+0xaddress]` or `[python: gone]` for frames without a name. A name that begins or ends like
 * a mark gets a backslash before its bracket: `do_sys_open_\[k]`, `\[truncated: no-rows]`. So no
 * name can imitate a mark, nor one of other profilers, such as `[unknown]`.
 */
#ifndef PROF_EXPORT_MODEL_LABEL_H
#define PROF_EXPORT_MODEL_LABEL_H

#include "tools/prof-export/model/definitions/definitions.h"

/* Appends s, escaped as described. Backslashes are not escaped. Errors of buf_append. */
int label_escape(struct buf *b, struct str s);
/* Like label_escape, but also prevents that the name looks like a mark. */
int label_name(struct buf *b, struct str s);
/* The i-th call of a frame, innermost first: `name` or `name_[k]` (kernel). Without a name:
 * `[file+0xstart]` (the start of its function, or else the address), `[anon+0xaddress]`,
 * `[kernel+0xaddress]_[k]` or `[truncated: reason]`. */
int label_call(struct buf *b, const struct definitions *d, const struct model_frame *f, unsigned i);
/* Like label_call, without the kernel's mark. */
int label_plain(struct buf *b, const struct definitions *d, const struct model_frame *f,
		unsigned i);
/* For a function whose label is made of its start address: appends `at 0xaddress`, or `from
 * 0xaddress to 0xaddress`. Appends nothing for other frames. Only for models of MODEL_NAMES. */
int label_where(struct buf *b, const struct model_frame *f);
/* The number of calls that a frame shows; at least one. */
static inline unsigned label_calls(const struct model_frame *f)
{
	return f->count ? f->count : 1;
}
/* Appends the name that a process or thread gave itself, as label_name does. A name that looks like
 * a text of label_process or label_thread gets a backslash in front. Errors of buf_append. */
int label_comm(struct buf *b, struct str s);
/* The name of a process, or `pid-N` if it has none; [unknown] for MODEL_NONE. */
int label_process(struct buf *b, const struct definitions *d, uint32_t process);
int label_thread(struct buf *b, const struct definitions *d, uint32_t thread);
/* The file's path, `[kernel.kallsyms]`, `[module]`, or `[anon]`. */
int label_binary(struct buf *b, const struct definitions *d, const struct model_frame *f);

#endif
