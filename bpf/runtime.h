/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Runtimes: interpreters whose frames are not only on the native stack, and JITs whose frames no
 * table describes.
 *
 * A runtime has these parts:
 *
 * - a line in runtimes.def
 * - a folder of its name, with its config (<runtime>.h), its walk (<runtime>_walk.h) and the
 *   programs that run it (<runtime>.bpf.c)
 * - a folder common/names/runtime/<runtime>/, which recognizes the runtime in a file, describes
 *   this build in a config, and names its frames
 *
 * Before the native walk of a sample, the runtime's program reads the thread's interpreted frames
 * as items, innermost first. An item also marks the place where native code entered a chain of
 * them. If the runtime allows it, this item holds an address inside the C frame of the
 * interpreter's loop. The native walk marks the frame that contains this address
 * (SAMPLE_FRAME_ENTRY), and the reader of the sample puts the chain there. So the two walks do not
 * depend on each other, and no frame is lost if the native walk is deferred.
 */
#ifndef BPF_RUNTIME_H
#define BPF_RUNTIME_H

#include "bpf/mix.h"
#include "bpf/unwind.h"

enum runtime {
	RUNTIME_NONE = 0,
#define RUNTIME(number, NAME, name, title, type, mark) RUNTIME_##NAME = number,
#include "bpf/runtimes.def"
};
#define RUNTIME_MAX 64 /* all numbers are below this */

/*
 * Some runtimes generate code whose frames no table describes, and where frame pointers are wrong
 * or skip a caller. Such a runtime takes its frames over: when the native walk reaches one, it asks
 * the runtime. The runtime emits the frame together with the interpreted frames that run in it, and
 * moves to the caller. Or it declines, and the walk continues as it would without this runtime.
 */
enum runtime_takes {
	RUNTIME_TAKES_GENERATED = 1, /* frames in executable memory that belongs to no file */
	RUNTIME_TAKES_LOOP = 2,	     /* frames of loop[] */
	/* No runtime is asked: all frames in executable memory that belongs to no file have one
	 * layout. It is that of the code at `alias` in the runtime's file, or `rule`. These are
	 * native frames. Those that a stub called from the loop count as part of it. */
	RUNTIME_RULES_GENERATED = 4,
};

/* Code in a runtime's file, as file offsets: [start, end). */
struct runtime_range {
	UW_U64 start, end;
};

#define RUNTIME_RANGES 6
#define RUNTIME_PRIVATE 256 /* bytes that only the runtime's own walk understands */
#define RUNTIME_STATE 2048  /* limit for a walk's state (struct NAME_walk), in bytes */

/*
 * The parts of an object to copy when it is first seen, so that it can be named. Each step copies
 * one piece: the first step the object itself, each other step the target of a pointer in an
 * earlier piece. The target may also be an element of a table of words. Then its index is in the
 * earlier piece, and the table's address is the pointer, or the address of the earlier piece itself
 * (RUNTIME_ITSELF). A piece has a fixed size, or its size is in memory. Offsets and sizes are in
 * bytes. Pieces begin in the first 16 KiB of a copy, so the largest ones come last.
 *
 * A walk may itself describe its objects (env_told_object). This description is then the first
 * piece.
 *
 * The same steps bound the memory that may be read on request to name objects: `bytes` of a piece
 * of fixed size; of any other piece, as many bytes as the size in memory says.
 */
struct runtime_step {
	UW_U8 from;	   /* the piece with the pointer */
	UW_U8 size_bytes;  /* width of the size: 2, 4 or 8; 0: `bytes` is the size;
			    * RUNTIME_SIZE_TOLD: 8, in the first piece at size_at */
	UW_U8 size_shift;  /* the size counts units of 1 << size_shift bytes, at most 7 */
	UW_U8 index_bytes; /* width of the index: 2 or 4; 0: there is none */
	UW_U16 pointer;	   /* offset of the pointer in that piece, a multiple of 8 */
	UW_S16 start;	   /* beginning of the piece, relative to the pointer's target */
	UW_U16 bytes;	   /* bytes of the piece, at most */
	UW_U16 size_at;	   /* offset of the size from the piece's beginning */
	UW_U16 size_add;   /* bytes of the piece that the size does not count */
	UW_U16 index_at;   /* offset of the index in the piece `from`; it counts words of 8 bytes */
};
#define RUNTIME_STEPS 16
#define RUNTIME_ITSELF 0xfff8 /* instead of a pointer: the address of the piece `from` */
#define RUNTIME_SIZE_TOLD 1
struct runtime_copy {
	UW_U32 steps; /* steps to copy, of step[]; 0: copy nothing */
	UW_U32 more;  /* steps after those, which are not copied but may be read on request */
	struct runtime_step step[RUNTIME_STEPS];
};

