/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit divides the run's memory while it runs (budget.h). It compares what the tools hold
 * (meter.h) with what the tables lack: every three seconds while much is free, up to ten times a
 * second while memory is short. prof-bpf does this in each deployment: only it is connected to all
 * large consumers and may read their memory use.
 *
 * The tables may take all memory that the tools do not hold now, except for a margin and the tools'
 * peak of the last seconds. When a tool grows, the tables give slabs back within about 100 ms. So
 * rows lack memory only when the limit is reached.
 *
 * prof-symd and prof-export are told their shares and keep to them. A tool that was taken over may
 * not: its own limit of memory (fence) bounds it, and the others keep their guaranteed shares.
 */
#ifndef PROF_BPF_LIMIT_LIMIT_H
#define PROF_BPF_LIMIT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/tables.h"
#include "common/cell/budget/budget.h"
#include "tools/prof-bpf/limit/meter.h"

#define LIMIT_TABLES_MORE \
	(2ull * TABLES_SLAB_BYTES) /* free bytes that the tables should always have */
#define LIMIT_PAST 5 /* seconds: memory that a tool held within this time may be needed again */

struct file_server;
struct opener;
struct tables;

/* Memory that all tools held together. */
struct limit_past {
	uint64_t most[LIMIT_PAST]; /* peak of each of the last seconds, at index second %
				   * LIMIT_PAST */
	uint64_t last_s;	   /* number of the last second; 0: nothing is known */
};

struct limit {
	/* Borrowed. */
	const struct budget *budget; /* the initial shares */
	struct tables *tables;
	struct file_server *file_server; /* NULL by hand: then only prof-deltas is measured */
	struct opener *opener;		 /* its copies of files count as prof-bpf's memory */
	bool tables_fixed;		 /* the user set their size */
	struct meter meter;
	uint64_t fixed;		     /* bytes of maps and rings outside the tables */
	uint64_t sure;		     /* guaranteed share of the tables */
	uint64_t next_ns, looked_ns; /* time of the next and of the last look */
	uint64_t asked_ns;	     /* when it last asked what prof-symd wants */
	uint64_t trimmed_ns;	     /* when prof-bpf last gave back free memory */
	uint64_t symd, export;	     /* bytes granted */
	uint64_t ceiling;	     /* limit of the tables */
	uint64_t enough;	     /* a limit with which no rows would have been refused so far */
	uint64_t peak;		     /* largest use seen */
	struct limit_past past;
};

/* The input of limit_divide. */
struct limit_asked {
	uint64_t held[METER_TOOLS]; /* by the tools; 0: unknown */
	uint64_t symd;		    /* the total that prof-symd asks for */
	uint64_t tables;	    /* bytes in slabs */
	uint64_t useful;	    /* the part of these that is not idle */
	uint64_t lacking;	    /* bytes of rows that do not fit, of recently sampled files */
	uint64_t refused;	    /* likewise, of all files */
	uint64_t swing;		    /* result of limit_swing */
};
/* Returns how much the tools may grow before the tables can return memory: what they held at most
 * within the last seconds, less what they hold now, plus their growth in that time. Stores held in
 * *p. Pure. */
uint64_t limit_swing(struct limit_past *p, uint64_t limit, uint64_t held, uint64_t now_ns);
/* Sets symd, export and ceiling, and raises enough. b: the shares. Returns the limit of the tables.
 * Pure. */
uint64_t limit_divide(struct limit *l, const struct budget *b, const struct limit_asked *a);

/* Prepares a zeroed *l for limit_run. The caller sets the borrowed fields. budget and deploy are
 * borrowed. fixed, sure: as in struct limit. Returns 0 or -errno. */
int limit_init(struct limit *l, const struct budget *budget, const struct deploy *deploy,
	       uint64_t fixed, uint64_t sure);
/* Divides the memory if a look is due. Call it often. */
void limit_run(struct limit *l, uint64_t now_ns);
/* Divides at once if rows of this size do not fit the tables. Call it when they arrive. */
void limit_rows(struct limit *l, uint64_t bytes, uint64_t now_ns);
/* Like limit_rows, for rows that will be requested again. Rate-limited, since there may be many. */
void limit_again(struct limit *l, uint64_t bytes, uint64_t now_ns);

#endif
