/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows: the unwind information of one file, reduced to a sequence of (file offset, rule). A row's
 * rule (bpf/unwind.h) holds from its offset up to the next row.
 *
 * - Collecting: rows are stored with the function (FDE) they come from, in the order of the
 *   section. A row takes about two bytes.
 * - Finishing: `rows_finish` sorts the functions and resolves overlaps. It makes no second copy.
 * - Reading: a cursor returns all rows by rising offset. It merges equal neighbours, and adds an
 *   `end` row after each function that is not directly followed by another one.
 *
 * If two functions overlap, the common part belongs to the one that starts lower. If both have the
 * same start, it belongs to the one that comes first in the section. Functions added between
 * `rows_fill` and the next `rows_finish` only fill gaps: they never replace earlier rows.
 *
 * All offsets are file offsets relative to `base`, in bytes. Pure: no I/O, no log.
 */
#ifndef COMMON_ROWS_ROWS_H
#define COMMON_ROWS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "bpf/mix.h"
#include "bpf/unwind.h"
#include "common/wire/msg.h"

#define ROWS_MAX_SEGMENTS 64
#define ROWS_PADDING 15 /* bytes between two functions that count as padding, not as a gap */
#define ROWS_MAX_BYTES (256u << 20) /* ceiling on the rows of one file, and on its functions */
#define ROWS_RULE_GAP 0		    /* the number of the `end` rule for gaps, in every set */

/* The reasons for which functions and rows are skipped. rows.skipped counts each case; `--stats`
 * prints the word. */
#define ROWS_SKIPS(X) \
	X(ENTRY, "entry-malformed")	/* the length or the header of a CIE or FDE is invalid */ \
	X(ENTRY_LONG, "entry-too-long") /* over CFI_MAX_ENTRY */ \
	X(CIE, "cie-malformed") \
	X(CIE_VERSION, "cie-version") \
	X(CIE_AUGMENTATION, "cie-augmentation") \
	X(CIE_LIMIT, "cie-limit")	 /* over CFI_MAX_CIES */ \
	X(NO_CIE, "fde-without-cie")	 /* its CIE is missing or was not usable */ \
	X(ENCODING, "pointer-encoding")	 /* indirect, or relative to an unknown base */ \
	X(DISCARDED, "fde-discarded")	 /* the linker discarded the function: at 0, or empty */ \
	X(NO_RULES, "fde-without-rules") /* an FDE without rules whose code moves RSP */ \
	X(OUTSIDE, "outside-text")	 /* an FDE outside all executable segments */ \
	X(OVERLAP, "overlap")		 /* an FDE that other FDEs cover completely */ \
	X(COVERED, "covered")		 /* from .debug_frame, where .eh_frame has rows already */ \
	X(OPCODE, "opcode") /* unknown instruction: the rest of the FDE has no rule */ \
	X(INSTRUCTIONS, \
	  "instructions") /* cut short or invalid: no rule for the rest of the FDE */ \
	X(CFA_EXPRESSION, "cfa-expression") /* rows whose CFA cannot be expressed become `end` */ \
	X(CFA_REGISTER, "cfa-register") \
	X(RA_RULE, "ra-rule")	/* rows whose return address cannot be expressed */ \
	X(RSP_RULE, "rsp-rule") /* rows whose RSP, not the CFA, cannot be expressed */ \
	X(RBP_RULE, "rbp-rule") /* RBP's rule cannot be expressed: RBP becomes `undefined` */ \
	X(SIGNAL_LAYOUT, "signal-layout") /* not the kernel's signal frame: treated as ordinary */ \
	X(RULE_LIMIT, "rule-limit")	  /* over ROWS_MAX_RULES distinct rules: `end` */ \
	X(GO, "go-function")  /* a function whose data in Go's table is inconsistent */ \
	X(SECTION, "section") /* a section without bytes, or that cannot be decompressed */

enum rows_skip {
#define X(name, word) ROWS_SKIP_##name,
	ROWS_SKIPS(X)
#undef X
		ROWS_SKIP_COUNT
};
const char *rows_skip_word(enum rows_skip skip);

/* A set of distinct rules, numbered from 0 in order of first use. Rule 0 is the gap. An empty set
 * is all zeros. */
struct rows_rules {
	struct unwind_rule *rule;
	uint16_t *slot; /* open-addressing hash table of rule numbers; 0xffff: free */
	uint32_t n, cap, slots;
};
#define ROWS_MAX_RULES (UNWIND_MAX_RULES - 1)
/* A rule as three words, for speed: nearly every row compares and hashes one. */
struct rows_words {
	uint64_t a, b, c;
};

