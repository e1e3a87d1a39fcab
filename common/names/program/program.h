/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program or shared object with all files that name its code: itself, its debug file, and the
 * file that both may share strings with (dwz). Whoever holds the program asks for missing files, in
 * the order that `program_wants` gives. Nothing here opens a path.
 *
 * Names come from the first of these that has one:
 *  - Go's own table;
 *  - DWARF, its own or the debug file's;
 *  - .symtab, its own or the debug file's;
 *  - MiniDebugInfo and .dynsym.
 * Code without a name has at least its function's start (funcbounds.h). Files are parsed at the
 * first lookup.
 */
#ifndef PROFPIPE_PROGRAM_H
#define PROFPIPE_PROGRAM_H

#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/names.h"
#include "common/names/elf/symfile.h"

struct program;

enum program_want {
	PROGRAM_WANTS_NOTHING,
	PROGRAM_WANTS_BUILD_ID, /* the debug file of this build id */
	PROGRAM_WANTS_NAME,	/* the debug file of this name, as .gnu_debuglink says */
	PROGRAM_WANTS_ALT, /* the file of this build id, which .gnu_debugaltlink of the debug file
			      names by this path; also a .dwo file, by its unit's id */
	PROGRAM_WANTS_PACKAGE, /* the .dwp file beside it */
};

/* The verdict of a lookup that wants something first (program_wants). */
#define PROGRAM_AGAIN DWARFINFO_AGAIN

/* Takes fd, always. dwarf_max: bytes of memory that its DWARF may take, unpacked; larger is not
 * used, nor is any where it is 0. 0, the verdicts of symfile_open, -errno. */
int program_open(int fd, uint64_t dwarf_max, struct program **ret);
void program_free(struct program *p);
/* What would help; *ret_build_id and *ret_name are borrowed until the next program_offer, empty and
 * NULL where not meant. */
enum program_want program_wants(struct program *p, struct span *ret_build_id,
				const char **ret_name);
/* Answers the present want with an open file, which is taken, or -1: there is none. A file that is
 * not the right one (build id, checksum) is closed and true is not returned. */
bool program_offer(struct program *p, int fd);
/* The answer does not come. No lookup wants anything from here on. */
void program_give_up(struct program *p);

/* The file itself, borrowed. */
const struct symfile *program_file(const struct program *p);
/* As symfile_is_cut. */
bool program_is_cut(const struct program *p);
struct span program_build_id(const struct program *p);
/* As symfile_address. */
int program_address(const struct program *p, uint64_t offset, uint64_t *ret);
/* The calls at an ELF address; a call's name is empty only where nothing but a line is known. 0,
 * SYMFILE_NONE, -ENOMEM, PROGRAM_AGAIN; damage counts as nothing known. */
int program_lookup(struct program *p, uint64_t address, struct names *ret);
/* Where the function begins that has an ELF address, for one that program_lookup has no name for:
 * another ELF address. 0, SYMFILE_NONE (nothing tells), -ENOMEM. */
int program_start(struct program *p, uint64_t address, uint64_t *ret);
/* True once DWARF was left alone for its size, or what reading it takes. */
bool program_dwarf_too_large(const struct program *p);
/* True once libdw died on it, or took too long: its inlined calls and lines are missing. */
bool program_dwarf_lost(const struct program *p);
/* How often the process that libdw runs in was killed over it by somebody else: at the second time
 * it is lost for that. */
unsigned program_dwarf_kills(const struct program *p);
/* As dwarfinfo_rest. */
bool program_rest(struct program *p, bool packed);
size_t program_bytes(const struct program *p);

#endif
