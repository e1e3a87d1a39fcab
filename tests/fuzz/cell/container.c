/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the path of a cgroup. A container's id that is found lies in it, and a target that names
 * the container by this id means this cgroup, or one above it. */
#include "common/cell/targets/container.h"

#include <stdlib.h>
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_inside(struct str s, struct str whole)
{
	must(!s.len || (s.data >= whole.data && s.data + s.len <= whole.data + whole.len &&
			!memchr(s.data, '/', s.len)));
}

/* The component of the path that contains this text. */
static char *part_of(struct str s, struct str whole)
{
	const char *from = s.data, *to = s.data + s.len, *end = whole.data + whole.len;

	while (from > whole.data && from[-1] != '/')
		from--;
	while (to < end && *to != '/')
		to++;
	return strndup(from, (size_t)(to - from));
}

static void is_meant(struct str id, struct str path)
{
	char *name = part_of(id, path), *text = strndup(id.data, id.len);

	must(name && text && container_is_id(text) && container_matches(name, text));
	text[CONTAINER_LEAST] = '\0';
	must(container_is_id(text) && container_matches(name, text));
	*text = *text == '0' ? '1' : '0';
	must(!container_matches(name, text));
	free(name);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str path = { .data = (const char *)data, .len = (uint32_t)size };
	struct container c;

	container_parse(path, &c);
	is_inside(c.id, path);
	is_inside(c.name, path);
	is_inside(c.service, path);
	must(!c.id.len || !c.name.len);
	must(c.pod_uid_len == 0 || c.pod_uid_len == 32 || c.pod_uid_len == CONTAINER_POD_UID);
	if (c.id.len)
		is_meant(c.id, path);
	return 0;
}
