/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit: divides the run's memory while it runs (budget.h), a few times a second, by what the
 * tools have (meter.h) and the tables lack. prof-bpf does this in each deployment, since it alone
 * has a connection to all who want much, and the right to see what they have.
 *
 * prof-symd and prof-export are told what is theirs, and keep to it. A tool that was taken over may
 * not: its own fence bounds it, and the others still have what they are sure of.
 */
#ifndef PROFPIPE_LIMIT_H
#define PROFPIPE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/tables.h"
#include "tools/prof-bpf/meter.h"

#define LIMIT_TABLES_MORE (2ull * SLAB_BYTES) /* that the tables are to have ready */

struct limit {
	struct meter meter;
	uint64_t fixed;		     /* bytes of maps and rings that are none of the tables */
	uint64_t tables;	     /* sure for the tables */
	uint64_t next_ns, looked_ns; /* when to look again, and when that was last */
	uint64_t symd, export;	     /* granted */
	uint64_t enough; /* the least limit by which nothing would have been refused so far */
};

/* What is to be divided. */
struct limit_asked {
	uint64_t held[DEPLOY_TOOLS]; /* 0: not known */
	uint64_t symd;		     /* that prof-symd says it could use */
	uint64_t tables;	     /* bytes in slabs */
	uint64_t useful;	     /* of these, what is not idle */
	uint64_t lacking;	     /* and what rows had no room */
};
/* Sets symd and export, and raises enough. b: the shares. Returns the ceiling of the tables. Pure.
 */
uint64_t limit_divide(struct limit *l, const struct budget *b, const struct limit_asked *a);

struct prof;
/* Before the first limit_run. tables: what they begin with. */
int limit_init(struct prof *p, uint64_t fixed, uint64_t tables);
void limit_run(struct prof *p, uint64_t now_ns);

#endif
