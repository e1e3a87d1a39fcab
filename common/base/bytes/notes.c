/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/notes.h"

#include <elf.h>
#include "common/base/bytes/numbers.h"

#define PAD 4u

/* The padding after the last note may be missing. */
static bool take_padded(struct span *rest, size_t n, struct span *ret)
{
	const size_t pad = -n % PAD;
	struct span skipped;

	return span_take(rest, n, ret) &&
	       span_take(rest, numbers_smaller(pad, rest->len), &skipped);
}

bool notes_next(struct span *rest, struct note *ret)
{
	struct span name, content;
	Elf64_Nhdr n;

	if (!span_read(rest, &n, sizeof(n)) || !take_padded(rest, n.n_namesz, &name) ||
	    !take_padded(rest, n.n_descsz, &content))
		return false;
	while (name.len && !name.data[name.len - 1])
		name.len--;
	*ret = (struct note){ .type = n.n_type,
			      .name = { .data = (const char *)name.data,
					.len = (uint32_t)name.len },
			      .content = content };
	return true;
}

bool notes_find(struct span notes, const char *name, uint32_t type, size_t most, struct span *ret)
{
	struct note n;

	while (notes_next(&notes, &n)) {
		if (n.type != type || !str_eq(n.name, str_from(name)) || !n.content.len ||
		    n.content.len > most)
			continue;
		*ret = n.content;
		return true;
	}
	return false;
}
