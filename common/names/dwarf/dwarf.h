/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF of a file, read by libdw in a process of its own (dwarfworker.h), which may die of it,
 * take for ever or be taken over: then this file's inlined calls and lines are missing, and no
 * other's. Where no such process was started libdw runs in this one.
 *
 * A file that the worker died on, or that took it more than its time, is not given to it again
 * while it is open; the others are opened anew in the next worker when they are next asked for. One
 * over which the worker was killed from outside is given to the next at once, and given up the
 * second time.
 */
#ifndef PROFPIPE_DWARF_H
#define PROFPIPE_DWARF_H

#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/names.h"
#include "common/names/elf/symfile.h"

struct dwarf;

enum dwarf_verdict {
	DWARF_LOST = 100, /* the worker died on it, or was killed when its time was over */
	DWARF_KILLED,	  /* twice a worker was killed over it from outside */
};

/* What workers are started by, for the life of the process: taken (dwarfkeeper.h). life_s: how long
 * one works before the next takes its place, DWARFWORKER_LIFE_S. heap: bytes that each may have. */
void dwarf_use_keeper(int control, unsigned life_s, uint64_t heap);
/* From now on a file that takes more is tried again with what `more` gives: it is asked for so many
 * bytes of heap, and returns how many the next worker may have. */
void dwarf_grow_with(uint64_t (*more)(void *ctx, uint64_t heap), void *ctx);
/* Workers that are started from now on may have so much. */
void dwarf_set_heap(uint64_t heap);

/* It is dead or does not answer, which was waited for once: no file is opened any more. */
bool dwarf_keeper_gone(void);

/* As dwarfinfo_open; or DWARF_LOST, DWARF_KILLED. */
int dwarf_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
	       struct dwarf **ret);
void dwarf_free(struct dwarf *d);
/* What the last lookup wanted (DWARFINFO_AGAIN); *ret_id and *ret_name are borrowed until the next.
 */
enum dwarfinfo_want dwarf_wants(const struct dwarf *d, struct span *ret_id, const char **ret_name);
/* Answers it with an open file, which is taken, or -1: there is none. False: it is no .dwo file and
 * no package. */
bool dwarf_offer(struct dwarf *d, int fd);
/* From here on lookups want nothing, and do with what is there. */
void dwarf_leave_alone(struct dwarf *d);
/* As dwarfinfo_lookup; a worker that runs out of memory makes room for the next, and the file is
 * too large. */
int dwarf_lookup(struct dwarf *d, uint64_t address, struct names *ret);
/* It was given up: the worker died on it. */
bool dwarf_lost(const struct dwarf *d);
/* How often a worker was killed over it from outside: more than once, and it is lost. */
unsigned dwarf_kills(const struct dwarf *d);
/* As dwarfinfo_rest, dwarfinfo_bytes: the memory is the worker's. */
bool dwarf_rest(struct dwarf *d, bool packed);
size_t dwarf_bytes(const struct dwarf *d);

#endif
