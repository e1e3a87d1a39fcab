/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of call frame instructions. Instructions change a state (cfi_state.h). A row is
 * made only where the location advances and the state has changed in a way that affects rows.
 *
 * Source: DWARF 5, section 6.4.2. Pure.
 */
#ifndef COMMON_ROWS_CFI_CFI_RUN_H
#define COMMON_ROWS_CFI_CFI_RUN_H

#include <string.h>
#include "common/rows/cfi/cfi_state.h"
#include "common/rows/elf/ehpointer.h"
#include "common/rows/rows.h"
#include "common/rows/x86/ehreturn.h"
#include "common/rows/x86/lispcall.h"
#include "common/rows/x86/stackcheck.h"

#define CFI_CACHE 512 /* recently used rules and their numbers; a power of two */

/* The number of a rule that the two words `head` and `where` describe completely. */
struct cfi_known {
	uint64_t head, where;
	uint32_t number;
};

struct cfi_cie {
	uint64_t offset; /* in the section */
	uint32_t code_align;
	int32_t data_align;
	uint64_t ra_column;
	uint64_t matters;	    /* bit mask of the registers that affect rows */
	bool plain;		    /* the factors are 1 and -8, and the return address column is
				     * 16 */
	uint8_t encoding;	    /* of the pointers in its FDEs */
	bool usable, sized, signal; /* sized: 'z', so the augmentation data of FDEs has a length */
	bool at_entry; /* `initial` is the rule at a function's entry: the CFA is RSP + 8 */
	struct cfi_state initial;
};

/* The state that all runs of a section share. */
struct cfi_machine {
	struct rows *rows; /* borrowed, already laid out; receives the rows */
	struct ehpointer_bases bases;
	int32_t unsupported; /* number of the rule for inexpressible states; -1: not used yet */
	/* The stack of DW_CFA_remember_state. It is bounded, since an entry cannot push more states
	 * than it has bytes. */
	struct cfi_state *states;
	size_t state_cap;
	struct cfi_known known[CFI_CACHE];
};

struct cfi_run {
	struct cfi_machine *m;
	const struct cfi_cie *cie;
	struct cfi_state state;
	uint64_t vaddr; /* ELF address of the first instruction byte */
	const uint8_t *first;
	/* The location, as a distance from the function's start. The instructions of a CIE have no
	 * location: size is 0. */
	uint64_t function; /* ELF address */
	uint64_t loc, size;
	uint32_t at; /* offset of the function's start */
	uint32_t depth;
	bool dirty;
	uint8_t results; /* bits 0 and 1: the instructions tell where RAX and RDX are saved */
	bool beyond;	 /* there are rules for the byte after the function's end */
	/* The part where the function's rules do not hold, as distances from its start. All zeros:
	 * none. */
	struct ehreturn spoiled;
};

/* Returned besides enum msg_rows_status, which is passed through. */
enum cfi_run_verdict {
	/* The instructions ended, or the location passed the function's end. The last row is
	 * written. */
	CFI_RUN_END = 100,
	CFI_RUN_OPCODE,
	CFI_RUN_SENSELESS,
};

/* Whether only DW_CFA_nop (0) follows, up to `end`. May read bytes from `first` on. */
static inline bool cfi_run_only_nops(const uint8_t *first, const uint8_t *p, const uint8_t *end)
{
	uint64_t tail;

	if (end - p < 8 && end - first >= 8) {
		memcpy(&tail, end - 8, 8);
		return p == end || tail >> (64 - 8 * (end - p)) == 0;
	}
	while (p < end && *p == 0)
		p++;
	return p == end;
}

void cfi_machine_init(struct cfi_machine *m, struct rows *rows,
		      const struct ehpointer_bases *bases);
void cfi_machine_done(struct cfi_machine *m);
/* Gives the number of the rule for states that no rule can express. Returns 0 or -ENOMEM. */
int cfi_unsupported(struct cfi_machine *m, uint16_t *ret);
/* Runs all instructions of s and writes rows to rows->pen of the open function. The pen has space
 * for one row per byte of s and one more. Returns enum cfi_run_verdict, -ENOMEM, or 0 at the end of
 * a CIE. */
int cfi_run(struct cfi_run *run, struct span s);
/* Like cfi_run, for a function with a stack check. If the rules of the check and of its slow path
 * contradict each other, it derives the slow path's rules from the check's. The caller has
 * already got CFI_RUN_END from cfi_run for the same run and s. Returns CFI_RUN_END or -ENOMEM. */
int cfi_run_checked(struct cfi_run *run, struct span s, const struct stackcheck *check);
/* Whether the last rule has the CFA two words above the one that RBP points to. Then the function
 * has set up its callee's frame (lispcall.h). */
bool cfi_run_in_callees_frame(const struct cfi_run *run);
/* Adds the rows that hold after that callee has returned. The code of `call` begins LISPCALL_FRAME
 * bytes before the last rule. Returns CFI_RUN_END or -ENOMEM. */
int cfi_run_called(struct cfi_run *run, const struct lispcall *call);

#endif
