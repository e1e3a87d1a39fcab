/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit: divides the run's memory while it runs (budget.h), a few times a second, by what the
 * tools have (meter.h) and the tables lack. prof-bpf does this in each deployment, since it alone
 * has a connection to all who want much, and the right to see what they have.
 *
 * The tables may have all that the tools do not hold at the moment, but for a margin and for what
 * the tools held within the last seconds: they hand slabs back within some 100 ms of a tool's
 * growing. So rows lack memory only when the limit is reached.
 *
 * prof-symd and prof-export are told what is theirs, and keep to it. A tool that was taken over may
 * not: its own fence bounds it, and the others still have what they are sure of.
 */
#ifndef PROFPIPE_LIMIT_H
#define PROFPIPE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/tables.h"
#include "common/cell/budget.h"
#include "tools/prof-bpf/limit/meter.h"

#define LIMIT_TABLES_MORE (2ull * SLAB_BYTES) /* that the tables are to have ready */
#define LIMIT_PAST 5 /* seconds: a tool that took so much within them may take it again */

struct filesrv;
struct tables;

/* What all tools held together. */
struct limit_past {
	uint64_t most[LIMIT_PAST]; /* in each of the last seconds, by number modulo LIMIT_PAST */
	uint64_t last_s;	   /* the number of the last second; 0: nothing is known */
};

struct limit {
	/* Borrowed. */
	const struct budget *budget; /* the shares, at the start */
	struct tables *tables;
	struct filesrv *filesrv; /* NULL by hand: nobody but prof-deltas is known then */
	bool tables_fixed;	 /* their size was given */
	struct meter meter;
	uint64_t fixed;		     /* bytes of maps and rings that are none of the tables */
	uint64_t sure;		     /* for the tables */
	uint64_t next_ns, looked_ns; /* when to look again, and when that was last */
	uint64_t symd, export;	     /* granted */
	uint64_t ceiling;	     /* of the tables */
	uint64_t enough;	     /* a limit by which no rows would have been refused so far */
	uint64_t peak;		     /* the most that was seen in use */
	struct limit_past past;
};

/* What is to be divided. */
struct limit_asked {
	uint64_t held[DEPLOY_TOOLS]; /* 0: not known */
	uint64_t symd;		     /* that prof-symd says it could use */
	uint64_t tables;	     /* bytes in slabs */
	uint64_t useful;	     /* of these, what is not idle */
	uint64_t lacking;	     /* and what rows had no room, of files sampled of late */
	uint64_t refused;	     /* the same, of all files */
	uint64_t swing;		     /* limit_swing */
};
/* What the tools may take beyond what they hold before the tables can hand it back: what they held
 * within the last seconds, and as much as they grew meanwhile. Keeps held in *p. Pure. */
uint64_t limit_swing(struct limit_past *p, uint64_t limit, uint64_t held, uint64_t now_ns);
/* Sets symd, export and ceiling, and raises enough. b: the shares. Returns the ceiling. Pure. */
uint64_t limit_divide(struct limit *l, const struct budget *b, const struct limit_asked *a);

/* A zeroed *l, before the first limit_run; what it borrows is set by the caller. budget, deploy:
 * borrowed. fixed, sure: as in struct limit. -errno. */
int limit_init(struct limit *l, const struct budget *budget, const struct deploy *deploy,
	       uint64_t fixed, uint64_t sure);
void limit_run(struct limit *l, uint64_t now_ns);
/* Rows of so many bytes have come: divides at once, where the tables have no room for them. */
void limit_rows(struct limit *l, uint64_t bytes, uint64_t now_ns);
/* The same of rows that are to be asked for again: not too often, since many may be. */
void limit_again(struct limit *l, uint64_t bytes, uint64_t now_ns);

#endif
