/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/elf/ehpointer.h"

#include <dwarf.h>

#define INDIRECT 0x80
#define ALIGNED 0x50

int ehpointer_value(struct span *s, uint8_t encoding, uint64_t *ret)
{
	uint64_t raw = 0;
	int64_t wide;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
	case DW_EH_PE_signed:
		if (!span_read(s, &raw, 8))
			return EHPOINTER_CUT;
		break;
	case DW_EH_PE_uleb128:
		if (!leb128_unsigned(s, &raw))
			return EHPOINTER_CUT;
		break;
	case DW_EH_PE_sleb128:
		if (!leb128_signed(s, &wide))
			return EHPOINTER_CUT;
		raw = (uint64_t)wide;
		break;
	case DW_EH_PE_udata2:
		if (!span_read(s, &raw, 2))
			return EHPOINTER_CUT;
		break;
	case DW_EH_PE_sdata2:
		if (!span_read(s, &raw, 2))
			return EHPOINTER_CUT;
		raw = (uint64_t)(int64_t)(int16_t)raw;
		break;
	case DW_EH_PE_udata4:
		if (!span_read(s, &raw, 4))
			return EHPOINTER_CUT;
		break;
	case DW_EH_PE_sdata4:
		if (!span_read(s, &raw, 4))
			return EHPOINTER_CUT;
		raw = (uint64_t)(int64_t)(int32_t)raw;
		break;
	default:
		return EHPOINTER_UNSUPPORTED;
	}
	*ret = raw;
	return 0;
}

bool ehpointer_align(struct span *s, uint8_t encoding, uint64_t vaddr)
{
	struct span padding;

	return (encoding & 0x70) != ALIGNED || span_take(s, -vaddr & 7, &padding);
}

int ehpointer_read(struct span *s, uint8_t encoding, uint64_t vaddr,
		   const struct ehpointer_bases *bases, const uint64_t *function, uint64_t *ret)
{
	uint64_t base = 0, value;

	if (encoding == DW_EH_PE_omit || (encoding & INDIRECT))
		return EHPOINTER_UNSUPPORTED;
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		base = vaddr;
		break;
	case DW_EH_PE_textrel:
		if (!bases->has_text)
			return EHPOINTER_UNSUPPORTED;
		base = bases->text;
		break;
	case DW_EH_PE_datarel:
		if (!bases->has_data)
			return EHPOINTER_UNSUPPORTED;
		base = bases->data;
		break;
	case DW_EH_PE_funcrel:
		if (!function)
			return EHPOINTER_UNSUPPORTED;
		base = *function;
		break;
	case ALIGNED:
		if (!ehpointer_align(s, encoding, vaddr))
			return EHPOINTER_CUT;
		break;
	default:
		return EHPOINTER_UNSUPPORTED;
	}

	int r = ehpointer_value(s, encoding, &value);

	if (!r)
		*ret = base + value;
	return r;
}
