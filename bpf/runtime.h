/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Runtimes: interpreters whose frames are not on the native stack alone.
 *
 * A runtime has a line in runtimes.def, its config here, <runtime>.h, its walk, <runtime>_walk.h, a
 * program that runs the walk, <runtime>.bpf.c, and a file in prof-symd, which recognizes it in a
 * file, describes that very build in a config, and names its frames.
 *
 * Before the native walk of a sample the runtime's program reads the thread's interpreted frames,
 * innermost first, as items. Where a chain of them was entered from native code, an item says so:
 * with the address of something in the C frame of the interpreter's loop, when the runtime has such
 * a thing. The native walk marks the frame which that address lies in (SAMPLE_FRAME_ENTRY), and who
 * reads the sample puts the chain in that place. So the two walks know nothing of each other, and a
 * native walk that is deferred loses nothing.
 */
#ifndef PROFPIPE_RUNTIME_H
#define PROFPIPE_RUNTIME_H

#include "bpf/unwind.h"

enum runtime {
	RUNTIME_NONE = 0,
#define RUNTIME(number, NAME, name, title, mark) RUNTIME_##NAME = number,
#include "bpf/runtimes.def"
};
#define RUNTIME_MAX 16 /* their numbers are below */

/* Places in a runtime's file, as offsets in it: [start, end). */
struct runtime_range {
	UW_U64 start, end;
};

#define RUNTIME_RANGES 6
#define RUNTIME_PRIVATE 128 /* bytes that only the runtime's own walk understands */

/* What is taken of an object when it is seen first, for its names: so many bytes of it, and what it
 * has pointers to. bytes 0: nothing. Offsets in bytes; of pointers they are multiples of 8, and
 * RUNTIME_COPY_NONE where there is no such. */
#define RUNTIME_COPY_NONE 0xffff
struct runtime_copy {
	UW_U16 bytes;		       /* of the object, SAMPLE_OBJECT_BYTES at most */
	UW_U16 name, source;	       /* pointers to its strings, */
	UW_U16 lines;		       /* and to its lines, */
	UW_U16 lines_size, lines_data; /* where a word says of how many bytes, and these begin */
	UW_U16 zero[2];
};

/*
 * What the walk needs to know of one build. prof-symd makes it of the file, prof-bpf checks the
 * numbers up to `copy` and passes all of it on to the kernel. An address in it is what the
 * executable mapping's start minus its file offset must be added to: the address that the file's
 * own headers give, minus what they give the loop's code, plus the file offset of that.
 *
 * loop: the functions that interpret, for folding their frames, and where entries have no address
 * for finding these.
 */
struct runtime_config {
	UW_U32 runtime; /* enum runtime */
	UW_U32 version; /* major << 16 | minor << 8 | patch */
	UW_U32 by_loop; /* entries have no address: each frame in a loop is one */
	UW_U32 ranges;	/* of loop[] */
	struct runtime_range loop[RUNTIME_RANGES];
	struct runtime_copy copy;
	UW_U8 own[RUNTIME_PRIVATE];
};

#define RUNTIME_CONFIG_WORDS 64

/* One of a process's runtimes: behind its mappings. */
struct runtime_entry {
	UW_U64 base;   /* of the config's addresses */
	UW_U32 config; /* position of a struct runtime_config */
	UW_U32 runtime;
	UW_U32 slot; /* of the file that holds it */
	UW_U32 zero[3];
};

/*
 * An item is two words of the sample. The first: its kind, the slot of the file that holds the
 * runtime, as in a native frame's word, and an address. The second of a frame: where in it, in
 * units that the runtime has, and a check of the object that the address names, to know it again
 * by; of an entry: where in the sample's words the same runtime's next entry is, 0 for none. Those
 * of one runtime follow each other.
 */
enum runtime_item {
	RUNTIME_FRAME = 1,
	RUNTIME_ENTRY = 2,   /* behind the frames of its chain; address 0: not known */
	RUNTIME_STOPPED = 3, /* the rest could not be read */
};
#define RUNTIME_ITEM_SHIFT 61
#define RUNTIME_ITEM_SLOT_SHIFT 48
#define RUNTIME_ITEM_SLOT_MASK 0x1fffull
#define RUNTIME_ADDRESS_MASK 0xffffffffffffull
#define RUNTIME_CHECK_SHIFT 24 /* 40 bits of check above 24 of position */
#define RUNTIME_POSITION_MASK 0xffffffull

#define RUNTIME_MAX_ITEMS 1088 /* of one sample: 1,024 frames and their entries */

#ifndef __bpf__
static_assert(sizeof(struct runtime_config) == RUNTIME_CONFIG_WORDS * 4, "no padding");
static_assert(sizeof(struct runtime_entry) == 32, "as large as a map_entry, behind which it lies");

/* Ends with a NUL, which counts. NULL: there is no such runtime. */
static inline const char *runtime_mark(UW_U32 runtime)
{
	switch (runtime) {
#define RUNTIME(number, NAME, name, title, mark) \
	case number: \
		return mark;
#include "bpf/runtimes.def"
	}
	return 0;
}
#endif

#endif