/* Addresses from here on are keys of objects that a garbage collector moves: only the copy of the
 * kernel's program can name these. */
#define RUNTIME_KEYS (1ull << 47)

/* The table of objects that the kernel's program has copied consists of sets. Returns the number of
 * the set in which an object of a process is. */
#define RUNTIME_SEEN_SETS 8192
static inline UW_U32 runtime_seen_set(UW_U32 pid, UW_U64 address)
{
	const UW_U64 h = mix_number(pid * MIX_GOLDEN, address, MIX_FIRST);

	return (UW_U32)(mix_number(h, address, MIX_SECOND) >> 40) & (RUNTIME_SEEN_SETS - 1);
}

/* How interpreted frames find the native frames that run them. */
enum runtime_by_loop {
	RUNTIME_BY_ADDRESS = 0,	   /* entries have an address, in the C frame that runs the chain */
	RUNTIME_FRAME_BY_LOOP = 1, /* they have none: each native frame in a loop runs one
				    * interpreted frame */
	RUNTIME_CHAIN_BY_LOOP = 2, /* they have none: each native frame in a loop runs a chain */
	RUNTIME_BY_LOOPS,
};

/*
 * The facts about one build that the walk needs. prof-symd makes it from the file. prof-bpf checks
 * the numbers up to `own` and passes everything to the kernel.
 *
 * Addresses in it are relative. The walk adds the executable mapping's start minus its file offset.
 * So each is the address by the file's own headers, minus that of the loop's code, plus the file
 * offset of this code.
 *
 * loop: the functions that interpret. Outputs do not show their frames. If entries have no
 * address, these frames mark the entries. The last `shown` of them are only taken over, and stay
 * visible.
 */
struct runtime_config {
	UW_U32 runtime; /* enum runtime */
	UW_U32 version; /* major << 16 | minor << 8 | patch */
	UW_U32 by_loop; /* enum runtime_by_loop */
	UW_U32 ranges;	/* number of ranges in loop[] */
	struct runtime_range loop[RUNTIME_RANGES];
	struct runtime_copy copy;
	UW_U32 takes; /* enum runtime_takes */
	/* RUNTIME_RULES_GENERATED: a rule with TABLES_RULE_SHORT, or TABLES_RULE_STUB
	 * (bpf/tables.h); 0: alias */
	UW_U32 rule;
	UW_U64 alias;	 /* likewise: a file offset */
	UW_U32 shown;	 /* how many ranges at the end of loop[] */
	UW_U32 zero[93]; /* must be 0 */
	UW_U8 own[RUNTIME_PRIVATE];
};

#define RUNTIME_CONFIG_WORDS 256 /* a power of two */

/* One runtime of a process; these entries follow its mappings. */
struct runtime_entry {
	UW_U64 base;   /* add this to the config's addresses */
	UW_U32 config; /* position of a struct runtime_config */
	UW_U32 runtime;
	UW_U32 slot; /* slot of the runtime's file */
	UW_U32 zero[3];
};

/*
 * An item is two words of the sample. The first has its kind, the slot of the runtime's file as in
 * a native frame's word, and an address. The second word depends on the kind:
 *
 * - a frame: the position in it, in the runtime's units, and a check value that identifies the
 *   object at the address (likewise for a second object of the frame; for its name see
 *   common/names/runtime/runtime.h)
 * - an entry: the index in the sample's words of the same runtime's next entry, 0 for none
 *
 * Items of one runtime are consecutive.
 */
enum runtime_item {
	RUNTIME_FRAME = 1,
	RUNTIME_ENTRY = 2,   /* after the frames of its chain; address 0: unknown */
	RUNTIME_STOPPED = 3, /* the rest could not be read */
	RUNTIME_SECOND = 4,  /* like a frame: a second object of the frame before it */
};
#define RUNTIME_ITEM_SHIFT 61
#define RUNTIME_ITEM_SLOT_SHIFT 48
#define RUNTIME_ITEM_SLOT_MASK 0x1fffull
#define RUNTIME_ADDRESS_MASK 0xffffffffffffull
#define RUNTIME_CHECK_SHIFT 24 /* 40 bits of check above 24 bits of position */
#define RUNTIME_POSITION_MASK 0xffffffull

