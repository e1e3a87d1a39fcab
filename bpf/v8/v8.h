/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * V8: what differs between its builds, and the walk must know; and what the walk tells of an object
 * with its copy.
 *
 * Sources: src/objects/{code,script,shared-function-info,scope-info,js-function}.{h,tq},
 * src/execution/frame-constants.h, src/sandbox/js-dispatch-table.h, src/codegen/source-position.h
 */
#ifndef BPF_V8_V8_H
#define BPF_V8_V8_H

#include "bpf/runtime.h"

/*
 * Fixed width, no padding. Offsets in bytes from the beginning of an object (without the tag of
 * pointers to it), if nothing else is said. Words are tagged; a Smi has its number in the upper
 * half.
 */
struct v8_config {
	/* Address of the pointer to the isolate group, which has a pointer to the table of code; 0:
	 * functions have their code themselves. */
	UW_U64 group;
	/* The interpreter's entry, in the frame of an interpreted function; a file offset. */
	UW_U64 entry_start;
	UW_U64 handlers; /* file offset of the first bytecode handler */
	UW_U32 entry_size;
	UW_U16 entry_frame; /* bytes of it before its frame */
	UW_U16 group_table; /* in the isolate group */
	/* Instance types. */
	UW_U16 type_no_string; /* strings have lower ones */
	UW_U16 type_bytecodes, type_fixed_array, type_scope_info;
	UW_U16 bytecodes_start; /* of a bytecode array's first bytecode */
	UW_U8 map_type;		/* 16 bits, in a map */
	UW_U8 function_code;	/* or the function's place in the table of code */
	UW_U8 function_shared;
	UW_U8 shared_data, shared_scope, shared_script;
	UW_U8 shared_literal; /* 32 bits: which function of its script it is */
	UW_U8 script_source, script_name, script_line, script_ends, script_id;
	UW_U8 script_url;	     /* a name that the text gives itself */
	UW_U8 scope_flags;	     /* 32 bits */
	UW_U8 scope_locals;	     /* the number of locals, a Smi */
	UW_U8 scope_first;	     /* where the locals begin */
	UW_U8 scope_range;	     /* where the function begins and ends; 0: behind its names */
	UW_U8 scope_module;	     /* the scope's type that has a word more before its locals */
	UW_U8 scope_receiver;	     /* 1: a word says where `this` is */
	UW_U8 scope_inlined_locals;  /* a scope with more has a table of them */
	UW_U8 code_start;	     /* a word: where its instructions begin */
	UW_U8 code_body;	     /* or: its instructions begin here */
	UW_U8 code_size, code_flags; /* 32 bits */
	UW_U8 code_deopt, code_positions;
	UW_U8 code_head; /* bytes before instructions, of the object that has them */
	UW_U8 kind_baseline, kind_interpreted;
	UW_U8 bytecodes_positions;
	UW_U8 deopt_inlined, deopt_literals, deopt_inlining;
	UW_U8 group_shift;	 /* of a function's place in the table of code */
	UW_U8 frame_bytecodes;	 /* below RBP: an interpreted frame's bytecodes; then its offset */
	UW_U8 code_maglev;	 /* kind of code that may lack positions; 0: it always has them */
	UW_U8 descriptors_first; /* of the properties of a map; 0: not known */
	UW_U8 zero;
};

#define V8_LENGTH 12 /* the number of an array's elements, of a string's characters: 32 bits */
#define V8_ELEMENTS 16
#define V8_SHARED_BYTES 72 /* read of each object */
#define V8_CODE_BYTES 96

/* An object is known by what it is, since it may move. Here is no address of a process. */
#define V8_KEY (1ull << 47)

enum v8_kind {
	V8_INTERPRETED = 1,
	V8_BASELINE = 2,
	V8_OPTIMIZED = 3,
	V8_FUNCTION = 4, /* only the function is known */
	V8_INLINED = 5,	 /* likewise, for optimized code that has it inlined */
	/* Only told: code of Maglev without positions and without inlined calls. It tells which
	 * bytecode each of its calls belongs to, for deoptimization. */
	V8_LAZY = 6,
};

