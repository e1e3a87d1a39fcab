/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/cfi/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/mix.h"

/* --- CIEs --- */

static uint32_t cie_hash(uint64_t offset)
{
	return (uint32_t)((offset * MIX_GOLDEN) >> 32);
}

static const struct cfi_cie *cie_find(struct cfi *c, uint64_t offset)
{
	if (c->cies && c->cie[c->last].offset == offset)
		return &c->cie[c->last];
	if (!c->slots)
		return NULL;
	for (uint32_t at = cie_hash(offset) & (c->slots - 1); c->slot[at];
	     at = (at + 1) & (c->slots - 1)) {
		if (c->cie[c->slot[at] - 1].offset == offset) {
			c->last = c->slot[at] - 1;
			return &c->cie[c->last];
		}
	}
	return NULL;
}

/* c->slot holds 1 + index, 0 where free, and is at most half full. */
static int cie_keep(struct cfi *c, const struct cfi_cie *cie)
{
	if (c->cies == c->cie_cap) {
		uint32_t cap = c->cie_cap ? c->cie_cap * 2 : 16, slots = cap * 2;

		if (cap > CFI_MAX_CIES) {
			c->machine.rows->skipped[ROWS_SKIP_CIE_LIMIT]++;
			return 0;
		}

		struct cfi_cie *kept = realloc(c->cie, cap * sizeof(*kept));

		if (!kept)
			return -ENOMEM;
		c->cie = kept;
		c->cie_cap = cap;

		uint32_t *slot = calloc(slots, sizeof(*slot));

		if (!slot)
			return -ENOMEM;
		free(c->slot);
		c->slot = slot;
		c->slots = slots;
		for (uint32_t i = 0; i < c->cies; i++) {
			uint32_t at = cie_hash(kept[i].offset) & (slots - 1);

			while (slot[at])
				at = (at + 1) & (slots - 1);
			slot[at] = i + 1;
		}
	}

	uint32_t at = cie_hash(cie->offset) & (c->slots - 1);

	while (c->slot[at])
		at = (at + 1) & (c->slots - 1);
	c->cie[c->cies] = *cie;
	c->slot[at] = ++c->cies;
	return 0;
}

/* Reads the augmentation. Returns 0, or the reason why the CIE is unusable. */
static int cie_augmentation(const char *letters, struct span s, uint64_t vaddr, struct cfi_cie *cie)
{
	const uint8_t *first = s.data;
	uint64_t ignored;
	uint8_t encoding;

	for (const char *l = letters; *l; l++) {
		switch (*l) {
		case 'R':
			if (!ehpointer_u8(&s, &cie->encoding))
				return ROWS_SKIP_CIE;
			break;
		case 'L':
			if (!ehpointer_u8(&s, &encoding))
				return ROWS_SKIP_CIE;
			break;
		case 'P':
			if (!ehpointer_u8(&s, &encoding))
				return ROWS_SKIP_CIE;
			if (encoding == DW_EH_PE_omit)
				break;
			/* Only the pointer's length matters. */
			if (!ehpointer_align(&s, encoding, vaddr + (uint64_t)(s.data - first)))
				return ROWS_SKIP_CIE;
			if (ehpointer_value(&s, encoding, &ignored) != 0)
				return ROWS_SKIP_CIE;
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* arm64: pointer authentication with the B key */
		case 'G': /* arm64: memory tagging */
			break;
		default:
			/* The data of an unknown letter has a length, so it can be skipped. Only an
			 * 'R' after it would be lost. */
			return strchr(l, 'R') ? ROWS_SKIP_CIE_AUGMENTATION : 0;
		}
	}
	return 0;
}

/* Whether the CIE's initial rule is the one that holds at a function's entry. */
static bool is_at_entry(const struct cfi_cie *cie)
{
	uint64_t uncounted[ROWS_SKIP_COUNT] = { 0 };
	struct unwind_rule rule;

	return cfi_state_rule(&cie->initial, cie->ra_column, false, uncounted, &rule) &&
	       rule.cfa == UNWIND_CFA_REG && rule.cfa_reg == UNWIND_REG_RSP && rule.cfa_off == 8 &&
	       rule.ra == UNWIND_RA_CFA;
}

