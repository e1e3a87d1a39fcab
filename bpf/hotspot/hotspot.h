/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * HotSpot, the JVM of OpenJDK 8 and later: how to find the frames of its code.
 *
 * All of its code lies in heaps of anonymous memory. A heap consists of blocks, and its segment map
 * leads from an address to the block that contains it. A block holds a CodeBlob: the compiled code
 * of a method (an nmethod), the interpreter, or stubs. The blob's header has the size of its
 * frames.
 *
 * An interpreter's frame holds the method and the address of the bytecode. Compiled code holds
 * descriptions of its calls. They give the method and the bytecode of each call, and the calls that
 * it is inlined in.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_H
#define BPF_HOTSPOT_HOTSPOT_H

#include "bpf/mix.h"
#include "bpf/runtime.h"

enum hotspot_flags {
	HOTSPOT_ONE_HEAP = 1,	 /* `heaps` points to the only heap (JDK 8) */
	HOTSPOT_SHORT_FRAME = 2, /* blob_complete has 16 bits, not 32 */
	HOTSPOT_CODE_OFFSET = 4, /* blob_code is an offset, not an address */
	/* pcs and data are offsets from the blob, or from the target of `immutable` */
	HOTSPOT_DATA_ADDRESS = 8,  /* data is an address */
	HOTSPOT_DEOPT_OFFSET = 16, /* deopt and deopt_mh are offsets from the blob */
	HOTSPOT_NO_ZEROS = 32,	   /* compressed numbers have no zero bytes (JDK 20) */
	/* metadata has 16 bits and counts from the blob's data, whose offset is at mutable_data */
	HOTSPOT_METADATA_IN_DATA = 64,
	HOTSPOT_FIXED_FIELDS = 128,   /* six numbers of 16 bits describe a field (before JDK 21) */
	HOTSPOT_THREAD_HANDLES = 256, /* threads refer to their objects by handles (JDK 16) */
};

#define HOTSPOT_BLOB_BYTES 448 /* limit for a block with the header of its blob, in bytes */
#define HOTSPOT_BLOB_WORDS 64  /* words of its array: a power of two */
#define HOTSPOT_CONST_BYTES 64 /* limit for a ConstMethod's header, in bytes */
#define HOTSPOT_HEAPS 4

/*
 * Offsets in bytes. Those of a blob count from its block, which begins `block` bytes before the
 * blob. An optional offset is 0 if the build lacks the field.
 */
struct hotspot_config {
	UW_U64 heaps;	    /* address of CodeCache::_heaps */
	UW_U64 call_return; /* optional: address of the variable that holds where methods return to
			     * in the call stub */
	UW_U16 flags;
	UW_U16 array_length, array_data; /* of a GrowableArray */
	/* Of a CodeHeap: the first and the last address of the heap, the segment map, and log2 of
	 * the bytes of a segment. */
	UW_U16 heap_start, heap_end, heap_map, heap_shift;
	UW_U16 block; /* bytes of a HeapBlock */
	UW_U16 blob_bytes;
	UW_U16 blob_name, blob_code, blob_complete, blob_frame;
	/* Fields of an nmethod. */
	UW_U16 method, deopt, deopt_mh, orig_pc;
	UW_U16 immutable; /* optional: the address that pcs and data count from */
	UW_U16 pcs, pcs_end, data;
	/* metadata: offset of the metadata from the blob, or from the target of mutable_data */
	UW_U16 metadata;
	UW_U16 mutable_data; /* optional */
	/* Of a Method and its ConstMethod: fields, and the bytes of the header. */
	UW_U16 method_const, const_bytes, const_pool, const_size, const_code_size, const_name,
		const_signature;
	/* The address of the bytecode in an interpreter's frame is this many words below RBP. */
	UW_U16 frame_bcp;
	/* For virtual threads. cont_entry: field of a JavaThread with its ContinuationEntry; 0: the
	 * build has none. cont_entry_bytes: size of a ContinuationEntry; 0: not known. */
	UW_U16 cont_entry, cont_entry_bytes;
	/* Of objects (hotspot_object.h); fields is 0: not supported. Fields of a class: the
	 * superclass, the layout, the table of fields, the constants. */
	UW_U16 super, layout, fields, class_pool, pool_bytes;
	UW_U16 symbol_length, symbol_text;
	/* Of the flags in the table of fields: how many come before "initialized". */
	UW_U16 fields_shift;
	UW_U16 level;	     /* field of an nmethod, optional: one byte, which tells the compiler */
	UW_U16 fields_count; /* HOTSPOT_FIXED_FIELDS: field of a class: how many fields it has */
	/* Optional fields of a JavaThread: the Thread object of its carrier, and that of the thread
	 * it runs. */
	UW_U16 thread, thread_virtual;
	UW_U16 zero[3];
	/* Addresses of variables: the class of java.lang.Object, and how references and classes
	 * are compressed. */
	UW_U64 object_class, oop_base, oop_shift, class_base, class_shift;
};

/* Returns the check value of a method, made of its ConstMethod's address and fields: 40 bits, never
 * 0. sizes: `size`, with code_size in the bits above it. names: the indices of name and
 * signature. */
static inline UW_U64 hotspot_check(UW_U64 address, UW_U64 pool, UW_U64 sizes, UW_U64 names)
{
	UW_U64 h = address * MIX_GOLDEN;

	h = mix_number(h, pool, MIX_FIRST);
	h = mix_number(h, sizes, MIX_SECOND);
	h = mix_number(h, names, MIX_FIRST);
	h = (h ^ h >> 32) >> RUNTIME_CHECK_SHIFT;
	return h ? h : 1;
}

/* Stubs have no object but a name: the item's address is that of the text. Returns its check value,
 * made of the first 16 bytes: 40 bits, never 0. */
static inline UW_U64 hotspot_text_check(const UW_U64 text[2])
{
	UW_U64 h = (text[0] ^ text[0] >> 32) * MIX_GOLDEN;

	h = mix_number(h, text[1], MIX_SECOND);
	h = (h ^ h >> 32) >> RUNTIME_CHECK_SHIFT;
	return h ? h : 1;
}

#ifndef __bpf__
static_assert(sizeof(struct hotspot_config) == 152, "no padding");
static_assert(sizeof(struct hotspot_config) <= RUNTIME_PRIVATE, "it fits");
#endif

#endif
