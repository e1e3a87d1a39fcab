/* SPDX-License-Identifier: Apache-2.0 */
/* `prof-symd -e FILE ADDR...`: prints the names of addresses. */
#ifndef PROF_SYMD_BY_HAND_ADDRESSES_H
#define PROF_SYMD_BY_HAND_ADDRESSES_H

#include <stdio.h>
#include "common/base/bytes/buf.h"
#include "common/names/program/program.h"

struct addresses {
	bool show_address; /* print each address before its function */
	bool basenames;	   /* print file names without their folders */
	struct names names;
};

/* Parses hex digits, with or without 0x. Returns false if the string contains anything else. */
bool addresses_parse(const char *s, uint64_t *ret);
/* Appends the lines of one address, innermost call first. Names are escaped for a terminal. 0,
 * -ENOMEM. */
int addresses_print(struct addresses *a, struct program *p, const char *path, uint64_t address,
		    struct buf *into);

#endif
