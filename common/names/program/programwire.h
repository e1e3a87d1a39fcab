/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between prof-symd and its workers (fileworker.h). Each is one record of a SEQPACKET
 * socket, in the machine's own layout, since both ends are the same program. prof-symd checks the
 * answers like all untrusted bytes, since the worker parses hostile files.
 */
#ifndef COMMON_NAMES_PROGRAM_PROGRAMWIRE_H
#define COMMON_NAMES_PROGRAM_PROGRAMWIRE_H

#include "common/names/calltext.h"
#include "common/names/elf/fileid.h"
#include "common/names/names.h"
#include "common/names/runtime/runtime.h"

#define PROGRAMWIRE_PROGRAMS 128 /* open at a time */
#define PROGRAMWIRE_FDS 3
#define PROGRAMWIRE_EXPECTED 31	    /* lookups that a request announces */
#define PROGRAMWIRE_MORE_MAX 16384u /* bytes of their answers */

enum programwire_kind {
	/* value: bytes that its DWARF may take; step, flags: the state that the program had in an
	 * earlier worker. With descriptors of the program and of the files that the flags name. */
	PROGRAMWIRE_OPEN = 1,
	PROGRAMWIRE_LOOKUP = 2,	  /* value: an ELF address, or with PROGRAMWIRE_OFFSET an offset */
	PROGRAMWIRE_REST = 3,	  /* value: `packed` of sources_rest */
	PROGRAMWIRE_CLOSE = 4,	  /* has no answer */
	PROGRAMWIRE_OFFER = 5,	  /* with a descriptor of the wanted file, or without one if there
				   * is none */
	PROGRAMWIRE_GIVE_UP = 6,  /* no more files come */
	PROGRAMWIRE_DESCRIBE = 7, /* asks which runtime the program has */
};

enum programwire_flag {
	PROGRAMWIRE_DEBUG = 1,	  /* the program has a debug file */
	PROGRAMWIRE_SHARED = 2,	  /* the program has a shared file (dwz) */
	PROGRAMWIRE_UNPROVEN = 4, /* the checksum of the debug file is not compared yet */
	PROGRAMWIRE_OFFSET = 8,	  /* of a lookup: value is an offset */
	PROGRAMWIRE_TOO_LARGE = 16,
	PROGRAMWIRE_CUT = 32,
	PROGRAMWIRE_FACTS = 64,	  /* struct programwire_facts follows */
	PROGRAMWIRE_BUILD = 128,  /* struct runtime_build follows */
	PROGRAMWIRE_LOST = 256,	  /* as sources_dwarf_lost */
	PROGRAMWIRE_MORE = 512,	  /* answers to announced lookups follow */
	PROGRAMWIRE_NO_V8 = 1024, /* of OPEN: as sources_lacks_v8 */
};

struct programwire_ask {
	uint32_t kind;
	uint32_t program; /* below PROGRAMWIRE_PROGRAMS, chosen by prof-symd */
	uint64_t value;
	uint32_t step, flags;
	uint64_t owner; /* whom the work is charged to (program_charge) */
	/* Offsets that are likely to be looked up next, in the same program. The worker may also
	 * answer these, if that is quick. */
	uint32_t expected_count;
	uint64_t expected[PROGRAMWIRE_EXPECTED];
};

struct programwire_call {
	uint64_t line, start_line;
	struct calltext name, system_name, source;
	uint32_t bare, zero;
};

/* The facts that prof-symd needs about a program, and the file that it wants next. */
struct programwire_facts {
	uint32_t want, id_len, name_len;
	uint8_t id[SYMFILE_BUILD_ID];
	char name[NAMES_TEXT + 4]; /* includes the NUL */
	uint32_t refused;	   /* program_refused */
	struct fileid file;
};

/* The verdicts of functions that return bool. */
enum programwire_verdict { PROGRAMWIRE_NO = 0, PROGRAMWIRE_YES = 1 };

/* The head of an answer, followed by `count` calls, the text, the facts and the build. verdict: the
 * result of the function of sources.h. bytes: memory that the program takes now. */
struct programwire_head {
	int32_t verdict;
	uint32_t count;
	uint64_t bytes;
	uint64_t address, start; /* of a lookup by offset */
	uint32_t text_len, flags;
	uint32_t step, cpu_us; /* cpu_us: cpu time of this request, as reported by the worker */
};

struct programwire_answer {
	struct programwire_head head;
	struct programwire_facts facts; /* valid if its flag is set */
	struct runtime_build build;	/* likewise */
	struct span more; /* likewise, borrowed; a sequence of programwire_more, each followed by
			   * its answer */
};

/* The head of an answer to an announced lookup. */
struct programwire_more {
	uint64_t offset;
	uint32_t size, zero; /* size: bytes of the answer that follows */
};

#define PROGRAMWIRE_MAX \
	(sizeof(struct programwire_answer) + NAMES_MAX * sizeof(struct programwire_call) + \
	 sizeof(((struct names *)0)->text) + PROGRAMWIRE_MORE_MAX)

/* Writes an answer and returns its size in bytes. names may be NULL. into: PROGRAMWIRE_MAX
 * bytes. */
size_t programwire_put(const struct programwire_answer *a, const struct names *names,
		       uint8_t *into);
/* Reads an answer from untrusted bytes. *ret_names owns its text; ret->more points into bytes.
 * Returns false if this is not an answer; the outputs are then invalid. */
bool programwire_take(struct span bytes, struct programwire_answer *ret, struct names *ret_names);
/* Finds the answer to the announced lookup of this offset in untrusted bytes, and reads it. Returns
 * false if there is none. */
bool programwire_find(struct span more, uint64_t offset, struct programwire_answer *ret,
		      struct names *ret_names);

#endif
