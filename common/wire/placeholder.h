/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placeholders: the names that prof-symd gives interpreted frames whose name it cannot read, such
 * as `[python: gone]`. Scripts choose the names of their functions, so a name that looks like a
 * placeholder gets a backslash in front.
 */
#ifndef COMMON_WIRE_PLACEHOLDER_H
#define COMMON_WIRE_PLACEHOLDER_H

#include "common/base/bytes/str.h"

#define PLACEHOLDER_GONE "gone"
#define PLACEHOLDER_NOT_READ "memory not read"

static inline bool placeholder_like(struct str s)
{
	return str_starts(s, "[") &&
	       (str_ends(s, " " PLACEHOLDER_GONE "]") || str_ends(s, " " PLACEHOLDER_NOT_READ "]"));
}

#endif
