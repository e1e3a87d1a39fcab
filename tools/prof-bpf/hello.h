/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a stream's hello that describes the host: its identity and its kernel. */
#ifndef PROF_BPF_HELLO_H
#define PROF_BPF_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/str.h"

#define HELLO_BUILD_ID 64
#define HELLO_DERIVED 32 /* digits of a derived id */

struct hello {
	uint8_t kernel_build_id[HELLO_BUILD_ID];
	size_t kernel_build_id_len; /* 0: unknown */
	char derived[HELLO_DERIVED];
	struct str host_id; /* empty: unknown, or not wanted */
};

/* Reads /sys/kernel/notes and /etc/machine-id. host_id: given by the operator, borrowed; NULL:
 * derive it from the machine's id. */
void hello_read(struct hello *h, const char *host_id);

/*
 * Derives the id of the host, in hex digits, from the contents of /etc/machine-id. machine-id(5)
 * forbids disclosing the machine's own id: whoever has it can derive the ids that other programs
 * use for this host. So this computes the same id as `systemd-id128 machine-id --app-specific` for
 * HELLO_APP. Pure. Returns false if there is no valid id, or no memory.
 */
#define HELLO_APP "ddf71b38a9ce52127a6dba03ab03c326"
bool hello_derive(struct str machine_id, char ret[static HELLO_DERIVED]);

#endif
