/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/names.h"

#include "common/names/demangle.h"

void names_reset(struct names *n)
{
	n->count = 0;
	n->used = 0;
}

bool names_known(const struct names *n)
{
	for (unsigned i = 0; i < n->count; i++)
		if (n->calls[i].name.len)
			return true;
	return false;
}

struct str names_keep(struct names *n, const char *s, size_t len)
{
	char *at = n->text + n->used;

	if (len > NAMES_TEXT)
		len = NAMES_TEXT;
	if (len > sizeof(n->text) - n->used)
		len = sizeof(n->text) - n->used;
	memcpy(at, s, len);
	n->used += len;
	return (struct str){ .data = at, .len = (uint32_t)len };
}

void names_only(struct names *n, const struct names_call *c)
{
	struct names_call *to = &n->calls[0];

	names_reset(n);
	n->count = 1;
	*to = (struct names_call){ .line = c->line };
	to->name = names_keep(n, c->name.data, c->name.len);
	to->system_name = names_keep(n, c->system_name.data, c->system_name.len);
	if (c->source.len)
		to->source = names_keep(n, c->source.data, c->source.len);
}

/* Stores two names as one string, `before` first. */
static struct str keep_both(struct names *n, struct str before, struct str name)
{
	char both[NAMES_TEXT];
	const struct str first = str_cut(before, sizeof(both));
	const struct str rest = str_cut(name, (uint32_t)(sizeof(both) - first.len));

	if (first.len)
		memcpy(both, first.data, first.len);
	if (rest.len)
		memcpy(both + first.len, rest.data, rest.len);
	return names_keep(n, both, first.len + rest.len);
}

void names_join(struct names *n, struct names_call *c, const struct names_call *second)
{
	if (second->name.len) {
		c->name = keep_both(n, second->name, c->name);
		c->system_name = keep_both(n, second->system_name, c->system_name);
	}
	if (second->source.len) {
		c->source = names_keep(n, second->source.data, second->source.len);
		c->line = second->line;
		c->start_line = second->start_line;
	}
}

/* Stores a name with `@plt` appended. A long name is truncated so that this fits. */
static struct str keep_slot(struct names *n, const char *name, size_t len)
{
	static const char plt[] = "@plt";
	char slot[NAMES_TEXT];
	const struct str cut = str_cut((struct str){ .data = name, .len = (uint32_t)len },
				       sizeof(slot) - (sizeof(plt) - 1));

	memcpy(slot, cut.data, cut.len);
	memcpy(slot + cut.len, plt, sizeof(plt) - 1);
	return names_keep(n, slot, cut.len + sizeof(plt) - 1);
}

void names_set_slot(struct names *n, struct names_call *c, const char *system_name)
{
	char shown[DEMANGLE_MAX + 1];
	const size_t len = demangle(system_name, shown, sizeof(shown));

	c->system_name = keep_slot(n, system_name, strlen(system_name));
	c->name = keep_slot(n, shown, len);
}

void names_set(struct names *n, struct names_call *c, const char *system_name)
{
	char shown[DEMANGLE_MAX + 1];
	size_t len = demangle(system_name, shown, sizeof(shown));
	size_t system_len = strlen(system_name);

	c->system_name = names_keep(n, system_name, system_len);
	if (len == system_len && memcmp(shown, system_name, len) == 0)
		c->name = c->system_name;
	else
		c->name = names_keep(n, shown, len);
}
