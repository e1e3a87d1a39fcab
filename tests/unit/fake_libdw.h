/* SPDX-License-Identifier: Apache-2.0 */
/* A libdw that does what a bug or an attacker in it could do. It takes the place of
 * common/names/dwarf/dwarfinfo.c. */
#ifndef TESTS_UNIT_FAKE_LIBDW_H
#define TESTS_UNIT_FAKE_LIBDW_H

#define MAX (1u << 20) /* the one size that it takes */

/* What the fake libdw does; the address chooses. */
enum deed {
	NAME = 1,
	MANY, /* names as large as they can be */
	NOTHING,
	CRASH,
	LEAVE,
	LOOP,
	MEMORY,
	MEMORY_ABORT,	/* does not accept that there is none */
	MEMORY_THROUGH, /* nor looks */
	SHOUT,
	CHATTER, /* writes a malformed answer into its socket */
	NAP,	 /* half a second, and then as NAME */
	WORK,	 /* likewise, of cpu time */
	WANT,	 /* a file, and then as NAME; another one if there is none */
	WANT_NO_END,
	WANT_ODDLY, /* asks for a file that cannot be wanted */
	FIRST_CALL = 100,
};

#endif
