/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of call frame information: parses the entries (CIE, FDE) of an .eh_frame or .debug_frame
 * section, and runs their instructions to make rows (cfi_run.h).
 *
 * The caller feeds the section in pieces, front to back, so it need not be in memory as a whole. An
 * entry that cannot be parsed is skipped and counted in rows.skipped; the others are not affected.
 *
 * Sources: DWARF 5, section 6.4.1; Linux Standard Base 5.0, "Exception Frames" (.eh_frame,
 * augmentations, .eh_frame_hdr). Pure: no I/O, no log.
 */
#ifndef COMMON_ROWS_CFI_CFI_H
#define COMMON_ROWS_CFI_CFI_H

#include "common/base/bytes/span.h"
#include "common/rows/cfi/cfi_run.h"

#define CFI_MAX_ENTRY (4u << 20) /* bytes of one entry */
#define CFI_MAX_CIES (1u << 17)	 /* CIEs kept of one section */

struct cfi {
	struct cfi_machine machine;
	bool eh;	   /* .eh_frame; else .debug_frame */
	bool stop_at_zero; /* a zero length ends the section, because the section's size is not
			    * known */
	bool ended;
	uint64_t vaddr; /* ELF address of the section */
	uint64_t pos;	/* offset in the section of the next byte to feed */

	struct cfi_cie *cie;
	uint32_t cies, cie_cap, *slot, slots;
	uint32_t last; /* the CIE used last */

	/* Finds the part of an exception-handling function where its rules do not hold
	 * (ehreturn.h). The function has `size` bytes at an ELF address. NULL, the default after
	 * cfi_init, skips this check. The same holds for the next three callbacks. */
	bool (*spoiled)(void *ctx, uint64_t address, uint64_t size, struct ehreturn *ret);
	/* Finds the stack check of a function whose rules go one byte beyond its end
	 * (stackcheck.h). */
	bool (*checked)(void *ctx, uint64_t address, uint64_t size, struct stackcheck *ret);
	/* Finds a call of a Lisp function in the code at an ELF address, of at most `size` bytes
	 * (lispcall.h). */
	bool (*lisp)(void *ctx, uint64_t address, uint64_t size, struct lispcall *ret);
	/* Whether a function moves the stack although its only rule is the one for its entry
	 * (stackmove.h). Such a function gets no rows from the section. */
	bool (*moved)(void *ctx, uint64_t address, uint64_t size);
	void *ctx;
};

void cfi_init(struct cfi *c, struct rows *rows, bool eh, uint64_t vaddr,
	      const struct ehpointer_bases *bases);
void cfi_done(struct cfi *c);
/* Consumes whole entries from the front of `bytes`, which begin at c->pos. `last`: these are the
 * section's last bytes. *ret_used is the number of bytes consumed. *ret_want is the number of bytes
 * that the next entry needs, more than are left. If *ret_want exceeds CFI_MAX_ENTRY, skip that
 * entry with cfi_skip and continue at c->pos + *ret_want. Returns 0, MSG_ROWS_TOO_LARGE or
 * -ENOMEM. */
int cfi_feed(struct cfi *c, struct span bytes, bool last, size_t *ret_used, uint64_t *ret_want);
/* Skips n bytes of an entry that is too long. */
void cfi_skip(struct cfi *c, uint64_t n);

#endif
