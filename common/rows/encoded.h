/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and pointers in the encodings of call frame information.
 *
 * Sources: DWARF 5, section 7.6 (LEB128); Linux Standard Base 5.0, "DWARF Exception Header
 * Encoding". Pure.
 */
#ifndef COMMON_ROWS_ENCODED_H
#define COMMON_ROWS_ENCODED_H

#include "common/base/span.h"

/* The bases of relative pointers. */
struct encoded_bases {
	bool has_text, has_data;
	uint64_t text, data; /* ELF addresses */
};

/* Reads one encoded pointer (DW_EH_PE_*) off s, which lies at ELF address `vaddr`. `function` is
 * the base of DW_EH_PE_funcrel, or NULL. Returns 0; 1: the encoding is not supported, or the
 * pointer is DW_EH_PE_omit; 2: cut short. */
int encoded_pointer(struct span *s, uint8_t encoding, uint64_t vaddr,
		    const struct encoded_bases *bases, const uint64_t *function, uint64_t *ret);
/* Like encoded_pointer, but reads the number alone and adds no base. */
int encoded_value(struct span *s, uint8_t encoding, uint64_t *ret);
/* Skips the padding before an aligned pointer, if the pointer is one. Returns false if cut
 * short. */
bool encoded_align(struct span *s, uint8_t encoding, uint64_t vaddr);

/* Reads a LEB128 number (DWARF 5, section 7.6). Ignores bits beyond the 64th. Returns false if the
 * number is cut short or longer than 140 bits. */
static inline bool encoded_uleb_long(struct span *s, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (size_t i = 0; i < s->len; i++) {
		uint8_t byte = s->data[i];

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			s->data += i + 1;
			s->len -= i + 1;
			*ret = value;
			return true;
		}
		if (shift > 140)
			return false;
	}
	return false;
}

/* The same, inline for numbers of one byte, which most are. */
static inline bool encoded_uleb(struct span *s, uint64_t *ret)
{
	if (s->len && !(s->data[0] & 0x80)) {
		*ret = s->data[0];
		s->data++;
		s->len--;
		return true;
	}
	return encoded_uleb_long(s, ret);
}

static inline bool encoded_sleb(struct span *s, int64_t *ret)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (size_t i = 0; i < s->len; i++) {
		uint8_t byte = s->data[i];

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift < 64)
				value |= ~(uint64_t)0 << shift;
			s->data += i + 1;
			s->len -= i + 1;
			*ret = (int64_t)value;
			return true;
		}
		if (shift > 140)
			return false;
	}
	return false;
}

/* Returns false if cut short. */
static inline bool encoded_u8(struct span *s, uint8_t *ret)
{
	if (!s->len)
		return false;
	*ret = s->data[0];
	s->data++;
	s->len--;
	return true;
}

#endif
