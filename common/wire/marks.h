/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks in names. A placeholder, such as `[python: gone]`, is the name that prof-symd gives an
 * interpreted frame whose own name it cannot read. Outputs append `_[k]` to names of the kernel,
 * and such as `_[c2]` for the kind of code.
 *
 * Programs choose the names of their functions. So a name that looks like a placeholder, or as if
 * it had a mark, gets a backslash in front of the bracket: from prof-symd for interpreted frames,
 * whose marks it sends, and from prof-export for others.
 */
#ifndef COMMON_WIRE_MARKS_H
#define COMMON_WIRE_MARKS_H

#include "common/base/bytes/str.h"

#define MARKS_GONE "gone"
#define MARKS_NOT_READ "memory not read"
#define MARKS_KERNEL "_[k]"

/* By enum runtime_code of bpf/runtime.h; empty: unknown. */
static const char *const marks_of_code[] = { "", "_[i]", "_[c1]", "_[c2]", "_[n]" };
#define MARKS_CODES (sizeof(marks_of_code) / sizeof(marks_of_code[0]))

static inline bool marks_is_placeholder(struct str s)
{
	return str_starts(s, "[") &&
	       (str_ends(s, " " MARKS_GONE "]") || str_ends(s, " " MARKS_NOT_READ "]"));
}

/* Returns the offset of the bracket if s ends with this mark, perhaps with backslashes in front of
 * the bracket; otherwise 0. */
static inline uint32_t marks_bracket(struct str s, const char *mark)
{
	const struct str end = str_from(mark + 1);
	uint32_t at = s.len > end.len && str_ends_with(s, end) ? s.len - end.len : 0;
	const uint32_t bracket = at;

	while (at && s.data[at - 1] == '\\')
		at--;
	return at && s.data[at - 1] == '_' ? bracket : 0;
}

/* Likewise, for all marks of kinds of code. */
static inline uint32_t marks_code_bracket(struct str s)
{
	uint32_t at = 0;

	for (size_t i = 1; !at && i < MARKS_CODES; i++)
		at = marks_bracket(s, marks_of_code[i]);
	return at;
}

#endif
