/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/queue/spoolfile.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include "common/base/text/hex.h"

#define ENDING ".otlp"
#define DIGITS 16

static const char magic[8] = "pfsend\0\1"; /* the last byte is the version */

/* The format in the file. Our hosts are little-endian. */
struct head {
	char magic[8];
	uint64_t key, serial, id, samples, size;
	uint32_t len, crc;
	uint32_t zero;
	uint32_t head_crc; /* of the bytes before this field */
};
static_assert(sizeof(struct head) == SPOOLFILE_HEAD, "the head has no padding");

uint32_t spoolfile_crc(struct span bytes)
{
	return (uint32_t)crc32_z(0, bytes.data, bytes.len);
}

static uint32_t crc_of_head(const struct head *h)
{
	return spoolfile_crc((struct span){ .data = (const uint8_t *)h,
					    .len = offsetof(struct head, head_crc) });
}

void spoolfile_encode(const struct spoolfile *f, uint8_t ret[static SPOOLFILE_HEAD])
{
	struct head h = { .key = f->key,
			  .serial = f->serial,
			  .id = f->facts.id,
			  .samples = f->facts.samples,
			  .size = f->facts.size,
			  .len = f->len,
			  .crc = f->crc };

	memcpy(h.magic, magic, sizeof(h.magic));
	h.head_crc = crc_of_head(&h);
	memcpy(ret, &h, sizeof(h));
}

bool spoolfile_parse(struct span head, struct spoolfile *ret)
{
	struct head h;

	if (head.len != sizeof(h))
		return false;
	memcpy(&h, head.data, sizeof(h));
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.head_crc != crc_of_head(&h) || h.zero ||
	    h.len > SPOOLFILE_BYTES_MAX || h.size > REQUEST_MAX)
		return false;
	*ret = (struct spoolfile){
		.key = h.key,
		.serial = h.serial,
		.facts = { .id = h.id, .samples = h.samples, .size = h.size },
		.len = h.len,
		.crc = h.crc,
	};
	return true;
}

void spoolfile_name(uint64_t key, uint64_t serial, char ret[static SPOOLFILE_NAME])
{
	snprintf(ret, SPOOLFILE_NAME, "%016" PRIx64 "-%016" PRIx64 ENDING, key, serial);
}

/* Takes DIGITS lower-case hexadecimal digits from *at. */
static bool take_hex(const char **at, uint64_t *ret)
{
	uint64_t n = 0;

	for (int i = 0; i < DIGITS; i++, (*at)++) {
		const int digit = hex_lower(**at);

		if (digit < 0)
			return false;
		n = n << 4 | (uint64_t)digit;
	}
	*ret = n;
	return true;
}

bool spoolfile_parse_name(const char *name, uint64_t *ret_key, uint64_t *ret_serial, bool *ret_part)
{
	uint64_t key, serial;

	if (!take_hex(&name, &key) || *name++ != '-' || !take_hex(&name, &serial))
		return false;
	const bool part = strcmp(name, ENDING SPOOLFILE_PART) == 0;

	if (!part && strcmp(name, ENDING) != 0)
		return false;
	*ret_key = key;
	*ret_serial = serial;
	*ret_part = part;
	return true;
}
