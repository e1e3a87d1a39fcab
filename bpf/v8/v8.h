/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * V8: the facts about a build that the walk needs, and the description that the walk gives of an
 * object with its copy.
 *
 * Sources: src/objects/{code,script,shared-function-info,scope-info,js-function}.{h,tq},
 * src/execution/frame-constants.h, src/sandbox/js-dispatch-table.h, src/codegen/source-position.h
 */
#ifndef BPF_V8_V8_H
#define BPF_V8_V8_H

#include "bpf/mix.h"
#include "bpf/runtime.h"

/*
 * Fixed width, no padding. Unless stated otherwise, values are offsets in bytes from the beginning
 * of an object (without the tag of pointers to it). Words are tagged; a Smi has its number in the
 * upper half.
 *
 * If a build compresses pointers, words in objects have 32 bits. A pointer then lacks its upper
 * half, which all objects of an isolate have in common. A Smi has its number in the upper 31 bits.
 * Words in frames and registers have 64 bits.
 */
struct v8_config {
	/* Address of the pointer to the isolate group, which has a pointer to the table of code; 0:
	 * functions point to their code themselves. */
	UW_U64 group;
	/* File offset of the interpreter's entry, which is in the frame of an interpreted
	 * function. */
	UW_U64 entry_start;
	UW_U64 handlers; /* file offset of the first bytecode handler */
	UW_U32 entry_size;
	UW_U16 entry_frame; /* bytes of the entry before it sets up its frame */
	UW_U16 group_table; /* offset of the table in the isolate group */
	/* Instance types. */
	UW_U16 type_no_string; /* types of strings are lower */
	UW_U16 type_bytecodes, type_fixed_array, type_scope_info;
	UW_U16 bytecodes_start; /* offset of a bytecode array's first bytecode */
	/* WebAssembly: in the compiled module, the pointer to the module's bytes. */
	UW_U16 wasm_bytes;
	UW_U8 map_type;	     /* 16 bits, in a map: the instance type */
	UW_U8 function_code; /* or the function's index in the table of code */
	UW_U8 function_shared;
	UW_U8 shared_data, shared_scope, shared_script;
	UW_U8 shared_literal; /* 32 bits: the number of the function in its script */
	UW_U8 script_source, script_name, script_line, script_ends, script_id;
	UW_U8 script_url;	     /* a name that the script's text gives itself */
	UW_U8 scope_flags;	     /* 32 bits */
	UW_U8 scope_locals;	     /* number of locals, a Smi */
	UW_U8 scope_first;	     /* the beginning of the locals */
	UW_U8 scope_range;	     /* the function's beginning and end; 0: after its names */
	UW_U8 scope_module;	     /* type of a scope that has one more word before its locals */
	UW_U8 scope_receiver;	     /* 1: a word tells where `this` is */
	UW_U8 scope_inlined_locals;  /* if a scope has more locals, they are in a table */
	UW_U8 code_start;	     /* a word: the address of its instructions */
	UW_U8 code_body;	     /* or: the offset of its instructions */
	UW_U8 code_size, code_flags; /* 32 bits */
	UW_U8 code_deopt, code_positions;
	UW_U8 code_head; /* bytes before the instructions, in the object that contains them */
	UW_U8 kind_baseline, kind_interpreted;
	UW_U8 bytecodes_positions;
	UW_U8 deopt_inlined, deopt_literals, deopt_inlining;
	UW_U8 group_shift;	 /* shift of a function's index in the table of code */
	UW_U8 frame_bytecodes;	 /* bytes below RBP: an interpreted frame's bytecodes; the offset is
				  * next */
	UW_U8 code_maglev;	 /* kind of code that may lack positions; 0: all code has them */
	UW_U8 descriptors_first; /* offset of the first property of a map; 0: not known */
	UW_U8 regexp_marker; /* the word that marks frames of regular expressions; 0: none does */
	/* WebAssembly. */
	UW_U8 wasm_marker; /* the word that marks its frames */
	/* Bytes of an element of the table of jumps, and V8_WASM_SETUP; 0: not known. */
	UW_U8 wasm_jump;
	UW_U8 wasm_jumps; /* in an instance: the address of the table of jumps */
	/* In an instance: the object that stands for it; 0: the instance itself. */
	UW_U8 wasm_instance;
	UW_U8 wasm_module; /* in that object: its module; 0: not known, nor what leads on from it */
	/* 32 bits, in the module's description: the number of imported functions. */
	UW_U8 wasm_imported;
	/* Kind of the code that calls WebAssembly from JavaScript; 0: not known. */
	UW_U8 wasm_caller;
	UW_U8 array_plain; /* 1: the number of an array's elements is no Smi, but 32 bits */
	UW_U8 compressed;  /* 1: the build compresses pointers */
	/* In an external string, the address of its characters; 0: not known. */
	UW_U8 string_data;
	UW_U8 scope_classless; /* 1: no flag of a scope tells of its class; later ones are lower */
	UW_U8 zero[3];
};

/* A builtin may set up a frame, and then the code has the function's number. */
#define V8_WASM_SETUP 16

#define V8_SHARED_BYTES 72 /* bytes that are read of each object */
#define V8_CODE_BYTES 96

/* An object is identified by its contents, since it may move. No process has an address with this
 * bit. */
#define V8_KEY RUNTIME_KEYS

