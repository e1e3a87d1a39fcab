/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program or shared object with all files that name its code: itself, its debug file, and the
 * file with which both may share strings (dwz). The owner of the program provides missing files, in
 * the order in which `program_wants` asks for them. Nothing here opens a path.
 *
 * Names come from the first of these that has one:
 *  - Go's own table;
 *  - DWARF, its own or the debug file's;
 *  - .symtab, its own or the debug file's;
 *  - MiniDebugInfo and .dynsym.
 * For code without a name, the start of its function can still be found (funcbounds.h). The first
 * lookup parses the files.
 */
#ifndef COMMON_NAMES_PROGRAM_PROGRAM_H
#define COMMON_NAMES_PROGRAM_PROGRAM_H

#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/elf/symfile.h"
#include "common/names/names.h"

struct program;

enum program_want {
	PROGRAM_WANTS_NOTHING,
	PROGRAM_WANTS_BUILD_ID, /* the debug file of this build id */
	PROGRAM_WANTS_NAME,	/* the debug file of this name, as .gnu_debuglink says */
	PROGRAM_WANTS_ALT, /* the file of this build id and path, from the .gnu_debugaltlink of the
			      debug file; or a .dwo file, by its unit's id */
	PROGRAM_WANTS_PACKAGE, /* the .dwp file beside it */
};

/* The verdict of a lookup that needs another file first (program_wants). */
#define PROGRAM_AGAIN DWARFINFO_AGAIN

/* Takes fd, also on error. dwarf_max: bytes of memory that its unpacked DWARF may take. Larger
 * DWARF is ignored; 0 ignores all. 0, the verdicts of symfile_open, -errno. */
int program_open(int fd, uint64_t dwarf_max, struct program **ret);
void program_free(struct program *p);
/* The file that the program wants next. *ret_build_id and *ret_name are borrowed until the next
 * program_offer, and empty or NULL where they do not apply. */
enum program_want program_wants(struct program *p, struct span *ret_build_id,
				const char **ret_name);
/* Answers the present want with an open file, which is taken, or with -1 if there is none. False:
 * there was none, or it was the wrong one (build id, checksum) and was closed. */
bool program_offer(struct program *p, int fd);
/* The answer does not come: from now on lookups want nothing. */
void program_give_up(struct program *p);

/* The file itself, borrowed. */
const struct symfile *program_file(const struct program *p);
/* As symfile_is_cut. */
bool program_is_cut(const struct program *p);
struct span program_build_id(const struct program *p);
/* As symfile_address. */
int program_address(const struct program *p, uint64_t offset, uint64_t *ret);
/* Looks up the calls at an ELF address. A call's name is empty only if nothing but its line is
 * known. Damaged tables count as empty. 0, SYMFILE_NONE, -ENOMEM, PROGRAM_AGAIN. */
int program_lookup(struct program *p, uint64_t address, struct names *ret);
/* Finds the start of the function that contains an ELF address, if program_lookup has no name for
 * it. 0, SYMFILE_NONE (unknown), -ENOMEM. */
int program_start(struct program *p, uint64_t address, uint64_t *ret);
/* True once DWARF was ignored, because it or reading it takes too much memory. */
bool program_dwarf_too_large(const struct program *p);
/* True once libdw crashed on the DWARF or took too long: inlined calls and lines are missing. */
bool program_dwarf_lost(const struct program *p);
/* How often libdw's process was killed from outside while it worked on this DWARF. The second time
 * the DWARF counts as lost. */
unsigned program_dwarf_kills(const struct program *p);
/* As dwarfinfo_rest. */
bool program_rest(struct program *p, bool packed);
size_t program_bytes(const struct program *p);

#endif
