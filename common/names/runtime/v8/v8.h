/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the reader of V8 (bpf/v8/v8.h describes what the walk and its copies contain). */
#ifndef COMMON_NAMES_RUNTIME_V8_V8_H
#define COMMON_NAMES_RUNTIME_V8_V8_H

#include "bpf/v8/v8.h"
#include "common/names/runtime/runtime.h"
#include "common/names/runtime/v8/version.h"

#define V8_BYTECODE_COUNT 256 /* a bytecode is a byte */
#define V8_SCALES 3	      /* of operands: 1, 2 and 4 bytes */
#define V8_OPCODES 64	      /* of translations */

/* Facts about a build that naming needs. */
struct v8_naming {
	uint16_t bytecodes;	 /* number of entries in size[]; 0: not known, and baseline code has
				  * no lines */
	uint16_t position_flags; /* low bits of a place in a table of positions; 0: its sign */
	uint16_t safepoints;	 /* offset of the number of safepoints in their table */
	uint16_t before_first;	 /* 1: tables of positions count from before the first bytecode */
	uint16_t kind_shift;	 /* where the kind of a function is in the flags of its scope */
	/* Opcodes of translations; 0: not known. The two that begin one are opcode_begin and the
	 * next. */
	uint8_t opcodes, opcode_begin;
	uint8_t size[V8_SCALES][V8_BYTECODE_COUNT];
	uint8_t operands[V8_OPCODES]; /* of each opcode */
};
static_assert(sizeof(struct v8_naming) <= RUNTIME_OWN_NAMING, "it fits");

/* --- layouts (layout.c) --- */

/* Fills the offsets of fields that follow from the version. Returns false if the version is not
 * known. */
bool v8_layout(const struct v8_version *v, bool compressed, struct v8_config *ret,
	       struct v8_naming *ret_naming);

/* --- tables of positions (positions.c) --- */

/*
 * A table of source positions: for each place in code, in ascending order, a position in its script
 * and which inlined call it is in (source-position-table.cc). A place is the offset of a bytecode
 * or of an instruction.
 */
struct v8_positions {
	struct span rest;	      /* borrowed */
	unsigned flags, before_first; /* as in the build's v8_naming */
	int64_t code, raw;
};
struct v8_position {
	uint32_t code;	    /* offset in bytes; that of a function's entry counts as 0 */
	uint32_t character; /* in the script; V8_NO_POSITION: none */
	uint32_t inlined;   /* 1 + the number of the inlined call, or 0 */
};
#define V8_NO_POSITION 0xffffffffu
/* Takes the next entry. Returns false if there is none, or if it is malformed. */
bool v8_positions_next(struct v8_positions *p, struct v8_position *ret);
/* Splits a raw position into its parts. */
struct v8_position v8_position_of(int64_t raw);

/*
 * Maps instructions of baseline code to bytecodes (bytecode-offset-iterator.h): `sizes` has the
 * bytes of instructions for the function's entry and then for each bytecode.
 */
struct v8_baseline {
	const struct v8_naming *naming;
	struct span sizes, bytecodes; /* borrowed */
	uint32_t end;		      /* end of the instructions of the last bytecode */
	uint32_t next;		      /* offset of the next bytecode */
	bool entered;
};
/* Takes the next bytecode: the end of its instructions, and its offset. For the function's entry
 * the offset is that of the first bytecode. Returns false if there is none, or if it is
 * malformed. */
bool v8_baseline_next(struct v8_baseline *b, uint32_t *ret_end, uint32_t *ret_bytecode);

/*
 * A table of safepoints ({maglev-,}safepoint-table.h): for each call, where it returns to,
 * the number of its exit for deoptimization, and where it returns to if V8 gives the code up
 * meanwhile. This is after all code, in the order of the calls. Begins with the table's header.
 */
struct v8_safepoints {
	struct span rest; /* borrowed */
	uint32_t left;
	uint32_t pc_bytes, exit_bytes, late_bytes, skip; /* sizes in bytes of an entry's fields, and
							  * of other fields after them */
};
struct v8_safepoint {
	uint32_t pc, exit, late; /* V8_NO_EXIT: none */
};
#define V8_NO_EXIT 0xffffffffu
/* at: offset of the number of safepoints. maglev: the table is Maglev's. Returns false if the table
 * is malformed; then it has none. */
bool v8_safepoints_begin(struct v8_safepoints *s, struct span table, uint32_t at, bool maglev);
/* Takes the next safepoint. Returns false if there is none, or if it is malformed. */
bool v8_safepoints_next(struct v8_safepoints *s, struct v8_safepoint *ret);

/* --- translations for deoptimization (translations.c) --- */

/*
 * A translation tells which frames the interpreter would have at a point of optimized code, the
 * outermost first: the function of the code, then the inlined calls that run
 * (frame-translation-builder.cc). A later translation may repeat parts of an earlier one.
 */
struct v8_translation {
	const struct v8_naming *naming; /* borrowed */
	struct span all;		/* borrowed: all translations of the code */
	uint32_t at, earlier; /* where the next opcode is, in this translation and in the earlier
			       * one */
	uint32_t repeated;    /* how many opcodes the earlier one still gives */
	uint32_t passed;      /* opcodes of this one since the earlier one was last used */
};
/* at: offset of the translation in `all`. Returns false if there is none, or if the build's opcodes
 * are not known. */
bool v8_translation_begin(struct v8_translation *t, const struct v8_naming *n, struct span all,
			  uint32_t at);
/* Takes the next frame of JavaScript: the offset of its bytecode, or -1 at the function's entry,
 * and the index of its function in the code's literals, which begin with the inlined functions.
 * Returns false if there is none, or if it is malformed. */
bool v8_translation_next(struct v8_translation *t, int32_t *ret_bytecode, int32_t *ret_function);

/* --- numbers --- */

/* Reads a number of seven bits a byte, the lowest first. Returns false if its end is missing. */
bool v8_take_unsigned(struct span *rest, uint64_t *ret);

/* --- names (name.c) --- */

int v8_name(const struct runtime_build *b, uint64_t address, uint64_t check,
	    struct object_memory *m, struct runtime_object *ret);

#endif
