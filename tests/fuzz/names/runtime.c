/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a file that may contain an interpreter. prof-bpf accepts each description made of it. */
#include <assert.h>
#include "common/names/runtime/hotspot/hotspot.h"
#include "common/names/runtime/python/python.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_python(const struct runtime_build *b)
{
	struct python_config c;

	memcpy(&c, b->config.own, sizeof(c));
	assert(c.frame_bytes <= PYTHON_FRAME_BYTES && c.frame_bytes % 8 == 0);
	assert(c.code_check_words <= PYTHON_CHECK_WORDS);
}

static void check_hotspot(const struct runtime_build *b)
{
	struct hotspot_config c;

	memcpy(&c, b->config.own, sizeof(c));
	assert(b->config.takes == RUNTIME_TAKES_GENERATED);
	assert(c.blob_bytes <= HOTSPOT_BLOB_BYTES && c.blob_bytes % 8 == 0);
	assert(c.const_bytes <= HOTSPOT_CONST_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text = BUF_INIT(0);
	struct runtime_build b;
	struct symfile *f;
	int r;

	if (symfile_open_bytes((struct span){ .data = data, .len = size }, &f) != 0)
		return 0;
	r = runtime_describe(f, &b);
	assert(r == 0 || r == RUNTIME_NOT_MINE);
	if (r == 0) {
		assert(b.config.runtime == RUNTIME_PYTHON || b.config.runtime == RUNTIME_HOTSPOT);
		assert(memchr(b.name, '\0', sizeof(b.name)) && b.name[0]);
		assert(runtime_print(&b, &text) == 0 && text.len > 0);
	}
	if (r == 0 && runtime_find_mark(f, &b) == 0 && b.known)
		assert(b.mark + strlen(runtime_mark(b.config.runtime)) < size &&
		       strcmp((const char *)data + b.mark, runtime_mark(b.config.runtime)) == 0);
	if (r == 0 && b.known) {
		assert(b.config.ranges <= RUNTIME_RANGES);
		for (uint32_t i = 0; i < b.config.ranges; i++)
			assert(b.config.loop[i].start < b.config.loop[i].end);
		assert(runtime_is_sane(&b));
		if (b.config.runtime == RUNTIME_PYTHON)
			check_python(&b);
		else
			check_hotspot(&b);
	}
	buf_done(&text);
	symfile_free(f);
	return 0;
}
