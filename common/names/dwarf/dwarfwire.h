/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What prof-symd and the process that runs libdw for it say to each other, one record of a
 * SEQPACKET socket each, in the machine's own layout: both are one program. Neither believes the
 * other: libdw works on hostile bytes.
 */
#ifndef PROFPIPE_DWARFWIRE_H
#define PROFPIPE_DWARFWIRE_H

#include "common/names/names.h"

#define DWARFWIRE_FILES 128 /* open at a time */

enum dwarfwire_kind {
	DWARFWIRE_OPEN = 1,   /* value: bytes that its DWARF may take; one descriptor or two: the
				 file, and that of .gnu_debugaltlink */
	DWARFWIRE_LOOKUP = 2, /* value: the ELF address */
	DWARFWIRE_REST = 3,   /* value: whether what was unpacked goes, too */
	DWARFWIRE_CLOSE = 4,  /* has no answer */
	DWARFWIRE_OFFER = 5,  /* a descriptor, what the last lookup wanted; or none */
};

struct dwarfwire_ask {
	uint32_t kind;
	uint32_t file; /* below DWARFWIRE_FILES, chosen by who asks */
	uint64_t value;
};

/* A string of an answer: where it is in the text. */
struct dwarfwire_text {
	uint32_t at, len;
};

struct dwarfwire_call {
	uint64_t line, start_line;
	struct dwarfwire_text name, system_name, source;
	uint32_t bare, zero;
};

/* Behind it `count` calls, and the text. verdict: as the call of dwarfinfo.h says; of
 * DWARFWIRE_REST 1 or 0. bytes: of memory that the file takes now. */
struct dwarfwire_head {
	int32_t verdict;
	uint32_t count;
	uint64_t bytes;
	uint32_t text_len, zero;
};

#define DWARFWIRE_MAX \
	(sizeof(struct dwarfwire_head) + NAMES_MAX * sizeof(struct dwarfwire_call) + \
	 sizeof(((struct names *)0)->text))

/* Writes an answer; names may be NULL, and are cut from the root's side where `cap` is too small.
 * How many bytes it has. cap: sizeof(struct dwarfwire_head) at least. */
size_t dwarfwire_put(int verdict, uint64_t bytes, const struct names *names, uint8_t *into,
		     size_t cap);
/* Reads an answer, any bytes; *ret_names, which may be NULL where no calls are expected, owns its
 * text. False, with nothing written, if it is no answer. */
bool dwarfwire_take(struct span answer, int *ret_verdict, uint64_t *ret_bytes,
		    struct names *ret_names);

#endif
