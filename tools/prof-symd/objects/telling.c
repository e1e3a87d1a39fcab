/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/objects/telling.h"

#include <stdio.h>
#include <string.h>
#include "common/wire/marks.h"

void telling_reason(struct names *ret, const struct runtime_build *b, const char *what)
{
	char text[64];
	struct names_call *c = &ret->calls[0];

	snprintf(text, sizeof(text), "[%s: %s]", runtime_label(b), what);
	*c = (struct names_call){ .name = names_keep(ret, text, strlen(text)) };
	c->system_name = c->name;
	ret->count = 1;
}

/* Puts a backslash at this place of a name. */
static void insert_backslash(struct names *ret, struct str *name, uint32_t at)
{
	char text[NAMES_TEXT];
	const uint32_t len = str_cut(*name, sizeof(text) - 1).len;

	if (at > len)
		return;
	memcpy(text, name->data, at);
	text[at] = '\\';
	memcpy(text + at + 1, name->data + at, len - at);
	*name = names_keep(ret, text, len + 1);
}

/* A script's function may be called like a placeholder, or like one with a mark. A name that has
 * backslashes already gets another one, so that different names never look alike. */
static void guard(struct names *ret, struct str *name)
{
	struct str rest = *name;
	const uint32_t bracket = marks_code_bracket(rest);

	while (rest.len && *rest.data == '\\') {
		rest.data++;
		rest.len--;
	}
	if (bracket)
		insert_backslash(ret, name, bracket);
	else if (marks_is_placeholder(rest))
		insert_backslash(ret, name, 0);
}

bool telling_names(const struct runtime_build *b, const struct object_names *names, uint64_t mark,
		   struct names *ret)
{
	if (object_names_hidden(names))
		return false;
	object_names_tell(names, runtime_position(b->config.runtime, mark), ret);
	for (uint32_t i = 0; i < ret->count; i++)
		guard(ret, &ret->calls[i].name);
	return true;
}
