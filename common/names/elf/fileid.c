/* SPDX-License-Identifier: Apache-2.0 */
/* Source of the hash: process.executable.build_id.htlhash of OpenTelemetry's conventions. */
#include "common/names/elf/fileid.h"

#include <endian.h>
#include <mbedtls/md.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

#define SHA256_BYTES 32

static void read_htlhash(const struct symfile *f, struct fileid *id)
{
	const size_t part = numbers_smaller(id->size, FILEID_PART);
	const uint64_t size = htobe64(id->size);
	uint8_t bytes[2 * FILEID_PART + sizeof(size)], sum[SHA256_BYTES];

	if (symfile_read(f, 0, bytes, part) || symfile_read(f, id->size - part, bytes + part, part))
		return;
	memcpy(bytes + 2 * part, &size, sizeof(size));
	if (mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), bytes, 2 * part + sizeof(size),
		       sum))
		return;
	memcpy(id->htlhash, sum, FILEID_HTLHASH);
	id->htlhash_len = FILEID_HTLHASH;
}

void fileid_read(const struct symfile *f, struct fileid *ret)
{
	const struct span gnu = symfile_build_id(f);
	const struct str go = symfile_go_build_id(f);
	struct symfile_range code[FILEID_SEGMENTS];

	*ret = (struct fileid){ .size = symfile_size(f),
				.gnu_len = (uint32_t)gnu.len,
				.go_len = go.len };
	if (gnu.len)
		memcpy(ret->gnu, gnu.data, gnu.len);
	if (go.len)
		memcpy(ret->go, go.data, go.len);
	read_htlhash(f, ret);
	ret->segment_count = symfile_code(f, code, FILEID_SEGMENTS);
	for (uint32_t i = 0; i < ret->segment_count; i++)
		memcpy(&ret->segments[3 * i],
		       (uint64_t[]){ code[i].offset, code[i].size, code[i].address },
		       3 * sizeof(uint64_t));
}

bool fileid_is_sane(const struct fileid *id)
{
	return id->gnu_len <= sizeof(id->gnu) && id->go_len <= sizeof(id->go) &&
	       (!id->htlhash_len || id->htlhash_len == sizeof(id->htlhash)) &&
	       id->segment_count <= FILEID_SEGMENTS;
}

bool fileid_address(const struct fileid *id, uint64_t offset, uint64_t *ret)
{
	for (uint32_t i = 0; i < id->segment_count; i++) {
		const uint64_t *s = &id->segments[3 * (size_t)i];

		if (offset < s[0] || offset - s[0] >= s[1])
			continue;
		*ret = s[2] + (offset - s[0]);
		return true;
	}
	return false;
}