/* Parses a CIE. s begins after the id, and its first byte lies at `vaddr`. Returns 0; -ENOMEM; or
 * the enum rows_skip that makes it unusable (never 0, which is ENTRY). */
static int cie_parse(struct cfi *c, struct span s, uint64_t vaddr, struct cfi_cie *cie)
{
	const uint8_t *first = s.data, *nul;
	uint8_t version, small, sizes[2];
	uint64_t len, code_align;
	int64_t data_align;
	struct span part;
	const char *letters;

	if (!ehpointer_u8(&s, &version))
		return ROWS_SKIP_CIE;
	if (version != 1 && version != 3 && version != 4)
		return ROWS_SKIP_CIE_VERSION;
	nul = s.len ? memchr(s.data, 0, s.len) : NULL;
	if (!nul)
		return ROWS_SKIP_CIE;
	letters = (const char *)s.data;
	span_take(&s, (size_t)(nul - s.data) + 1, &part);
	if (letters[0] == 'e' && letters[1] == 'h') {
		/* GCC 2: a pointer to GCC's own exception table. */
		if (!span_take(&s, 8, &part))
			return ROWS_SKIP_CIE;
		letters += 2;
	}
	if (version == 4 && (!span_read(&s, sizes, 2) || sizes[0] != 8 || sizes[1] != 0))
		return ROWS_SKIP_CIE_VERSION;
	if (!leb128_unsigned(&s, &code_align) || !leb128_signed(&s, &data_align) ||
	    code_align > UINT32_MAX || !cfi_s32(data_align, &cie->data_align) ||
	    data_align == INT32_MIN)
		return ROWS_SKIP_CIE;
	cie->code_align = (uint32_t)code_align;
	if (version == 1) {
		if (!ehpointer_u8(&s, &small))
			return ROWS_SKIP_CIE;
		cie->ra_column = small;
	} else if (!leb128_unsigned(&s, &cie->ra_column)) {
		return ROWS_SKIP_CIE;
	}
	if (letters[0] == 'z') {
		if (!leb128_unsigned(&s, &len) || !span_take(&s, len, &part))
			return ROWS_SKIP_CIE;
		cie->sized = true;

		int r = cie_augmentation(letters + 1, part, vaddr + (uint64_t)(part.data - first),
					 cie);

		if (r)
			return r;
	} else if (letters[0] && strncmp(letters, "armcc", 5) != 0) {
		/* Unknown letters add data of unknown length. Without 'z', parsing cannot
		 * continue. */
		return ROWS_SKIP_CIE_AUGMENTATION;
	}

	cie->matters = 1ull << c->machine.rows->tracked | 1ull << UNWIND_REG_RBP |
		       1ull << UNWIND_REG_RSP | (cie->ra_column < 64 ? 1ull << cie->ra_column : 0);
	cie->plain = cie->code_align == 1 && cie->data_align == -8 && cie->ra_column == 16 &&
		     c->machine.rows->tracked == UNWIND_REG_RBX;

	struct cfi_run run = { .m = &c->machine,
			       .cie = cie,
			       .vaddr = vaddr + (uint64_t)(s.data - first),
			       .first = s.data };
	cfi_state_init(&run.state);

	int r = cfi_run(&run, s);

	if (r < 0)
		return r;
	cie->initial = run.state;
	cie->at_entry = r == 0 && !cie->signal && is_at_entry(cie);
	return r == 0 ? 0 : r == CFI_RUN_OPCODE ? ROWS_SKIP_OPCODE : ROWS_SKIP_CIE;
}

/* --- FDEs --- */

/* Reads the start and the size of the function, and its augmentation data. Returns 0 or enum
 * ehpointer_verdict. */
static int read_extent(const struct cfi *c, const struct cfi_cie *cie, uint64_t vaddr,
		       struct span *s, uint64_t *ret_start, uint64_t *ret_size)
{
	struct span part;
	uint64_t len;
	int r = 0;

