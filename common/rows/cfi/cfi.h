/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: the entries (CIE, FDE) of an .eh_frame or .debug_frame section, run into
 * rows (cfi_run.h).
 *
 * A section is fed in pieces, front to back, so that it need not lie in memory whole. An entry that
 * cannot be understood costs itself and nothing else, and is counted in rows.skipped.
 *
 * Sources: DWARF 5, section 6.4.1; Linux Standard Base 5.0, "Exception Frames" (.eh_frame,
 * augmentations, .eh_frame_hdr). Pure: no I/O, no log.
 */
#ifndef PROFPIPE_CFI_H
#define PROFPIPE_CFI_H

#include "common/base/span.h"
#include "common/rows/cfi/cfi_run.h"

#define CFI_MAX_ENTRY (4u << 20) /* bytes of one entry */
#define CFI_MAX_CIES (1u << 17)	 /* CIEs kept of one section */

struct cfi {
	struct cfi_machine machine;
	bool eh;	   /* .eh_frame, else .debug_frame */
	bool stop_at_zero; /* a zero length ends the section: where its size is not known */
	bool ended;
	uint64_t vaddr; /* ELF address of the section */
	uint64_t pos;	/* offset in the section of the next byte to be fed */

	struct cfi_cie *cie;
	uint32_t cies, cie_cap, *slot, slots;
	uint32_t last; /* CIE used last */

	/* Where the rules of a function that throws do not hold (ehreturn.h): of the `size` bytes
	 * at an ELF address. Not asked where it is NULL, as it is after cfi_init. */
	bool (*spoiled)(void *ctx, uint64_t address, uint64_t size, struct ehreturn *ret);
	/* Likewise the stack check of a function that has rules for the byte behind it
	 * (stackcheck.h). */
	bool (*checked)(void *ctx, uint64_t address, uint64_t size, struct stackcheck *ret);
	void *ctx;
};

void cfi_init(struct cfi *c, struct rows *rows, bool eh, uint64_t vaddr,
	      const struct encoded_bases *bases);
void cfi_done(struct cfi *c);
/* Takes whole entries off the front of `bytes`, which begin at c->pos. `last`: nothing follows
 * them. *ret_used: how many bytes were taken; *ret_want: how many the next entry needs to be taken
 * (more than are left; over CFI_MAX_ENTRY when it is to be left out: go on from c->pos + *ret_want
 * with cfi_skip). 0, ROWS_TOO_LARGE, -ENOMEM. */
int cfi_feed(struct cfi *c, struct span bytes, bool last, size_t *ret_used, uint64_t *ret_want);
/* Leaves n bytes out, an entry that is too long. */
void cfi_skip(struct cfi *c, uint64_t n);

#endif