enum v8_kind {
	V8_INTERPRETED = 1,
	V8_BASELINE = 2,
	V8_OPTIMIZED = 3,
	V8_FUNCTION = 4, /* only the function is known */
	V8_INLINED = 5,	 /* likewise, of a function that is inlined in optimized code */
	/* Only in descriptions: code of Maglev, which has no positions or not all. The description
	 * tells which bytecode each of its calls belongs to, for deoptimization. */
	V8_LAZY = 6,
	V8_WASM = 7,   /* a function of WebAssembly */
	V8_REGEXP = 8, /* some regular expression */
};

#define V8_NAME_PARTS 4	  /* a name may consist of this many strings, */
#define V8_SCRIPT_PARTS 3 /* and that of a script */

/* The description of an object, as words. Sizes are in bytes. */
enum v8_told {
	V8_TOLD_IDENTITY,
	V8_TOLD_KIND,	/* enum v8_kind; << 32: the flags of the function's scope */
	V8_TOLD_RANGE,	/* the function's start, and << 32 its end, in characters of its script;
			 * WebAssembly: its number, or V8_NO_NUMBER */
	V8_TOLD_LINE,	/* line of the first element of V8_TOLD_ENDS, from 0 on; V8_NO_LINE:
			 * unknown */
	V8_TOLD_SHAPES, /* bits V8_SHAPE_*: set for texts with two bytes per character */
	V8_TOLD_INLINED_COUNT, /* << 32, lazy: number of eager deoptimizations, which are not
				* described */
	V8_TOLD_NAME,	       /* V8_NAME_PARTS addresses, each followed by a size */
	V8_TOLD_NAME_SIZE,
	V8_TOLD_SCRIPT = V8_TOLD_NAME + 2 * V8_NAME_PARTS,
	V8_TOLD_SCRIPT_SIZE,
	/* baseline: sizes of instructions; optimized: inlined calls; lazy: the table of calls
	 * (safepoints) */
	V8_TOLD_EXTRA = V8_TOLD_SCRIPT + 2 * V8_SCRIPT_PARTS,
	V8_TOLD_EXTRA_SIZE,
	/* baseline: its bytecodes; optimized: the table of calls (safepoints); lazy: the data of
	 * deoptimizations */
	V8_TOLD_BYTECODES,
	V8_TOLD_BYTECODES_SIZE,
	V8_TOLD_POSITIONS,
	V8_TOLD_POSITIONS_SIZE,
	V8_TOLD_ENDS, /* the ends of the function's lines as Smis, from its first line on; or its
		       * text */
	V8_TOLD_ENDS_SIZE,
	V8_TOLD_INLINED, /* keys of the inlined functions */
};
#define V8_INLINED_MAX 36
#define V8_TOLD_WORDS 64
/* Lazy, instead of the last keys: the frames that each deoptimization makes; the code's own
 * positions, if there are some, and their inlined calls. Each is followed by its size. */
#define V8_TOLD_TRANSLATIONS (V8_TOLD_WORDS - 2)
#define V8_TOLD_OWN_POSITIONS (V8_TOLD_WORDS - 4)
#define V8_TOLD_OWN_CALLS (V8_TOLD_WORDS - 6)
#define V8_NO_LINE 0xffffffffu
#define V8_NO_NUMBER 0xffffffffu
#define V8_SHAPE_NAME 0u /* the first bit for the parts of a name */
#define V8_SHAPE_SCRIPT V8_NAME_PARTS
#define V8_SHAPE_TEXT (V8_SHAPE_SCRIPT + V8_SCRIPT_PARTS)
/* The description has the function's text, instead of the ends of its lines. */
#define V8_SHAPE_IS_TEXT (V8_SHAPE_TEXT + 1)
/* The first of the bits that mark parts after which, and before which, something is missing. */
#define V8_SHAPE_CUT (V8_SHAPE_IS_TEXT + 1)
#define V8_SHAPE_HEADLESS (V8_SHAPE_CUT + V8_NAME_PARTS + V8_SCRIPT_PARTS)
/* Two bits each: the part with which a text begins. The others follow it, the first one after the
 * last one. */
#define V8_SHAPE_NAME_FIRST (V8_SHAPE_HEADLESS + V8_NAME_PARTS + V8_SCRIPT_PARTS)
#define V8_SHAPE_SCRIPT_FIRST (V8_SHAPE_NAME_FIRST + 2)

/* Limits of the bytes that are copied. */
#define V8_NAME_BYTES 128u
#define V8_SCRIPT_BYTES 512u
#define V8_EXTRA_BYTES 4096u
#define V8_BYTECODES_BYTES 8192u
#define V8_POSITIONS_BYTES 8192u
#define V8_ENDS_BYTES 8192u
#define V8_TRANSLATIONS_BYTES 8192u

static inline UW_U64 v8_mix(UW_U64 h, UW_U64 v)
{
	h = (h ^ v) * MIX_FIRST;
	return h ^ h >> 32;
}

/* Returns the key of an object with this identity. */
static inline UW_U64 v8_key(UW_U64 identity)
{
	return V8_KEY | (identity & (V8_KEY - 1));
}

/* Returns the check value of an object with this identity: 40 bits, never 0. */
static inline UW_U64 v8_check(UW_U64 identity)
{
	UW_U64 check = v8_mix(identity, MIX_SECOND) >> RUNTIME_CHECK_SHIFT;

	return check ? check : 1;
}

#ifndef __bpf__
static_assert(sizeof(struct v8_config) == 96, "no padding");
static_assert(V8_TOLD_INLINED + V8_INLINED_MAX == V8_TOLD_WORDS, "no word is unused");
#endif

#endif
