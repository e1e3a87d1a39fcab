/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows: what a file's call frame information comes down to. From a file offset on, until the next
 * row, one rule (bpf/unwind.h) holds.
 *
 * While they are collected rows stay with the function (FDE) that gave them, coded in about two
 * bytes each, in the order of the section. `rows_finish` sorts the functions and settles overlaps;
 * a cursor then walks them as one rising sequence, with equal neighbours merged and an `end` row
 * after each function that is not followed by another. No second copy is made.
 *
 * Of two functions that overlap, the one that starts lower keeps the common part; of two with the
 * same start, the first one in the section.
 * What is added between `rows_fill` and the next `rows_finish` counts only where nothing was
 * before.
 *
 * All offsets are file offsets relative to `base`, in bytes. Pure: no I/O, no log.
 */
#ifndef PROFPIPE_ROWS_H
#define PROFPIPE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "bpf/unwind.h"
#include "common/wire/msg.h"

#define ROWS_MAX_SEGMENTS 64
#define ROWS_PADDING 15 /* bytes between two functions that count as padding, not as a gap */
#define ROWS_MAX_BYTES (256u << 20) /* ceiling on the rows of one file, and on its functions */
#define ROWS_RULE_GAP 0		    /* the number of the `end` rule for gaps, in every set */

/* What was passed over and why: counted, never silent. The word is what --stats prints. */
#define ROWS_SKIPS(X) \
	X(ENTRY, "entry-malformed")	/* the length or head of a CIE or FDE cannot be right */ \
	X(ENTRY_LONG, "entry-too-long") /* over the ceiling of one entry */ \
	X(CIE, "cie-malformed") \
	X(CIE_VERSION, "cie-version") \
	X(CIE_AUGMENTATION, "cie-augmentation") \
	X(CIE_LIMIT, "cie-limit")	/* over the ceiling of CIEs kept */ \
	X(NO_CIE, "fde-without-cie")	/* its CIE is not there or was not usable */ \
	X(ENCODING, "pointer-encoding") /* indirect, or relative to what is not known */ \
	X(DISCARDED, \
	  "fde-discarded") /* of a function the linker dropped: begins at 0 or covers nothing */ \
	X(OUTSIDE, "outside-text")	/* an FDE outside every executable segment */ \
	X(OVERLAP, "overlap")		/* an FDE that others cover whole */ \
	X(COVERED, "covered")		/* of .debug_frame, where .eh_frame speaks already */ \
	X(OPCODE, "opcode")		/* unknown instruction: the rest of the FDE has no rule */ \
	X(INSTRUCTIONS, "instructions") /* cut short or senseless: likewise */ \
	X(CFA_EXPRESSION, "cfa-expression") /* rows whose CFA cannot be expressed: `end` */ \
	X(CFA_REGISTER, "cfa-register") \
	X(RA_RULE, "ra-rule")	/* likewise for the return address */ \
	X(RSP_RULE, "rsp-rule") /* likewise for RSP, where it is not the CFA */ \
	X(RBP_RULE, "rbp-rule") /* likewise for RBP: `undefined` */ \
	X(SIGNAL_LAYOUT, \
	  "signal-layout") /* a signal frame that is not the kernel's: an ordinary frame */ \
	X(RULE_LIMIT, "rule-limit") /* over the ceiling of distinct rules: `end` */ \
	X(GO, "go-function")	    /* of a Go program's table, which contradicts itself */ \
	X(SECTION, "section")	    /* a section that holds no bytes, or cannot be inflated */

enum rows_skip {
#define X(name, word) ROWS_SKIP_##name,
	ROWS_SKIPS(X)
#undef X
		ROWS_SKIP_COUNT
};
const char *rows_skip_word(enum rows_skip skip);

/* A set of distinct rules, numbered from 0 in the order they came; rule 0 is the gap.
 * Zero-initialised is empty. */
struct rows_rules {
	struct unwind_rule *rule;
	uint16_t *slot; /* open hash of numbers, 0xffff where free */
	uint32_t n, cap, slots;
};
#define ROWS_MAX_RULES (UNWIND_MAX_RULES - 1)
/* A rule as three words: compared and hashed for nearly every row. */
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
	uint64_t h = (w.a + (w.c << 32) + w.c + (w.c >> 32)) * 0x9e3779b97f4a7c15u ^
		     w.b * 0xff51afd7ed558ccdu;

	return (uint32_t)(h >> 40 ^ h >> 20);
}

int rows_rules_add(struct rows_rules *s, const struct unwind_rule *rule, uint16_t *ret);

/* The number of a rule, given on first sight. 0, ROWS_TOO_LARGE (the set is full), -ENOMEM. */
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

/* An executable segment, as far as the file fills it. */
struct rows_segment {
	uint64_t vaddr, offset, size; /* offset from the file's start, not from base */
};