static inline struct rows_words rows_words_of(const struct unwind_rule *rule)
{
	struct rows_words w;

	memcpy(&w.a, rule, 8);
	memcpy(&w.b, (const char *)rule + 8, 8);
	memcpy(&w.c, (const char *)rule + 16, 8);
	return w;
}

static inline bool rows_words_eq(struct rows_words x, struct rows_words y)
{
	return ((x.a ^ y.a) | (x.b ^ y.b) | (x.c ^ y.c)) == 0;
}

static inline uint32_t rows_words_hash(struct rows_words w)
{
	uint64_t h = (w.a + (w.c << 32) + w.c + (w.c >> 32)) * MIX_GOLDEN ^ w.b * MIX_FIRST;

	return (uint32_t)(h >> 40 ^ h >> 20);
}

int rows_rules_add(struct rows_rules *s, const struct unwind_rule *rule, uint16_t *ret);

/* Looks up the number of a rule, and adds the rule at its first use. Returns 0, MSG_ROWS_TOO_LARGE
 * (the set is full) or -ENOMEM. */
static inline int rows_rules_put(struct rows_rules *s, const struct unwind_rule *rule,
				 uint16_t *ret)
{
	struct rows_words words = rows_words_of(rule);

	if (s->slots) {
		uint16_t number = s->slot[rows_words_hash(words) & (s->slots - 1)];

		if (number < s->n && rows_words_eq(rows_words_of(&s->rule[number]), words)) {
			*ret = number;
			return 0;
		}
	}
	return rows_rules_add(s, rule, ret);
}
void rows_rules_done(struct rows_rules *s);

/* An executable segment, up to the end of its bytes in the file. */
struct rows_segment {
	uint64_t vaddr, offset, size; /* offset: from the file's start, not from base */
};

/*
 * How rows are stored. A function is a sequence of:
 * 1. the rule of its first row
 * 2. for each further row: its distance from the row before, in bytes of text, and its rule
 * 3. the head, after the rows: size of the function in bytes of text, number of rows, bytes of the
 *    rows (all ULEB128), and the rule of the last row
 *
 * A distance takes one byte from 1 to 254. Otherwise it is 0 and two bytes, or 255 and four bytes.
 * A rule takes one byte up to 223, two bytes up to 7,935, else three.
 */
#define ROWS_CODED_MAX 8       /* of one row, in bytes */
#define ROWS_CODED_HEAD_MAX 18 /* of a head, in bytes */

/* The write position in the open function. */
struct rows_pen {
	uint8_t *p;
	uint32_t start, end; /* of the function, relative to base */
	uint32_t at;	     /* of the newest row */
	uint32_t n;	     /* rows written so far */
	uint32_t rule;	     /* of the newest row */
};

static inline uint8_t *rows_code_rule(uint8_t *p, uint32_t rule)
{
	if (rule < 0xe0) {
		*p = (uint8_t)rule;
		return p + 1;
	}
	if (rule < 0x1f00) {
		p[0] = (uint8_t)(0xe0 + (rule >> 8));
		p[1] = (uint8_t)rule;
		return p + 2;
	}
	p[0] = 0xff;
	memcpy(p + 1, &rule, 2);
	return p + 3;
}

static inline uint8_t *rows_code_advance(uint8_t *p, uint32_t advance)
{
	if (advance - 1 < 254) {
		*p = (uint8_t)advance;
		return p + 1;
	}
	if (advance <= UINT16_MAX) {
		p[0] = 0;
		memcpy(p + 1, &advance, 2);
		return p + 3;
	}
	p[0] = 255;
	memcpy(p + 1, &advance, 4);
	return p + 5;
}

/* Writes a row: `rule` holds from `at` on. `at` lies inside the function and after the newest row.
 * The caller has reserved space (rows_reserve). */
static inline void rows_pen_put(struct rows_pen *pen, uint32_t at, uint32_t rule)
{
	if (pen->n) {
		if (pen->rule == rule)
			return;
		pen->p = rows_code_advance(pen->p, at - pen->at);
		pen->at = at;
	}
	pen->p = rows_code_rule(pen->p, rule);
	pen->rule = rule;
	pen->n++;
}

struct rows {
	uint64_t base, span; /* the file offsets covered: [base, base + span) */
	uint64_t count;	     /* rows that the cursor will return; set by rows_finish */
	struct rows_rules rules;
	uint64_t skipped[ROWS_SKIP_COUNT];
	uint64_t cies, fdes; /* seen in the sections */
	uint64_t peak_bytes; /* of the memory for the rows */

	struct rows_segment segment[ROWS_MAX_SEGMENTS];
	unsigned segments, last_segment;