/* The kind of code that runs in a frame, if the runtime reports it. */
enum runtime_code {
	RUNTIME_CODE_UNKNOWN = 0,
	RUNTIME_CODE_INTERPRETED = 1,
	RUNTIME_CODE_C1 = 2,	 /* HotSpot's compilers: the fast one, */
	RUNTIME_CODE_C2 = 3,	 /* and the optimizing one (or another one that replaces it) */
	RUNTIME_CODE_NATIVE = 4, /* the code that calls a native method */
	RUNTIME_CODES,
};
/* HotSpot's position: the kind of code, above 16 bits with the index of the bytecode. */
#define RUNTIME_HOTSPOT_CODE_SHIFT 16
#define RUNTIME_HOTSPOT_INDEX 0xffffull /* also used if no index is known */

#define RUNTIME_MAX_ITEMS 1088 /* per sample: 1,024 frames and their entries */

#ifndef __bpf__
static_assert(sizeof(struct runtime_config) == RUNTIME_CONFIG_WORDS * 4, "no padding");
static_assert(sizeof(struct runtime_entry) == 32, "as large as a map_entry, behind which it lies");

/*
 * Limits of the memory of a process that naming may read. Steps beyond them are ignored, so that a
 * wrong description cannot lead to other memory.
 */
struct runtime_need {
	UW_U8 far;     /* how many pointers in a row may be followed from an object of a sample */
	UW_U8 steps;   /* steps of struct runtime_copy, including `more` */
	UW_U8 indexes; /* 1: steps may lead to elements of tables */
	UW_U16 object; /* bytes of an object in a sample */
	UW_U16 bytes;  /* of another piece; the last copied one may give its size as 66 KiB */
};

static inline struct runtime_need runtime_need(UW_U32 runtime)
{
	switch (runtime) {
	case RUNTIME_V8: /* the walk's description is copied, and nothing else is read */
		return (struct runtime_need){ .far = 1, .steps = 15, .object = 512, .bytes = 0 };
	case RUNTIME_PYTHON: /* an object, two strings with their characters, and a table */
		return (struct runtime_need){ .far = 2, .steps = 6, .object = 320, .bytes = 4224 };
	case RUNTIME_HOTSPOT: /* a method, its constants with three strings, and its class's name */
		return (struct runtime_need){
			.far = 5, .steps = 12, .indexes = 1, .object = 64, .bytes = 512
		};
	default:
		return (struct runtime_need){
			.far = 4, .steps = RUNTIME_STEPS, .object = 512, .bytes = 512
		};
	}
}

/* Returns the position in an object, without the kind of code. */
static inline UW_U32 runtime_position(UW_U32 runtime, UW_U64 mark)
{
	const UW_U64 index = mark & RUNTIME_HOTSPOT_INDEX;

	if (runtime == RUNTIME_HOTSPOT && index != RUNTIME_HOTSPOT_INDEX)
		return (UW_U32)index;
	return runtime == RUNTIME_HOTSPOT ? (UW_U32)RUNTIME_POSITION_MASK
					  : (UW_U32)(mark & RUNTIME_POSITION_MASK);
}

/* Returns the kind of code that runs in a frame. */
static inline enum runtime_code runtime_code(UW_U32 runtime, UW_U64 mark)
{
	const UW_U64 code = (mark & RUNTIME_POSITION_MASK) >> RUNTIME_HOTSPOT_CODE_SHIFT;

	return runtime == RUNTIME_HOTSPOT && code < RUNTIME_CODES ? (enum runtime_code)code
								  : RUNTIME_CODE_UNKNOWN;
}

/* Returns the mark of a runtime, or NULL if the number is unknown. The final NUL is part of the
 * mark. */
static inline const char *runtime_mark(UW_U32 runtime)
{
	switch (runtime) {
#define RUNTIME(number, NAME, name, title, type, mark) \
	case number: \
		return mark;
#include "bpf/runtimes.def"
	}
	return 0;
}
#endif

#endif