/*
 * Rows as they are kept. Of a function: its first row's rule; for each other row, how many bytes of
 * text lie between it and the one before (1 to 254 in a byte, else 0 and two bytes, or 255 and
 * four), and its rule (up to 223 in a byte, up to 7,935 in two, else in three); behind them the
 * head: size of the function in bytes of text, number of rows, bytes of the rows, all ULEB128, and
 * the last row's rule.
 */
#define ROWS_CODED_MAX 8       /* bytes of one row */
#define ROWS_CODED_HEAD_MAX 18 /* bytes of a head */

/* Where the next row of the open function goes. */
struct rows_pen {
	uint8_t *p;
	uint32_t start, end; /* of the function, relative to base */
	uint32_t at;	     /* of the newest row */
	uint32_t n;	     /* rows so far */
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

/* From `at` on, which lies behind the newest row's and inside the function, `rule` holds. There is
 * room (rows_reserve). */
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
	uint64_t base, span; /* the file offsets spoken of: [base, base + span) */
	uint64_t count;	     /* rows the cursor will give; set by rows_finish */
	struct rows_rules rules;
	uint64_t skipped[ROWS_SKIP_COUNT];
	uint64_t cies, fdes; /* seen */
	uint64_t peak_bytes; /* of memory held for the rows */

	struct rows_segment segment[ROWS_MAX_SEGMENTS];
	unsigned segments, last_segment;

	uint8_t *code; /* rows and heads */
	size_t code_len, code_cap;
	uint64_t *function; /* start << 32 | where in code its head lies */
	size_t functions, function_cap;
	size_t settled; /* functions before this one are sorted and do not overlap */
	struct rows_pen pen;
	uint8_t kept; /* besides RSP and RBP, what rows of call frame information speak of:
		       * UNWIND_REG_RBX, or UNWIND_REG_R12 */
	bool filling;
	bool replaced; /* a row was given twice: neighbours may be equal */
};

void rows_init(struct rows *r);
void rows_done(struct rows *r);
/* Adds an executable segment; all before the first function. rows_layout then fixes base and span.
 * 0, ROWS_UNSUPPORTED (too many). */
int rows_segment_add(struct rows *r, uint64_t vaddr, uint64_t offset, uint64_t size);
/* 0, ROWS_NONE (no executable segment), ROWS_TOO_LARGE (UNWIND_MAX_SPAN). */
int rows_layout(struct rows *r);
/* Where an ELF address lies: the offset relative to base, and how many bytes its segment goes on.
 * False outside. */
bool rows_locate(struct rows *r, uint64_t vaddr, uint32_t *ret_at, uint64_t *ret_left);
/* The way back, for print: the ELF address of an offset relative to base (its end counts as inside
 * a segment). */
uint64_t rows_address(const struct rows *r, uint32_t at);

/* Begins a function over [start, end). 0; ROWS_NONE: nothing of it is wanted (counted), leave it
 * out; ROWS_TOO_LARGE; -ENOMEM. */
int rows_open(struct rows *r, uint32_t start, uint32_t end);
/* From `at` on `rule` holds; at never falls within a function, and lies inside it. Given twice for
 * one place, the last one counts. 0, ROWS_TOO_LARGE, -ENOMEM. */
int rows_add(struct rows *r, uint32_t at, uint16_t rule);
/* Room for n rows of the open function, so that rows_pen_put may be used on r->pen, or on a copy of
 * it that is put back. 0, ROWS_TOO_LARGE, -ENOMEM. */
int rows_reserve(struct rows *r, size_t n);
void rows_close(struct rows *r);
/* Stacks end in the function of so many bytes at an ELF address, and where something returns to its
 * first one: from the byte before, so that it counts before the function's own rows, which come
 * later. 0, also where it is in no segment; ROWS_TOO_LARGE, -ENOMEM. */
int rows_add_end(struct rows *r, uint64_t vaddr, uint64_t size);
/* From here on, only what is not covered counts. After rows_finish. */
void rows_fill(struct rows *r);
/* Drops what was added since rows_fill. */
void rows_forget(struct rows *r);
/* After rows_finish: where the i-th function lies, of r->settled ones, which rise. */
void rows_extent(const struct rows *r, size_t i, uint32_t *ret_start, uint32_t *ret_end);
/* Sorts, settles overlaps, counts. 0, ROWS_TOO_LARGE (UNWIND_MAX_ROWS), -ENOMEM. */
int rows_finish(struct rows *r);

struct rows_cursor {
	const struct rows *rows; /* borrowed, finished */
	const uint8_t *p;	 /* the next row */
	size_t function;
	uint32_t left;	  /* rows of the function */
	uint32_t at, end; /* of the row given last; of its function */
	uint32_t rule;	  /* of the row given last; UINT32_MAX before the first */
	bool in_function;
};
void rows_cursor_init(struct rows_cursor *c, const struct rows *r);
/* The next row. False at the end. */
bool rows_next(struct rows_cursor *c, struct unwind_row_wire *ret);

#endif
