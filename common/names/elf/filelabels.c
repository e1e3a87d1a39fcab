/* SPDX-License-Identifier: Apache-2.0 */
/* Source of the hash: process.executable.build_id.htlhash of OpenTelemetry's conventions. */
#include "common/names/elf/filelabels.h"

#include <endian.h>
#include <mbedtls/md.h>
#include <string.h>

#define SHA256_BYTES 32

static void read_hash(const struct symfile *f, struct filelabels *l)
{
	const size_t part = l->size < FILELABELS_PART ? (size_t)l->size : FILELABELS_PART;
	const uint64_t size = htobe64(l->size);
	uint8_t bytes[2 * FILELABELS_PART + sizeof(size)], sum[SHA256_BYTES];

	if (symfile_read(f, 0, bytes, part) || symfile_read(f, l->size - part, bytes + part, part))
		return;
	memcpy(bytes + 2 * part, &size, sizeof(size));
	if (mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), bytes, 2 * part + sizeof(size),
		       sum))
		return;
	memcpy(l->hash, sum, FILELABELS_HASH);
	l->hash_len = FILELABELS_HASH;
}

void filelabels_read(const struct symfile *f, struct filelabels *ret)
{
	const struct str go = symfile_go_build_id(f);

	*ret = (struct filelabels){ .size = symfile_size(f), .go_build_id_len = go.len };
	read_hash(f, ret);
	if (go.len)
		memcpy(ret->go_build_id, go.data, go.len);
	ret->segment_count = symfile_code(f, ret->segments, FILELABELS_SEGMENTS);
}

bool filelabels_are_sane(const struct filelabels *l)
{
	return (!l->hash_len || l->hash_len == FILELABELS_HASH) &&
	       l->go_build_id_len <= sizeof(l->go_build_id) &&
	       l->segment_count <= FILELABELS_SEGMENTS && !l->zero;
}
