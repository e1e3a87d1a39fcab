/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/queue/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define GZIP (MAX_WBITS + 16)
#define LEVEL 6
#define MEMORY_LEVEL 8

static struct request *new (const struct request_facts *facts, size_t len)
{
	struct request *r = malloc(sizeof(*r) + GRPC_HEAD + len);

	if (r)
		*r = (struct request){ .users = 1, .facts = *facts, .len = len };
	return r;
}

struct request *request_new(const struct request_facts *facts, struct span compressed)
{
	struct request *r = new (facts, compressed.len);

	if (!r)
		return NULL;
	grpc_head(r->frame, true, (uint32_t)compressed.len);
	if (compressed.len)
		memcpy(r->frame + GRPC_HEAD, compressed.data, compressed.len);
	return r;
}

struct request *request_compress(const struct request_facts *facts, struct span plain)
{
	z_stream z = { .zalloc = Z_NULL };

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	struct request *r = new (facts, deflateBound(&z, plain.len));

	if (r) {
		z.next_in = (Bytef *)plain.data;
		z.avail_in = (uInt)plain.len;
		z.next_out = r->frame + GRPC_HEAD;
		z.avail_out = (uInt)r->len;
		if (deflate(&z, Z_FINISH) != Z_STREAM_END) {
			free(r);
			r = NULL;
		}
	}
	if (r) {
		r->len = z.total_out;
		grpc_head(r->frame, true, (uint32_t)r->len);
		/* The compressed size is now known. If realloc fails, r stays as it is. */
		struct request *smaller = realloc(r, sizeof(*r) + GRPC_HEAD + r->len);

		r = smaller ? smaller : r;
	}
	deflateEnd(&z);
	return r;
}

struct request *request_use(struct request *r)
{
	r->users++;
	return r;
}

void request_drop(struct request *r)
{
	if (r && --r->users == 0)
		free(r);
}

struct span request_bytes(const struct request *r)
{
	return (struct span){ .data = r->frame + GRPC_HEAD, .len = r->len };
}

int request_expand(const struct request *r, uint8_t **ret)
{
	const size_t size = r->facts.size;
	z_stream z = { .zalloc = Z_NULL };

	if (size > REQUEST_MAX)
		return -EBADMSG;
	uint8_t *frame = malloc(GRPC_HEAD + size + 1);

	if (!frame || inflateInit2(&z, GZIP) != Z_OK) {
		free(frame);
		return -ENOMEM;
	}
	z.next_in = (Bytef *)(r->frame + GRPC_HEAD);
	z.avail_in = (uInt)r->len;
	z.next_out = frame + GRPC_HEAD;
	/* Allow one more byte, to detect data that is too long. */
	z.avail_out = (uInt)size + 1;
	const int e = inflate(&z, Z_FINISH);
	const bool good = e == Z_STREAM_END && z.total_out == size && !z.avail_in;

	inflateEnd(&z);
	if (!good) {
		free(frame);
		return e == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
	grpc_head(frame, false, (uint32_t)size);
	*ret = frame;
	return 0;
}
