/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the memory of a mapped file; its length selects the address. The file made of it has the
 * same bytes, except in PT_DYNAMIC.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/prof-dump/space/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *data;
	size_t size;
	uint64_t at;
};

static long read_memory(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct bytes *m = ctx;

	if (addr < m->at || addr - m->at > m->size || size > m->size - (addr - m->at))
		return -1;
	memcpy(dst, m->data + (addr - m->at), size);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct image image;
	struct bytes m = { .data = data, .size = size, .at = (uint64_t)(size % 64) << 12 };
	uint8_t byte;

	image = (struct image){ 0 };
	image_piece(&image, m.at, m.at + size / 2, 0);
	image_piece(&image, m.at + size / 2, m.at + size, size / 2);
	/* One piece that claims to be longer than it is, at an offset from the input. */
	if (size >= 16)
		image_piece(&image, m.at, m.at + size + 100, (uint64_t)data[8] << data[9] % 64);
	int fd = image_make(&image, read_memory, &m);

	if (fd < 0)
		return 0;
	if (size && (pread(fd, &byte, 1, 0) != 1 || byte != data[0]))
		abort();
	close(fd);
	return 0;
}