#define V8_NAME_PARTS 4	  /* a name may be put together, */
#define V8_SCRIPT_PARTS 3 /* and that of a script */

/* What the walk tells of an object: words. Sizes in bytes. */
enum v8_told {
	V8_TOLD_IDENTITY,
	V8_TOLD_KIND,	/* enum v8_kind, and the flags of the function's scope << 32 */
	V8_TOLD_RANGE,	/* the function in its script: start, and end << 32, in characters */
	V8_TOLD_LINE,	/* of the first of its lines' ends, from 0 on; V8_NO_LINE: unknown */
	V8_TOLD_SHAPES, /* bits of texts that have two bytes a character: V8_SHAPE_* */
	V8_TOLD_INLINED_COUNT,
	V8_TOLD_NAME, /* V8_NAME_PARTS of it, and the size of each */
	V8_TOLD_NAME_SIZE,
	V8_TOLD_SCRIPT = V8_TOLD_NAME + 2 * V8_NAME_PARTS,
	V8_TOLD_SCRIPT_SIZE,
	/* baseline: sizes of instructions; optimized: calls that are inlined; lazy: the table of
	 * calls (safepoints) */
	V8_TOLD_EXTRA = V8_TOLD_SCRIPT + 2 * V8_SCRIPT_PARTS,
	V8_TOLD_EXTRA_SIZE,
	V8_TOLD_BYTECODES, /* of baseline code; lazy: what is known of deoptimizations */
	V8_TOLD_BYTECODES_SIZE,
	V8_TOLD_POSITIONS,
	V8_TOLD_POSITIONS_SIZE,
	V8_TOLD_ENDS, /* the ends of its lines, from that of its first on: Smis; or its text */
	V8_TOLD_ENDS_SIZE,
	V8_TOLD_INLINED,		 /* keys of the inlined functions */
	V8_TOLD_EAGER = V8_TOLD_INLINED, /* lazy: the number of deoptimizations that are not told */
};
#define V8_INLINED_MAX 36
#define V8_TOLD_WORDS 64
#define V8_NO_LINE 0xffffffffu
#define V8_SHAPE_NAME 0u /* the first of the bits of a name's parts */
#define V8_SHAPE_SCRIPT V8_NAME_PARTS
#define V8_SHAPE_TEXT (V8_SHAPE_SCRIPT + V8_SCRIPT_PARTS)
/* The function's text is told, instead of the ends of its lines. */
#define V8_SHAPE_IS_TEXT (V8_SHAPE_TEXT + 1)
/* The first of bits that say of which parts something is missing behind them. */
#define V8_SHAPE_CUT (V8_SHAPE_IS_TEXT + 1)

/* Bytes copied of each, at most. */
#define V8_NAME_BYTES 128u
#define V8_SCRIPT_BYTES 256u
#define V8_EXTRA_BYTES 768u
#define V8_BYTECODES_BYTES 1024u
#define V8_POSITIONS_BYTES 2560u
#define V8_ENDS_BYTES 4096u

static inline UW_U64 v8_mix(UW_U64 h, UW_U64 v)
{
	h = (h ^ v) * 0xff51afd7ed558ccdull;
	return h ^ h >> 32;
}

/* The key of an object of this identity. */
static inline UW_U64 v8_key(UW_U64 identity)
{
	return V8_KEY | (identity & (V8_KEY - 1));
}

/* The check of an object with this identity: 40 bits, never 0. */
static inline UW_U64 v8_check(UW_U64 identity)
{
	UW_U64 check = v8_mix(identity, 0xc4ceb9fe1a85ec53ull) >> RUNTIME_CHECK_SHIFT;

	return check ? check : 1;
}

#ifndef __bpf__
static_assert(sizeof(struct v8_config) == 80, "no padding");
static_assert(V8_TOLD_INLINED + V8_INLINED_MAX == V8_TOLD_WORDS, "no word is unused");
#endif

#endif
