/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the path of a cgroup. What is found lies in it. */
#include "tests/fuzz/must.h"
#include "tools/prof-export/otlp/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_inside(struct str s, struct str whole)
{
	must(!s.len || (s.data >= whole.data && s.data + s.len <= whole.data + whole.len &&
			!memchr(s.data, '/', s.len)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str path = { .data = (const char *)data, .len = (uint32_t)size };
	struct container c;

	container_parse(path, &c);
	is_inside(c.id, path);
	is_inside(c.service, path);
	must(c.pod_uid_len == 0 || c.pod_uid_len == 32 || c.pod_uid_len == CONTAINER_POD_UID);
	return 0;
}
