/* SPDX-License-Identifier: Apache-2.0 */
/* A libdw that does what a bug in it, or whoever took it over, would do. It takes the place of
 * common/names/dwarf/dwarfinfo.c. */
#ifndef TESTS_UNIT_FAKE_LIBDW_H
#define TESTS_UNIT_FAKE_LIBDW_H

#define MAX (1u << 20) /* the one size that it takes */

/* The deeds of the fake libdw, which an address chooses. */
enum deed {
	NAME = 1,
	MANY, /* names as large as they can be */
	NOTHING,
	CRASH,
	LEAVE,
	LOOP,
	MEMORY,
	MEMORY_ABORT,	/* does not believe that there can be none */
	MEMORY_THROUGH, /* nor looks */
	SHOUT,
	CHATTER, /* writes into its socket what is no answer */
	NAP,	 /* half a second, and then as NAME */
	WORK,	 /* likewise, of cpu time */
	WANT,	 /* a file, and then as NAME; another one if there is none */
	WANT_NO_END,
	WANT_ODDLY, /* what is no want */
	FIRST_CALL = 100,
};

#endif
