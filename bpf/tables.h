/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The layout of the unwind tables in BPF maps, which prof-bpf writes through mmap and the walker
 * reads.
 *
 * Everything of variable size lies in slabs, the inner maps of one array of maps, so that memory is
 * taken as needed. A position identifies a 4-byte word in them: slab number, then word. A unit that
 * is read at once never crosses the boundary of two slabs.
 *
 *   process (hash: pid) --> map_entry[]   sorted by start, in a slab, followed by runtime_entry[]
 *   map_entry --> file_entry (array: slot) --> block_entry[] in a slab: one per 2 KiB of text
 *   block_entry --> row words in a slab, sorted: offset in the block << 16 | rule number; the first
 *                   has offset 0
 *   rule number --> struct unwind_rule (array), unless it is the rule itself (TABLES_RULE_SHORT)
 */
#ifndef BPF_TABLES_H
#define BPF_TABLES_H

#include "bpf/unwind.h"

#define TABLES_SLAB_WORDS_SHIFT 19
#define TABLES_SLAB_WORDS (1u << TABLES_SLAB_WORDS_SHIFT)
#define TABLES_SLAB_BYTES (TABLES_SLAB_WORDS * 4)
#define TABLES_MAX_SLABS 256
/* About 30 rows per block, two cache lines. Half the size would cost a tenth more memory. */
#define TABLES_BLOCK_SHIFT 11
#define TABLES_MAX_FILES (1u << 13) /* slots; fits SAMPLE_FRAME_SLOT_MASK */
/* Slots for files; the other numbers have a meaning in words of frames. */
#define TABLES_SLOTS (TABLES_MAX_FILES - 8)
#define TABLES_MAX_PROCESSES (1u << 14)
#define TABLES_MAX_RULES (1u << 14) /* distinct rules of all files */
#define TABLES_RULE_STRIDE 32	    /* bytes; so that no rule crosses a cache line */
#define TABLES_RULE_GAP 0	    /* the rule "no FDE covers this", which always exists */

/*
 * Numbers that encode a whole rule. Nearly all frames have such rules. Reading the array element
 * instead would cost a fifth of a step when memory is not cached. In these rules the CFA is RSP or
 * RBP plus a multiple of 8, and RBP and RBX are saved close below it or unchanged.
 */
#define TABLES_RULE_SHORT 0x8000u		  /* set in such numbers */
#define TABLES_RULE_SHORT_RBP 0x4000u		  /* the CFA is relative to RBP, not RSP */
#define TABLES_RULE_SHORT_CFA(n) ((n) >> 6 & 255) /* words up to the CFA */
/* Words below the CFA where RBP is saved; 0: unchanged. */
#define TABLES_RULE_SHORT_RBP_AT(n) ((n) >> 3 & 7)
#define TABLES_RULE_SHORT_RBX_AT(n) ((n)&7) /* likewise RBX */
/* A short rule with all other bits 0: the code has no layout, but was called by a stub that has one
 * (stub.h). */
#define TABLES_RULE_STUB TABLES_RULE_SHORT
/* Bits 16 to 23 of a config's rule (bpf/runtime.h): all calls come from one C function with rows,
 * whose return address lies this many words below RBP. 0: they come from stubs. */
#define TABLES_RULE_STUB_BELOW_SHIFT 16
#define TABLES_RULE_STUB_BELOW_MAX 255

struct slab {
	UW_U8 bytes[TABLES_SLAB_BYTES];
};

/* An element of the rules' map. */
struct rule_entry {
	struct unwind_rule rule;
	UW_U32 zero[2];
};

enum file_state {
	TABLES_FILE_FREE = 0,
	TABLES_FILE_PENDING = 1, /* rows have been requested */
	TABLES_FILE_NO_ROWS = 2, /* no rows will come: use frame pointers */
	TABLES_FILE_READY = 3,
	/* Rows were evicted: use frame pointers until they are requested again. */
	TABLES_FILE_EVICTED = 4,
};

struct file_entry {
	UW_U32 state;	    /* enum file_state */
	UW_U32 index;	    /* position of block_entry[0] */
	UW_U32 first_block; /* file offset of block 0 >> TABLES_BLOCK_SHIFT */
	UW_U32 blocks;
};

struct block_entry {
	UW_U32 rows;  /* position of the first row word */
	UW_U16 count; /* at least 1 */
	UW_U16 zero;
};

struct map_entry {
	UW_U64 start, end; /* user addresses */
	UW_U64 bias;	   /* pc - bias is the file offset */
	UW_U32 slot;	   /* 0: no file */
	/* Bit n: the process's runtime n takes over frames in the mapping (enum runtime_takes). Bit
	 * TABLES_MAP_RULER + n: it has one rule for all of them. */
	UW_U32 takers;
};
#define TABLES_MAP_RULER 8

#define TABLES_PROCESS_SELECTED 1 /* to be sampled */
/* From this bit on: number of struct runtime_entry after the mappings. */
#define TABLES_PROCESS_RUNTIMES_SHIFT 8
#define TABLES_PROCESS_RUNTIMES_MAX 4

struct process_entry {
	UW_U64 start_ns; /* as in struct sample: the pid may have been reused */
	UW_U64 heard_ns; /* CLOCK_MONOTONIC: user space knew of all execs before this time */
	UW_U32 maps;	 /* position of map_entry[0] */
	UW_U32 map_count;
	UW_U32 generation; /* number of these mappings; 0: none is known */
	UW_U32 flags;
};

/* The last exec of a pid. It is lost if another pid that uses the same element also execs. */
#define TABLES_EXECS 1024
struct exec_entry {
	UW_U64 ns; /* CLOCK_MONOTONIC */
	UW_U32 pid;
	UW_U32 skipped; /* after this exec, the process is not one of those to sample (target.h) */
};

#ifndef __bpf__
static_assert(sizeof(struct rule_entry) == TABLES_RULE_STRIDE, "as the kernel lays the map out");
static_assert(sizeof(struct file_entry) == 16 && sizeof(struct block_entry) == 8 &&
		      sizeof(struct map_entry) == 32 && sizeof(struct process_entry) == 32 &&
		      sizeof(struct exec_entry) == 16,
	      "no padding");
#endif

#endif
