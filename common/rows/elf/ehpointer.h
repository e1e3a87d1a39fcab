/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoder of ehpointers: pointers in one of the encodings of call frame information (DW_EH_PE_*).
 * Pure: no I/O, no log.
 *
 * Source: Linux Standard Base 5.0, "DWARF Exception Header Encoding".
 */
#ifndef COMMON_ROWS_ELF_EHPOINTER_H
#define COMMON_ROWS_ELF_EHPOINTER_H

#include "common/base/bytes/leb128.h"
#include "common/base/bytes/span.h"

/* The bases that relative pointers are added to. */
struct ehpointer_bases {
	bool has_text, has_data;
	uint64_t text, data; /* ELF addresses */
};

enum ehpointer_verdict {
	EHPOINTER_UNSUPPORTED = 1, /* the encoding is not supported, or is DW_EH_PE_omit */
	EHPOINTER_CUT		   /* the bytes end too early */
};

/* Reads one encoded pointer (DW_EH_PE_*) from the front of s, which lies at ELF address `vaddr`,
 * and advances s. `function` is the base of DW_EH_PE_funcrel, or NULL. Returns 0 or enum
 * ehpointer_verdict. */
int ehpointer_read(struct span *s, uint8_t encoding, uint64_t vaddr,
		   const struct ehpointer_bases *bases, const uint64_t *function, uint64_t *ret);
/* Like ehpointer_read, but reads the number alone and adds no base. */
int ehpointer_value(struct span *s, uint8_t encoding, uint64_t *ret);
/* Skips the padding before an aligned pointer, if the pointer is one. Returns false if cut
 * short. */
bool ehpointer_align(struct span *s, uint8_t encoding, uint64_t vaddr);

/* Reads one byte. Returns false if the bytes end too early. */
static inline bool ehpointer_u8(struct span *s, uint8_t *ret)
{
	if (!s->len)
		return false;
	*ret = s->data[0];
	s->data++;
	s->len--;
	return true;
}

#endif
