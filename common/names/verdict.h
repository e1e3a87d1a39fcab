/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on programs and on lookups in them. They pass unchanged through all layers, from
 * dwarf/dwarfinfo.h over program/worker.h to program/program.h, so they differ from those of enum
 * symfile_verdict, which come the same way. */
#ifndef COMMON_NAMES_VERDICT_H
#define COMMON_NAMES_VERDICT_H

enum verdict {
	VERDICT_AGAIN = 50, /* the lookup needs another file first (program_wants) */
	VERDICT_LOST = 100, /* the worker crashed, took too long, or makes no progress */
	/* From program_open. DIED: the worker repeatedly crashed on the file or took too long.
	 * KILLED: it was killed from outside each time. */
	VERDICT_DIED = 101,
	VERDICT_KILLED = 102,
	VERDICT_LATER = 103, /* there is no answer yet: repeat the same lookup later */
	VERDICT_FREED = 104, /* from program_rest: memory was freed */
};

#endif
