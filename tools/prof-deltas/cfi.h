/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: the entries (CIE, FDE) of an .eh_frame or .debug_frame section, run into
 * rows.
 *
 * A section is fed in pieces, front to back, so that it need not lie in memory whole. An entry that
 * cannot be understood costs itself and nothing else, and is counted in rows.skipped.
 *
 * Sources: DWARF 5, section 6.4; Linux Standard Base 5.0, "Exception Frames" (.eh_frame,
 * augmentations, pointer encodings, .eh_frame_hdr);
 * System V psABI for x86-64, figure 3.36 (register numbers). Pure: no I/O, no log.
 */
#ifndef PROF_DELTAS_CFI_H
#define PROF_DELTAS_CFI_H

#include "common/span.h"
#include "tools/prof-deltas/rows.h"

#define CFI_MAX_ENTRY (4u << 20) /* bytes of one entry */
#define CFI_MAX_CIES (1u << 17)	 /* CIEs kept of one section */
#define CFI_CACHE 512		 /* rules whose numbers are at hand; a power of two */

/* What relative pointers are relative to. */
struct cfi_bases {
	bool has_text, has_data;
	uint64_t text, data; /* ELF addresses */
};

/* Reads one encoded pointer (DW_EH_PE_*) off s, which lies at ELF address `vaddr`. 0; 1: an
 * encoding that is not supported, or the pointer is DW_EH_PE_omit; 2: cut short. */
int cfi_pointer(struct span *s, uint8_t encoding, uint64_t vaddr, const struct cfi_bases *bases,
		const uint64_t *function, uint64_t *ret);

/*
 * The rules in force while instructions build them up. What most are is kept as the bytes of the
 * rule that it makes (struct unwind_rule), so that it can be looked up as it is; what a rule cannot
 * say, or only after a conversion, is marked in the place of its flags and kept beside.
 */
struct cfi_state {
	uint64_t head;	/* cfa, cfa_reg, rbp, ra, enum odd of cfi.c, ra_reg, rbp_reg, rbx */
	uint64_t where; /* cfa_off | rbp_off << 32 */
	int32_t cfa_add, ra_off, sp_off; /* bytes */
	int32_t kept_off;   /* of the register and offset that an expression has replaced */
	uint8_t ra, ra_reg; /* enum value of cfi.c */
	uint8_t sp, sp_reg;
};

/* A rule that is all in these two, and its number. */
struct cfi_known {
	uint64_t head, where;
	uint32_t number;
};

struct cfi_cie {
	uint64_t offset; /* in the section */
	uint32_t code_align;
	int32_t data_align;
	uint64_t ra_column;
	uint64_t matters;	    /* registers that do, as bits */
	bool plain;		    /* factors 1 and -8, return address column 16 */
	uint8_t encoding;	    /* of an FDE's pointers */
	bool usable, sized, signal; /* sized: 'z', an FDE's augmentation data has a length */
	struct cfi_state initial;
};

struct cfi {
	struct rows *rows; /* borrowed: gets the rows, already laid out */
	bool eh;	   /* .eh_frame, else .debug_frame */
	bool stop_at_zero; /* a zero length ends the section: where its size is not known */
	bool ended;
	uint64_t vaddr; /* ELF address of the section */
	uint64_t pos;	/* offset in the section of the next byte to be fed */
	struct cfi_bases bases;

	struct cfi_cie *cie;
	uint32_t cies, cie_cap, *slot, slots;
	uint32_t last;	     /* CIE used last */
	int32_t unsupported; /* number of the rule for what cannot be expressed, -1 before its first
				use */
	struct cfi_state
		*states; /* remembered ones: as many as an entry asks for, below its size */
	size_t state_cap;
	struct cfi_known known[CFI_CACHE];
};

void cfi_init(struct cfi *c, struct rows *rows, bool eh, uint64_t vaddr,
	      const struct cfi_bases *bases);
void cfi_done(struct cfi *c);
/* Takes whole entries off the front of `bytes`, which begin at c->pos. `last`: nothing follows
 * them. *ret_used: how many bytes were taken; *ret_want: how many the next entry needs to be taken
 * (more than are left; over CFI_MAX_ENTRY when it is to be left out: go on from c->pos + *ret_want
 * with cfi_skip). 0, ROWS_TOO_LARGE, -ENOMEM. */
int cfi_feed(struct cfi *c, struct span bytes, bool last, size_t *ret_used, uint64_t *ret_want);
/* Leaves n bytes out, an entry that is too long. */
void cfi_skip(struct cfi *c, uint64_t n);

#endif
