/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between prof-symd and its worker (dwarfworker.h). Each is one record of a SEQPACKET
 * socket, in the machine's own layout, since both ends are the same program. prof-symd checks the
 * answers like any stranger's bytes: libdw works on hostile input.
 */
#ifndef COMMON_NAMES_DWARF_DWARFWIRE_H
#define COMMON_NAMES_DWARF_DWARFWIRE_H

#include "common/names/names.h"

#define DWARFWIRE_FILES 128 /* open at a time */

enum dwarfwire_kind {
	DWARFWIRE_OPEN = 1,   /* value: bytes that its DWARF may take; with descriptors of the file
				 and, if there is one, of its .gnu_debugaltlink */
	DWARFWIRE_LOOKUP = 2, /* value: the ELF address */
	DWARFWIRE_REST = 3,   /* value: `packed` of dwarfinfo_rest */
	DWARFWIRE_CLOSE = 4,  /* has no answer */
	DWARFWIRE_OFFER = 5,  /* with a descriptor of the file that the last lookup wanted, or
				 none */
};

struct dwarfwire_ask {
	uint32_t kind;
	uint32_t file; /* below DWARFWIRE_FILES, chosen by prof-symd */
	uint64_t value;
};

/* A string of an answer: its place in the text. */
struct dwarfwire_text {
	uint32_t at, len;
};

struct dwarfwire_call {
	uint64_t line, start_line;
	struct dwarfwire_text name, system_name, source;
	uint32_t bare, zero;
};

/* The head of an answer; `count` calls and the text follow. verdict: what the function of
 * dwarfinfo.h returned; for DWARFWIRE_REST 1 or 0. bytes: of memory that the file takes now. */
struct dwarfwire_head {
	int32_t verdict;
	uint32_t count;
	uint64_t bytes;
	uint32_t text_len, zero;
};

#define DWARFWIRE_MAX \
	(sizeof(struct dwarfwire_head) + NAMES_MAX * sizeof(struct dwarfwire_call) + \
	 sizeof(((struct names *)0)->text))

/* Writes an answer and returns its size in bytes. names: may be NULL; if `cap` is too small, the
 * outermost calls are dropped. cap: at least sizeof(struct dwarfwire_head). */
size_t dwarfwire_put(int verdict, uint64_t bytes, const struct names *names, uint8_t *into,
		     size_t cap);
/* Reads an answer from untrusted bytes. *ret_names owns its text; ret_names may be NULL if no calls
 * are expected. False: not an answer; then nothing is written. */
bool dwarfwire_take(struct span answer, int *ret_verdict, uint64_t *ret_bytes,
		    struct names *ret_names);

#endif
