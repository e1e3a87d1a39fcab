/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a program wants next, and the verdicts on programs (program.h, sources.h). */
#ifndef COMMON_NAMES_PROGRAM_PROGRAM_WANTS_H
#define COMMON_NAMES_PROGRAM_PROGRAM_WANTS_H

#include "common/names/dwarf/dwarfinfo.h"

enum program_want {
	PROGRAM_WANTS_NOTHING,
	PROGRAM_WANTS_BUILD_ID, /* the debug file of this build id */
	PROGRAM_WANTS_NAME,	/* the debug file of this name, as .gnu_debuglink says */
	PROGRAM_WANTS_ALT, /* the file with this build id and path, from the .gnu_debugaltlink of
			    * the debug file; or a .dwo file, by its unit's id */
	PROGRAM_WANTS_PACKAGE, /* the .dwp file beside it */
};

/* In addition to enum symfile_verdict. */
enum program_verdict {
	PROGRAM_AGAIN = DWARFINFO_AGAIN, /* the lookup needs another file first (program_wants) */
	/* From program_open. DIED: the worker repeatedly crashed on the file or took too long.
	 * KILLED: it was killed from outside each time. */
	PROGRAM_DIED = 101,
	PROGRAM_KILLED = 102,
	PROGRAM_LATER = 103, /* the lookup's answer has not come yet: repeat the same lookup
			      * later */
	PROGRAM_FREED = 104, /* from program_rest: memory was freed */
};

#endif
