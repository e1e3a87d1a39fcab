/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and pointers as call frame information encodes them.
 *
 * Sources: DWARF 5, section 7.6 (LEB128); Linux Standard Base 5.0, "DWARF Exception Header
 * Encoding". Pure.
 */
#ifndef PROF_DELTAS_ENCODED_H
#define PROF_DELTAS_ENCODED_H

#include "common/span.h"
#include "tools/prof-deltas/expr.h"

/* What relative pointers are relative to. */
struct encoded_bases {
	bool has_text, has_data;
	uint64_t text, data; /* ELF addresses */
};

/* Reads one encoded pointer (DW_EH_PE_*) off s, which lies at ELF address `vaddr`. function: what
 * DW_EH_PE_funcrel is relative to, or NULL. 0; 1: an encoding that is not supported, or the pointer
 * is DW_EH_PE_omit; 2: cut short. */
int encoded_pointer(struct span *s, uint8_t encoding, uint64_t vaddr,
		    const struct encoded_bases *bases, const uint64_t *function, uint64_t *ret);
/* The same of the number alone, relative to nothing. */
int encoded_value(struct span *s, uint8_t encoding, uint64_t *ret);
/* Leaves out the bytes before an aligned pointer, if it is one. False: cut short. */
bool encoded_align(struct span *s, uint8_t encoding, uint64_t vaddr);

/* False: cut short, or too large. */
static inline bool encoded_uleb(struct span *s, uint64_t *ret)
{
	if (s->len && !(s->data[0] & 0x80)) {
		*ret = s->data[0];
		s->data++;
		s->len--;
		return true;
	}
	return expr_uleb(s, ret);
}

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
