/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a core file: headers, notes, memory, build ids. The parts that are found must be sorted,
 * must not overlap, and must be within the file.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/must.h"
#include "tools/prof-dump/process/core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ranges(const struct core *c)
{
	uint8_t word[8];

	for (size_t i = 0; i < c->range_count; i++) {
		const struct core_range *r = &c->ranges[i];

		must(r->start < r->end && r->filled <= r->end - r->start);
		must(!r->filled || (r->offset <= c->size && r->filled <= c->size - r->offset));
		must(i == 0 || c->ranges[i - 1].end <= r->start);
		must(core_range_at(c, r->start) == r && core_range_at(c, r->end - 1) == r);
		int got = core_read(c, word, sizeof(word), r->start);

		must(got == 0 || r->filled < sizeof(word));
		(void)core_read(c, word, sizeof(word), r->start + r->filled - 4);
	}
	(void)core_read(c, word, sizeof(word), UINT64_MAX - 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[CORE_BUILD_ID];
	struct core *c;
	int fd = memory_file_open(data, size);

	int r = core_open(fd, &c);

	if (r) {
		must(r > 0 && strlen(core_verdict_text(r)) > 0);
		return 0;
	}
	must(c->thread_count > 0 && c->size == size && c->wanted_size >= size);
	check_ranges(c);
	for (size_t i = 0; i < c->file_count; i++) {
		const struct core_file *f = &c->files[i];

		must(f->start < f->end && strlen(f->path) < size);
		must(i == 0 || c->files[i - 1].end <= f->start);
		must(core_file_at(c, f->start) == f);
		must(core_build_id(c, f->start, id) <= sizeof(id));
	}
	if (c->vdso)
		(void)core_build_id(c, c->vdso, id);
	core_free(c);
	return 0;
}
