/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/elf/section_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"

#define ZSTD_WINDOW_LOG 25 /* zstd may refer back to 32 MiB of decompressed bytes */

struct section_reader_unpacker {
	z_stream z;
	ZSTD_DStream *zstd; /* owned; NULL: zlib */
	ZSTD_inBuffer in;
	bool ended; /* the end of the stream was seen */
	uint8_t packed[SECTION_READER_WINDOW];
};

static void unpacker_free(struct section_reader_unpacker *u)
{
	if (!u)
		return;
	if (u->zstd)
		ZSTD_freeDStream(u->zstd);
	else
		inflateEnd(&u->z);
	free(u);
}

static struct section_reader_unpacker *unpacker_new(enum elf_packing packing)
{
	struct section_reader_unpacker *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	if (packing == ELF_ZSTD) {
		u->zstd = ZSTD_createDStream();
		if (u->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax,
								    ZSTD_WINDOW_LOG)))
			return u;
	} else if (inflateInit(&u->z) == Z_OK) {
		return u;
	}
	ZSTD_freeDStream(u->zstd);
	free(u);
	return NULL;
}

int section_reader_init(struct section_reader *s, int fd, const struct elf_section *section)
{
	*s = (struct section_reader){ .fd = fd,
				      .offset = section->offset,
				      .left = section->size,
				      .packing = section->packing };
	/* One byte more than the section, so that the first read already shows the end. */
	s->cap = section->packing == ELF_PLAIN && section->size < SECTION_READER_WINDOW
			 ? (size_t)section->size + 1
			 : SECTION_READER_WINDOW;
	s->window = malloc(s->cap);
	if (!s->window)
		return -ENOMEM;
	if (section->packing == ELF_PLAIN)
		return 0;
	s->unpacker = unpacker_new(section->packing);
	return s->unpacker ? 0 : -ENOMEM;
}

void section_reader_done(struct section_reader *s)
{
	unpacker_free(s->unpacker);
	free(s->window);
}

static int64_t read_file(struct section_reader *s, uint8_t *into, size_t n)
{
	int64_t got = fd_pread_all(s->fd, into, numbers_smaller(n, s->left), s->offset);

	if (got > 0) {
		s->offset += (uint64_t)got;
		s->left -= (uint64_t)got;
	}
	return got;
}

/* Decompresses one step into [at, at + n). Returns the number of bytes made, or -EBADMSG. */
static int64_t unpack(struct section_reader_unpacker *u, uint8_t *at, size_t n)
{
	if (u->zstd) {
		ZSTD_outBuffer out = { .dst = at, .size = n };
		size_t r = ZSTD_decompressStream(u->zstd, &out, &u->in);

		if (ZSTD_isError(r))
			return -EBADMSG;
		u->ended = r == 0;
		return (int64_t)out.pos;
	}

	u->z.next_in = u->packed + u->in.pos;
	u->z.avail_in = (uInt)(u->in.size - u->in.pos);
	u->z.next_out = at;
	u->z.avail_out = (uInt)n;

	int z = inflate(&u->z, Z_NO_FLUSH);

	if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
		return -EBADMSG;
	u->ended = z == Z_STREAM_END;
	u->in.pos = u->in.size - u->z.avail_in;
	return (int64_t)(n - u->z.avail_out);
}

/* Reads n bytes. Returns their number, less than n only at the end; -errno; -EBADMSG. */
static int64_t section_reader_read(struct section_reader *s, uint8_t *into, size_t n)
{
	struct section_reader_unpacker *u = s->unpacker;
	size_t made = 0;

	if (!u)
		return read_file(s, into, n);
	while (made < n && !u->ended) {
		if (u->in.pos == u->in.size) {
			int64_t got = read_file(s, u->packed, sizeof(u->packed));

			if (got < 0)
				return got;
			if (!got)
				break;
			u->in = (ZSTD_inBuffer){ .src = u->packed, .size = (size_t)got };
		}

		size_t before = u->in.pos;
		int64_t got = unpack(u, into + made, n - made);

		if (got < 0)
			return got;
		if (!got && u->in.pos == before && !u->ended)
			return -EBADMSG;
		made += (size_t)got;
	}
	return (int64_t)made;
}

int section_reader_fill(struct section_reader *s, size_t want)
{
	if (want > s->cap) {
		uint8_t *grown = realloc(s->window, want);

		if (!grown)
			return -ENOMEM;
		s->window = grown;
		s->cap = want;
	}

	size_t room = s->cap - s->len;

	if (room > SECTION_READER_MAX_SECTION - s->given)
		room = SECTION_READER_MAX_SECTION - s->given;

	int64_t got = section_reader_read(s, s->window + s->len, room);

	if (got < 0)
		return (int)got;
	s->end = (size_t)got < room || s->given + (uint64_t)got == SECTION_READER_MAX_SECTION;
	s->given += (uint64_t)got;
	s->len += (size_t)got;
	return 0;
}

void section_reader_drop(struct section_reader *s, size_t n)
{
	memmove(s->window, s->window + n, s->len - n);
	s->len -= n;
}
