/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame instructions, run into rows: a state (cfi_state.h) is changed by them, and a rule made
 * of it only where the location advances and something that matters has changed.
 *
 * Source: DWARF 5, section 6.4.2. Pure.
 */
#ifndef PROFPIPE_CFI_RUN_H
#define PROFPIPE_CFI_RUN_H

#include "common/rows/cfi/cfi_state.h"
#include "common/rows/x86/ehreturn.h"
#include "common/rows/encoded.h"
#include "common/rows/x86/stackcheck.h"
#include "common/rows/rows.h"

#define CFI_CACHE 512 /* rules whose numbers are at hand; a power of two */

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

/* What all runs of a section share. */
struct cfi_machine {
	struct rows *rows; /* borrowed: gets the rows, already laid out */
	struct encoded_bases bases;
	int32_t unsupported; /* number of the rule for what cannot be expressed; -1: not used yet */
	/* Remembered ones: as many as an entry asks for, below its size. */
	struct cfi_state *states;
	size_t state_cap;
	struct cfi_known known[CFI_CACHE];
};

struct cfi_run {
	struct cfi_machine *m;
	const struct cfi_cie *cie;
	struct cfi_state state;
	uint64_t vaddr; /* ELF address of the instruction bytes' first */
	const uint8_t *first;
	/* The location, as distance from the function's start. A CIE's instructions have none: size
	 * is 0. */
	uint64_t function; /* ELF address */
	uint64_t loc, size;
	uint32_t at; /* offset of the function's start */
	uint32_t depth;
	bool dirty;
	uint8_t results; /* bits 0 and 1: where RAX and RDX were saved was said */
	bool beyond;	 /* it has rules for the byte behind the function */
	/* Where its rules do not hold, whatever they are, as distances from its start; not where
	 * all is 0. */
	struct ehreturn spoiled;
};

/* Apart from enum rows_status, which also comes through. */
enum cfi_run_verdict {
	/* The end, or the location went past the function: the last row is there. */
	CFI_RUN_END = 100,
	CFI_RUN_OPCODE,
	CFI_RUN_SENSELESS,
};

void cfi_machine_init(struct cfi_machine *m, struct rows *rows, const struct encoded_bases *bases);
void cfi_machine_done(struct cfi_machine *m);
/* The number of the rule for what cannot be expressed. 0, -ENOMEM. */
int cfi_unsupported(struct cfi_machine *m, uint16_t *ret);
/* Runs the instructions of s to their end, into rows->pen of the open function, which has room for
 * a row from each byte and one more. enum cfi_run_verdict; -ENOMEM; 0 at the end of a CIE. */
int cfi_run(struct cfi_run *run, struct span s);
/* The same for a function with a stack check: where the rules of the check and of its slow path
 * contradict each other, the slow path's follow from the check's. run and s must be such that
 * cfi_run gives CFI_RUN_END. CFI_RUN_END, -ENOMEM. */
int cfi_run_checked(struct cfi_run *run, struct span s, const struct stackcheck *check);

#endif
