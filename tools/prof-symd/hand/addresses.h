/* SPDX-License-Identifier: Apache-2.0 */
/* `prof-symd -e FILE ADDR...`: names of addresses as text. */
#ifndef PROFPIPE_ADDRESSES_H
#define PROFPIPE_ADDRESSES_H

#include <stdio.h>
#include "common/base/buf.h"
#include "common/names/program/program.h"

struct addresses {
	bool show_address; /* 0x... before each */
	bool basenames;	   /* file names without their folders */
	struct names names;
};

/* Hex digits, with or without 0x, nothing else. */
bool addresses_parse(const char *s, uint64_t *ret);
/* Appends the lines of one address: the innermost call first, the calls that it was inlined into
 * below it. Names are escaped for a terminal. 0, -ENOMEM. */
int addresses_print(struct addresses *a, struct program *p, const char *path, uint64_t address,
		    struct buf *into);

#endif
