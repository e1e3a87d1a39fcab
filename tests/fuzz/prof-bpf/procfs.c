/* SPDX-License-Identifier: Apache-2.0 */
/* Input: text of /proc, or side-band records; the first byte tells which. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/system/procfs.h"
#include "tools/prof-bpf/kernel/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct source {
	struct span rest;
	size_t piece;
};

static ssize_t take(void *ctx, void *to, size_t n)
{
	struct source *s = ctx;

	if (n > s->piece)
		n = s->piece;
	if (n > s->rest.len)
		n = s->rest.len;
	(void)span_read(&s->rest, to, n);
	return (ssize_t)n;
}

static void look(void *ctx, const struct procfs_mapping *m)
{
	size_t *found = ctx;

	assert(m->start < m->end && m->name.len <= PROCFS_LINE_MAX);
	/* Every byte of the name can be read. */
	for (uint32_t i = 0; i < m->name.len; i++)
		*found += m->name.data[i] == 'x';
}

static void record(struct span s)
{
	struct sideband_event e;
	bool malformed;

	if (s.len < 8)
		return;
	/* A copy with its size corrected, to reach the checks after that one. */
	uint8_t *copy = malloc(s.len);
	uint16_t size = (uint16_t)s.len;

	assert(copy);
	memcpy(copy, s.data, s.len);
	memcpy(copy + 6, &size, sizeof(size));
	s.data = copy;
	if (sideband_parse(s, &e, &malformed)) {
		assert(!malformed && e.name.len <= SIDEBAND_NAME_MAX);
		assert(!e.name.len || ((const uint8_t *)e.name.data >= copy &&
				       (const uint8_t *)e.name.data + e.name.len <= copy + s.len));
		bool deleted;
		(void)procfs_name_kind(&e.name, &deleted);
	}
	free(copy);
}

static void cgroup(struct span s)
{
	const struct str text = { .data = (const char *)s.data, .len = (uint32_t)s.len };
	struct str path;
	bool unified;

	if (procfs_parse_cgroup(text, &path, &unified) == 0)
		assert(path.len && path.data > text.data &&
		       path.data + path.len <= text.data + text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { .data = data + 1, .len = size - 1 };
	struct procfs_stat st;
	struct procfs_ids ids;
	uint32_t uid;
	size_t found = 0;

	if (!size)
		return 0;
	switch (data[0]) {
	case 's':
		(void)procfs_parse_stat(rest, &st);
		break;
	case 'u':
		(void)procfs_parse_status_uid(rest, &uid);
		(void)procfs_parse_status_ids(rest, &ids);
		break;
	case 'c':
		cgroup(rest);
		break;
	case 'r':
		record(rest);
		break;
	default: {
		struct source s = { .rest = rest, .piece = data[0] ? data[0] : 4096 };

		(void)procfs_stream_maps((struct procfs_source){ .read = take, .ctx = &s }, 1000,
					 look, &found);
	}
	}
	return 0;
}
