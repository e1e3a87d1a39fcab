/* SPDX-License-Identifier: Apache-2.0 */
/* The file that a program wants next (program.h, sources.h). */
#ifndef COMMON_NAMES_PROGRAM_PROGRAM_WANTS_H
#define COMMON_NAMES_PROGRAM_PROGRAM_WANTS_H

enum program_want {
	PROGRAM_WANTS_NOTHING,
	PROGRAM_WANTS_BUILD_ID, /* the debug file of this build id */
	PROGRAM_WANTS_NAME,	/* the debug file of this name, as .gnu_debuglink says */
	PROGRAM_WANTS_ALT, /* the file with this build id and path, from the .gnu_debugaltlink of
			    * the debug file; or a .dwo file, by its unit's id */
	PROGRAM_WANTS_PACKAGE, /* the .dwp file beside it */
	PROGRAM_WANTS_LATER,   /* not known yet: its worker is busy with another program */
};

#endif
