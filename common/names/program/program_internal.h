/* SPDX-License-Identifier: Apache-2.0 */
/* A program (program.h), for program.c, and for crew.c, which has it read by workers. */
#ifndef COMMON_NAMES_PROGRAM_PROGRAM_INTERNAL_H
#define COMMON_NAMES_PROGRAM_PROGRAM_INTERNAL_H

#include "common/names/program/program.h"
#include "common/names/program/programwire.h"

struct sources;

/* Of its descriptors. */
enum part { MAIN, DEBUG, SHARED, PARTS };

struct program {
	struct sources *sources; /* owned; set if the files are parsed in this process */
	enum program_class class;
	int fds[PARTS];		    /* -1: it has none */
	uint64_t dwarf_max, worker; /* worker: the number of the one in which it is open */
	unsigned kills;
	uint32_t slot;
	uint64_t owner;
	uint64_t worked_ns; /* of the workers, since program_worked_ns */
	bool slow;	    /* for the patient worker */
	uint64_t grows_ns;  /* since when it asks for more heap; 0: it does not */
	bool dwarf_lost, too_large;
	bool lost; /* it has no names at all */
	bool opened, unproven, cut;
	uint32_t step;
	unsigned again; /* wants of the present lookup */
	size_t bytes;
	struct programwire_facts facts;
	uint64_t expected[PROGRAMWIRE_EXPECTED]; /* for the next lookup */
	uint32_t expected_count;
	uint8_t *ahead; /* answers to expected lookups (programwire_find); NULL: none */
	size_t ahead_len;
};
_Static_assert(PROGRAM_EXPECTED == PROGRAMWIRE_EXPECTED, "");

#endif
