/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the conditions for names that came over a wire: each lies within their text. */
#ifndef TESTS_FUZZ_NAMES_HOLD_H
#define TESTS_FUZZ_NAMES_HOLD_H

#include <string.h>
#include "common/names/names.h"
#include "tests/fuzz/must.h"

static inline void name_holds(const struct names *n, struct str s)
{
	must(s.len <= NAMES_TEXT &&
	     (!s.len || (s.data >= n->text && s.data + s.len <= n->text + n->used)));
	must(!s.len || !memchr(s.data, '\0', s.len));
}

static inline void names_hold(const struct names *n)
{
	for (unsigned i = 0; i < n->count; i++) {
		name_holds(n, n->calls[i].name);
		name_holds(n, n->calls[i].system_name);
		name_holds(n, n->calls[i].source);
	}
}

#endif