	if (cie->encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) && s->len >= 8) {
		int32_t start_size[2]; /* the encoding of nearly all FDEs */

		memcpy(start_size, s->data, 8);
		*ret_start = vaddr + (uint64_t)(int64_t)start_size[0];
		*ret_size = (uint64_t)(int64_t)start_size[1];
		s->data += 8;
		s->len -= 8;
	} else {
		r = ehpointer_read(s, cie->encoding, vaddr, &c->machine.bases, NULL, ret_start);
		if (!r)
			r = ehpointer_value(s, cie->encoding, ret_size);
	}
	if (!r && cie->sized && (!leb128_unsigned(s, &len) || !span_take(s, len, &part)))
		r = EHPOINTER_CUT;
	return r;
}

/* Runs the instructions of an FDE. If they leave out something that the function's code does, runs
 * them again with what the code shows. Returns as cfi_run does. */
static int run_instructions(struct cfi *c, struct cfi_run *run, struct span s)
{
	const struct cfi_run fresh = *run;
	const struct rows_pen pen = c->machine.rows->pen;
	const uint64_t start = run->function;
	struct ehreturn spoiled;
	struct stackcheck check;
	struct lispcall call;
	const int r = cfi_run(run, s);

	if (r == CFI_RUN_END && run->results == 3 && c->spoiled &&
	    c->spoiled(c->ctx, start, run->size, &spoiled)) {
		*run = fresh;
		run->spoiled = spoiled;
		c->machine.rows->pen = pen;
		return cfi_run(run, s);
	}
	if (r == CFI_RUN_END && run->beyond && c->checked &&
	    c->checked(c->ctx, start, run->size, &check)) {
		*run = fresh;
		c->machine.rows->pen = pen;
		return cfi_run_checked(run, s, &check);
	}
	if (r == CFI_RUN_END && c->lisp && cfi_run_in_callees_frame(run) &&
	    run->loc >= LISPCALL_FRAME &&
	    c->lisp(c->ctx, start + run->loc - LISPCALL_FRAME,
		    run->size - run->loc + LISPCALL_FRAME, &call))
		return cfi_run_called(run, &call);
	return r;
}

static int fde_run(struct cfi *c, const struct cfi_cie *cie, struct span s, uint64_t vaddr)
{
	uint64_t *skipped = c->machine.rows->skipped;
	const uint8_t *first = s.data;
	uint64_t start, size, left;
	uint32_t at;
	uint16_t number;
	int r = read_extent(c, cie, vaddr, &s, &start, &size);

	if (r) {
		skipped[r == EHPOINTER_UNSUPPORTED ? ROWS_SKIP_ENCODING : ROWS_SKIP_ENTRY]++;
		return 0;
	}
	if (!start || !size) {
		skipped[ROWS_SKIP_DISCARDED]++;
		return 0;
	}
	if (!rows_locate(c->machine.rows, start, &at, &left)) {
		skipped[ROWS_SKIP_OUTSIDE]++;
		return 0;
	}
	if (size > left)
		size = left;
	r = rows_open(c->machine.rows, at, at + (uint32_t)size);
	if (r)
		return r == MSG_ROWS_NONE ? 0 : r;
	if (cie->at_entry && c->moved && cfi_run_only_nops(first, s.data, s.data + s.len) &&
	    c->moved(c->ctx, start, size)) {
		skipped[ROWS_SKIP_NO_RULES]++;
		return 0;
	}
	r = rows_reserve(c->machine.rows, s.len + 5);
	if (r)
		return r;

	struct cfi_run run = {
		.m = &c->machine,
		.cie = cie,
		.state = cie->initial,
		.vaddr = vaddr + (uint64_t)(s.data - first),
		.first = s.data,
		.function = start,
		.size = c->machine.rows->pen.end - at,
		.at = at,
		.dirty = true,
	};

	r = run_instructions(c, &run, s);
	if (r < 0)
		return r;
	if (r != CFI_RUN_END) {
		skipped[r == CFI_RUN_OPCODE ? ROWS_SKIP_OPCODE : ROWS_SKIP_INSTRUCTIONS]++;
		r = cfi_unsupported(&c->machine, &number);
		if (!r)
			r = rows_add(c->machine.rows, at + (uint32_t)run.loc, number);
		if (r)
			return r;
	} else if (cie->signal && run.state.ra != CFI_VALUE_AT_REG) {
		skipped[ROWS_SKIP_SIGNAL_LAYOUT]++;
	}
	rows_close(c->machine.rows);
	return 0;
}

