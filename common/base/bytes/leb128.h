/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in LEB128 (DWARF 5, section 7.6), taken from the beginning of a span. Pure. */
#ifndef COMMON_BASE_BYTES_LEB128_H
#define COMMON_BASE_BYTES_LEB128_H

#include "common/base/bytes/span.h"

/* Bits beyond the 64th are ignored. *ret_bits: how many there are; *ret_last: the last byte. False:
 * the number is cut short or longer than 140 bits. */
static inline bool leb128_bits(struct span *s, uint64_t *ret, unsigned *ret_bits, uint8_t *ret_last)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (size_t i = 0; i < s->len && shift <= 140; i++) {
		const uint8_t byte = s->data[i];

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			s->data += i + 1;
			s->len -= i + 1;
			*ret = value;
			*ret_bits = shift;
			*ret_last = byte;
			return true;
		}
	}
	return false;
}

static inline bool leb128_unsigned(struct span *s, uint64_t *ret)
{
	unsigned bits;
	uint8_t last;

	/* Most numbers have one byte. */
	if (s->len && !(s->data[0] & 0x80)) {
		*ret = s->data[0];
		s->data++;
		s->len--;
		return true;
	}
	return leb128_bits(s, ret, &bits, &last);
}

static inline bool leb128_signed(struct span *s, int64_t *ret)
{
	uint64_t value;
	unsigned bits;
	uint8_t last;

	if (!leb128_bits(s, &value, &bits, &last))
		return false;
	if ((last & 0x40) && bits < 64)
		value |= ~(uint64_t)0 << bits;
	*ret = (int64_t)value;
	return true;
}

#endif
