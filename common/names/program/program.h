/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program or shared object with all files that name its code: itself, its debug file, and the
 * file with which both may share strings (dwz). The owner of the program provides missing files, in
 * the order in which `program_wants` asks for them. No function here opens a path.
 *
 * The files are parsed (sources.h) in a worker process (fileworker.h), which may crash, hang or be
 * taken over. There are one or two for each class of files (enum program_class). Without a keeper
 * (filekeeper.h), the files are parsed in this process.
 *
 *  - With program_take_turns, a slow lookup holds up nothing else. Then a class may have two
 *    workers: a prompt one, and a patient one for the programs whose lookups proved slow. A lookup
 *    in a slow program begins now and is answered later.
 *  - If the worker crashes on a program or takes too long, the program loses its DWARF but stays
 *    open. If that happens without DWARF, the program loses all its names. The next worker opens
 *    the other programs again when they are next needed.
 *  - If the worker was killed from outside, the next one tries its program once more. The second
 *    time counts as a crash.
 */
#ifndef COMMON_NAMES_PROGRAM_PROGRAM_H
#define COMMON_NAMES_PROGRAM_PROGRAM_H

#include "common/names/elf/symfile.h"
#include "common/names/names.h"
#include "common/names/program/programwire.h"
#include "common/names/program/program_wants.h"
#include "common/names/runtime/runtime.h"
#include "common/names/verdict.h"

struct program;

enum program_class {
	PROGRAM_OF_ROOT,   /* only the host's root could have written its file */
	PROGRAM_OF_OTHERS, /* also used if it is not known */
	PROGRAM_CLASSES,
};

/* Takes ownership of the keeper's socket, for the life of this process; the keeper starts the
 * workers. life_s: seconds of work after which the next worker replaces one (FILEWORKER_LIFE_S).
 * heap: bytes that each may use for DWARF; beside: for everything else. */
void program_use_keeper(int control, unsigned life_s, uint64_t heap, uint64_t beside);
/* From now on a lookup that takes more than slice_ns of cpu time makes its program slow, and
 * lookups may return VERDICT_LATER. */
void program_take_turns(uint64_t slice_ns);
/* After this time of CLOCK_MONOTONIC no call waits for a worker, and pending answers are given up.
 * 0: no limit. */
void program_until(uint64_t until_ns);
/* Sets `more`, which is called when a program needs more heap. Its argument is how many bytes would
 * be enough. It returns how many the next worker may use now. More may be granted later, so the
 * next lookups call it again. The program is tried again with what was granted. */
void program_grow_with(uint64_t (*more)(void *ctx, uint64_t heap), void *ctx);
/* Sets how many bytes later workers may use for DWARF. */
void program_set_heap(uint64_t heap);
/* Whether the keeper has died or stopped answering. Then no program can be opened. */
bool program_keeper_gone(void);

/* Opens a program, which owns fd from then on; fd is closed on error. dwarf_max: bytes of memory
 * that its unpacked DWARF may take. Larger DWARF is ignored; 0 ignores all. Returns 0, the verdicts
 * of symfile_open, VERDICT_DIED, VERDICT_KILLED or -errno. */
int program_open(int fd, enum program_class class, uint64_t dwarf_max, struct program **ret);
void program_free(struct program *p);
/* Returns the file that the program wants next. *ret_build_id and *ret_name are borrowed until the
 * next program_offer, and empty or NULL where they do not apply. PROGRAM_WANTS_LATER: ask again
 * soon; without program_take_turns this never comes. */
enum program_want program_wants(struct program *p, struct span *ret_build_id,
				const char **ret_name);
/* Answers the current want with an open file, which the program owns from then on, or with -1 if
 * there is none. Returns false if there was none, if it was the wrong one (build id), or if the
 * worker is busy and will get it later. After a wrong one the same file is wanted again, since
 * another place may have the right one. If the program has no build id, the first lookup compares
 * the file's checksum. */
bool program_offer(struct program *p, int fd);
/* Returns how many wrong files were offered for the current want. */
unsigned program_refused(const struct program *p);
/* Sets the user to whom checksums of debug files (filecrc.h) are charged; initially root. */
void program_charge(struct program *p, uint64_t owner);
/* Tells the program that the wanted file will not come. From now on lookups want nothing. */
void program_give_up(struct program *p);
/* Whether the last offer still waits for the worker. */
bool program_offer_waits(const struct program *p);

/* Finds the runtime in the program, with its mark (runtime.h). Returns 0, RUNTIME_NOT_MINE or
 * -ENOMEM. */
int program_describe(struct program *p, struct runtime_build *ret);
/* Like symfile_is_cut. */
bool program_is_cut(const struct program *p);
/* Returns the identity of the program's file, borrowed until the next lookup. */
const struct fileid *program_fileid(const struct program *p);
/* Like symfile_address. */
int program_address(struct program *p, uint64_t offset, uint64_t *ret);
/* Looks up the calls at an ELF address. A call's name is empty only if just its line is known.
 * Damaged tables count as empty. Returns 0, SYMFILE_NONE, -ENOMEM, VERDICT_AGAIN or
 * VERDICT_LATER. */
int program_lookup(struct program *p, uint64_t address, struct names *ret);
/* Converts a file offset to an address, and looks up the calls there, in one request. *ret_address
 * is UINT64_MAX if the offset has no address. *ret_start is the start of the function that contains
 * it; 0 if it is unknown, or if there is a name. Returns as program_lookup does. */
int program_find(struct program *p, uint64_t offset, struct names *ret, uint64_t *ret_address,
		 uint64_t *ret_start);
/* Announces calls of program_find, so that one request may answer all of them. Each announcement
 * replaces the previous one. At most PROGRAM_EXPECTED. */
#define PROGRAM_EXPECTED PROGRAMWIRE_EXPECTED
void program_expect(struct program *p, const uint64_t *offsets, unsigned count);
/* Whether the answer of program_find has already come. */
bool program_has(const struct program *p, uint64_t offset);
/* Whether the program's lookups go to the patient worker. program_set_slow changes this. */
bool program_is_slow(const struct program *p);
void program_set_slow(struct program *p, bool slow);
/* Whether the program's file is so large that lookups are likely to take long. */
bool program_is_large(const struct program *p);
/* Whether a lookup in a slow program has to wait for others. p is NULL if it is not open. */
bool program_must_wait(enum program_class class, const struct program *p);
/* Returns the workers' cpu time for p since the last call. */
uint64_t program_worked_ns(struct program *p);
/* True once DWARF was ignored, because it or reading it takes too much memory. */
bool program_dwarf_too_large(const struct program *p);
/* True once libdw crashed on the DWARF or took too long: inlined calls and lines are missing. */
bool program_dwarf_lost(const struct program *p);
/* Returns how often a worker was killed from outside while it worked on this DWARF. The second time
 * the DWARF counts as lost. */
unsigned program_dwarf_kills(const struct program *p);
/* Like dwarfinfo_rest, for the worker's memory. Returns VERDICT_FREED; 0: there was none to free;
 * or VERDICT_LATER: the worker is busy. */
int program_rest(struct program *p, bool packed);
size_t program_bytes(const struct program *p);

#endif
