/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointers in the encodings of call frame information. Pure.
 *
 * Source: Linux Standard Base 5.0, "DWARF Exception Header Encoding".
 */
#ifndef COMMON_ROWS_ENCODED_H
#define COMMON_ROWS_ENCODED_H

#include "common/base/bytes/leb128.h"
#include "common/base/bytes/span.h"

/* The bases of relative pointers. */
struct encoded_bases {
	bool has_text, has_data;
	uint64_t text, data; /* ELF addresses */
};

enum encoded_verdict {
	ENCODED_UNSUPPORTED = 1, /* this encoding, or DW_EH_PE_omit */
	ENCODED_CUT		 /* the bytes end too early */
};

/* Reads one encoded pointer (DW_EH_PE_*) off s, which lies at ELF address `vaddr`. `function` is
 * the base of DW_EH_PE_funcrel, or NULL. Returns 0 or enum encoded_verdict. */
int encoded_pointer(struct span *s, uint8_t encoding, uint64_t vaddr,
		    const struct encoded_bases *bases, const uint64_t *function, uint64_t *ret);
/* Like encoded_pointer, but reads the number alone and adds no base. */
int encoded_value(struct span *s, uint8_t encoding, uint64_t *ret);
/* Skips the padding before an aligned pointer, if the pointer is one. Returns false if cut
 * short. */
bool encoded_align(struct span *s, uint8_t encoding, uint64_t vaddr);

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