/* --- sections --- */

void cfi_init(struct cfi *c, struct rows *rows, bool eh, uint64_t vaddr,
	      const struct ehpointer_bases *bases)
{
	*c = (struct cfi){ .eh = eh, .vaddr = vaddr };
	cfi_machine_init(&c->machine, rows, bases);
}

void cfi_done(struct cfi *c)
{
	cfi_machine_done(&c->machine);
	free(c->cie);
	free(c->slot);
	c->cie = NULL;
	c->slot = NULL;
}

void cfi_skip(struct cfi *c, uint64_t n)
{
	c->pos += n;
	c->machine.rows->skipped[ROWS_SKIP_ENTRY_LONG]++;
}

/* Handles one whole entry. `at` is its offset in the section. `body` holds the bytes that its
 * length counts; they begin at offset body_at. */
static int entry(struct cfi *c, uint64_t at, struct span body, uint64_t body_at, bool wide)
{
	uint64_t id = 0;
	size_t id_size = wide && !c->eh ? 8 : 4; /* always four bytes in .eh_frame */
	bool is_cie;

	if (!span_read(&body, &id, id_size)) {
		c->machine.rows->skipped[ROWS_SKIP_ENTRY]++;
		return 0;
	}
	is_cie = c->eh ? id == 0 : id == (wide ? UINT64_MAX : UINT32_MAX);

	uint64_t vaddr = c->vaddr + body_at + id_size;

	if (is_cie) {
		struct cfi_cie cie = { .offset = at, .encoding = DW_EH_PE_absptr };
		int r = cie_parse(c, body, vaddr, &cie);

		if (r < 0)
			return r;
		c->machine.rows->cies++;
		cie.usable = r == 0;
		if (r)
			c->machine.rows->skipped[r]++;
		return cie_keep(c, &cie);
	}

	const struct cfi_cie *cie = cie_find(c, c->eh ? body_at - id : id);

	c->machine.rows->fdes++;
	if (!cie || !cie->usable) {
		c->machine.rows->skipped[ROWS_SKIP_NO_CIE]++;
		return 0;
	}
	return fde_run(c, cie, body, vaddr);
}

int cfi_feed(struct cfi *c, struct span bytes, bool last, size_t *ret_used, uint64_t *ret_want)
{
	struct span s = bytes;
	int r = 0;

	*ret_want = 0;
	while (!c->ended && s.len) {
		struct span at = s, body;
		uint32_t short_len = 0;
		uint64_t len, head = 4;

		if (!span_read(&s, &short_len, 4)) {
			*ret_want = 4;
			s = at;
			break;
		}
		len = short_len;
		if (short_len == UINT32_MAX) {
			head = 12;
			if (!span_read(&s, &len, 8)) {
				*ret_want = 12;
				s = at;
				break;
			}
		}
		if (!len) {
			/* Linkers leave terminators in the middle if crtend.o is not the last
			 * file. */
			c->pos += head;
			c->ended = c->stop_at_zero;
			continue;
		}
		if (!span_take(&s, len, &body)) {
			*ret_want = len > UINT64_MAX - head ? UINT64_MAX : len + head;
			s = at;
			break;
		}
		r = entry(c, c->pos, body, c->pos + head, head == 12);
		if (r)
			break;
		c->pos += len + head;
	}
	if (*ret_want && last) {
		/* The entry is cut short, or its length is wrong. */
		c->machine.rows->skipped[ROWS_SKIP_ENTRY]++;
		c->ended = true;
	}
	*ret_used = bytes.len - s.len;
	return r;
}
