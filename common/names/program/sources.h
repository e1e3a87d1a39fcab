/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sources of a program's names: its files, opened and parsed in this process. Other parts use
 * program.h, which has them parsed in a worker process, or in this one.
 *
 * Names come from the first of these that has one:
 *  - Go's own table;
 *  - the names of V8's builtins;
 *  - DWARF, of the program or of its debug file;
 *  - .symtab, of the program or of its debug file;
 *  - MiniDebugInfo and .dynsym.
 * For code without a name, the start of its function can still be found (funcbounds.h). The first
 * lookup parses the files.
 *
 * Functions with the same name as in program.h work alike.
 */
#ifndef COMMON_NAMES_PROGRAM_SOURCES_H
#define COMMON_NAMES_PROGRAM_SOURCES_H

#include "common/names/elf/fileid.h"
#include "common/names/elf/symfile.h"
#include "common/names/names.h"
#include "common/names/program/program_wants.h"
#include "common/names/runtime/runtime.h"
#include "common/names/verdict.h"

struct sources;

/* Which file is wanted next: the debug file by build id, the debug file by name, the shared one, or
 * only .dwo files. */
enum sources_step { SOURCES_BUILD_ID, SOURCES_NAME, SOURCES_ALT, SOURCES_DONE };
enum sources_part { SOURCES_DEBUG, SOURCES_SHARED };

int sources_open(int fd, uint64_t dwarf_max, struct sources **ret);
void sources_free(struct sources *p);
enum program_want sources_wants(struct sources *p, struct span *ret_build_id,
				const char **ret_name);
bool sources_offer(struct sources *p, int fd);
void sources_give_up(struct sources *p);
unsigned sources_refused(const struct sources *p);
void sources_charge(struct sources *p, uint64_t owner);
/* Restores the state that another struct sources had: its step, and its files (owned from then on;
 * -1: none). The identity of the files was already checked. unproven: the debug file's checksum was
 * not. */
void sources_restore(struct sources *p, enum sources_step step, bool unproven, int debug, int alt);
enum sources_step sources_step(const struct sources *p);
/* Whether the program has that file. *ret_unproven: the checksum of the debug file is not compared
 * yet. */
bool sources_has(const struct sources *p, enum sources_part part, bool *ret_unproven);
int sources_describe(struct sources *p, struct runtime_build *ret);
/* Tells that sources_describe found no V8 in the program, so that no lookup searches for its
 * builtins. */
void sources_lacks_v8(struct sources *p);
bool sources_is_cut(const struct sources *p);
const struct fileid *sources_fileid(const struct sources *p);
int sources_address(const struct sources *p, uint64_t offset, uint64_t *ret);
int sources_lookup(struct sources *p, uint64_t address, struct names *ret);
/* Finds the start of the function that contains an ELF address, if sources_lookup has no name for
 * it. 0, SYMFILE_NONE (unknown), -ENOMEM. */
int sources_start(struct sources *p, uint64_t address, uint64_t *ret);
bool sources_dwarf_too_large(const struct sources *p);
/* Whether the DWARF was given up because its lookups wanted too many files. */
bool sources_dwarf_lost(const struct sources *p);
/* Whether the next lookup needs no more files, unless its DWARF is split. */
bool sources_is_ready(const struct sources *p);
bool sources_rest(struct sources *p, bool packed);
size_t sources_bytes(const struct sources *p);

#endif
