/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The DWARF of a file. libdw reads it in a worker process (dwarfworker.h), which may crash, hang or
 * be taken over. Then only this file loses inlined calls and lines. Without a keeper
 * (dwarfkeeper.h), libdw runs in this process.
 *
 *  - If the worker crashes on a file or takes too long, the file is given up while it stays open.
 *    The next worker opens the other files again when they are next needed.
 *  - If the worker was killed from outside, the next one tries its file once more. The second time,
 *    the file is given up.
 */
#ifndef COMMON_NAMES_DWARF_DWARF_H
#define COMMON_NAMES_DWARF_DWARF_H

#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/elf/symfile.h"
#include "common/names/names.h"

struct dwarf;

enum dwarf_verdict {
	DWARF_LOST = 100, /* the worker crashed on it, or took too long and was killed */
	DWARF_KILLED,	  /* workers were killed from outside while they read it, twice */
};

/* Takes the socket of the keeper, which starts the workers, for the life of this process. life_s:
 * how long a worker works before the next one replaces it (DWARFWORKER_LIFE_S). heap: bytes that
 * each may use. */
void dwarf_use_keeper(int control, unsigned life_s, uint64_t heap);
/* Sets `more`, which is called for a file that needs more heap. Its argument is how many bytes
 * would do. It returns how many the next worker may use, and the file is tried again with these. */
void dwarf_grow_with(uint64_t (*more)(void *ctx, uint64_t heap), void *ctx);
/* Sets how many bytes later workers may use. */
void dwarf_set_heap(uint64_t heap);

/* Whether the keeper has died or stopped answering. No file is opened then. */
bool dwarf_keeper_gone(void);

/* As dwarfinfo_open; also DWARF_LOST, DWARF_KILLED. */
int dwarf_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
	       struct dwarf **ret);
void dwarf_free(struct dwarf *d);
/* The file that the last lookup wants (DWARFINFO_AGAIN). *ret_id and *ret_name are borrowed until
 * the next lookup. */
enum dwarfinfo_want dwarf_wants(const struct dwarf *d, struct span *ret_id, const char **ret_name);
/* Answers that with an open file, which is taken, or with -1 if there is none. False: the file is
 * neither a .dwo file nor a package. */
bool dwarf_offer(struct dwarf *d, int fd);
/* From now on lookups want no files. */
void dwarf_leave_alone(struct dwarf *d);
/* As dwarfinfo_lookup. If the worker runs out of memory, it is replaced, and the file counts as too
 * large. */
int dwarf_lookup(struct dwarf *d, uint64_t address, struct names *ret);
/* Whether the file was given up because the worker died on it. */
bool dwarf_lost(const struct dwarf *d);
/* How often workers were killed from outside while they read it. More than once: it is lost. */
unsigned dwarf_kills(const struct dwarf *d);
/* As dwarfinfo_rest and dwarfinfo_bytes; the memory is the worker's. */
bool dwarf_rest(struct dwarf *d, bool packed);
size_t dwarf_bytes(const struct dwarf *d);

#endif