	uint8_t *code; /* rows and heads */
	size_t code_len, code_cap;
	uint64_t *function; /* start << 32 | position of its head in code */
	size_t functions, function_cap;
	size_t settled; /* functions before this one are sorted and do not overlap */
	struct rows_pen pen;
	/* The register that rows of call frame information restore besides RSP and RBP:
	 * UNWIND_REG_RBX or UNWIND_REG_R12. */
	uint8_t tracked;
	bool (*stopped)(
		void); /* returns whether to give up with MSG_ROWS_LATER; NULL: never give up */
	bool filling;
	bool replaced; /* a row was replaced, so neighbouring rows may be equal */
};

void rows_init(struct rows *r);
void rows_done(struct rows *r);
/* Drops all rows, and keeps `tracked` and `stopped`. */
void rows_reset(struct rows *r);
/* Whether to give up now. Call it at least every few milliseconds of work. */
static inline bool rows_stopped(const struct rows *r)
{
	return r->stopped && r->stopped();
}
/* Adds an executable segment. Call it before the first function is added; rows_layout then sets
 * base and span. Returns 0 or MSG_ROWS_UNSUPPORTED (too many). */
int rows_segment_add(struct rows *r, uint64_t vaddr, uint64_t offset, uint64_t size);
/* Sets base and span from the segments. Returns 0, MSG_ROWS_NONE (no executable segment) or
 * MSG_ROWS_TOO_LARGE (over UNWIND_MAX_SPAN). */
int rows_layout(struct rows *r);
/* Converts an ELF address to an offset relative to base. *ret_left is the number of bytes left in
 * its segment. Returns false outside of all segments. */
bool rows_locate(struct rows *r, uint64_t vaddr, uint32_t *ret_at, uint64_t *ret_left);
/* The inverse, for print: the ELF address of an offset relative to base. A segment's end counts as
 * inside it. */
uint64_t rows_address(const struct rows *r, uint32_t at);

/* Begins a function over [start, end). Returns 0, MSG_ROWS_TOO_LARGE or -ENOMEM. MSG_ROWS_NONE
 * means that the function is empty or already covered: it is counted, and the caller skips it. */
int rows_open(struct rows *r, uint32_t start, uint32_t end);
/* Adds a row to the open function: `rule` holds from `at` on. `at` lies inside the function and
 * never decreases within it. A second row for the same place replaces the first. Returns 0,
 * MSG_ROWS_TOO_LARGE or -ENOMEM. */
int rows_add(struct rows *r, uint32_t at, uint16_t rule);
/* Reserves space for n rows of the open function. Then the caller may use rows_pen_put on r->pen,
 * or on a copy that it writes back. Returns 0, MSG_ROWS_TOO_LARGE or -ENOMEM. */
int rows_reserve(struct rows *r, size_t n);
/* Ends the open function. A function without rows is dropped. */
void rows_close(struct rows *r);
/* Makes stacks end in the function of `size` bytes at `vaddr`. The range begins one byte early, so
 * that stacks also end if the return address is the function's first byte. Since it starts lower,
 * it wins over the function's own rows, which come later. Returns 0 (also if vaddr is in no
 * segment), MSG_ROWS_TOO_LARGE or -ENOMEM. */
int rows_add_end(struct rows *r, uint64_t vaddr, uint64_t size);
/* From here on, added functions only fill gaps between existing ones. Call it after rows_finish. */
void rows_fill(struct rows *r);
/* Drops all functions added since rows_fill. */
void rows_forget(struct rows *r);
/* Returns the extent of function i, 0 <= i < r->settled. Extents rise with i. Call it after
 * rows_finish. */
void rows_extent(const struct rows *r, size_t i, uint32_t *ret_start, uint32_t *ret_end);
/* Sorts the functions, resolves overlaps and counts the rows. Returns 0, MSG_ROWS_TOO_LARGE (over
 * UNWIND_MAX_ROWS) or -ENOMEM. */
int rows_finish(struct rows *r);

struct rows_cursor {
	const struct rows *rows; /* borrowed; rows_finish was called */
	const uint8_t *p;	 /* the next row */
	size_t function;
	uint32_t left;	  /* rows left in the function */
	uint32_t at, end; /* at: of the newest row; end: of its function */
	uint32_t rule;	  /* of the newest row; UINT32_MAX before the first */
	bool in_function;
};
void rows_cursor_init(struct rows_cursor *c, const struct rows *r);
/* Returns the next row, or false at the end. */
bool rows_next(struct rows_cursor *c, struct unwind_row_wire *ret);

#endif
