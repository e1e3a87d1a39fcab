/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathering: when the loop takes side-band records. A wake-up costs more than the records that
 * cause it. So the first record begins a gathering, and when that is due, the loop takes all
 * records that have come. If records come too fast, they no longer wake the loop, but wait for its
 * timer.
 *
 * If a process is sampled before its records were taken, the walk is deferred, which is costly. So
 * records gather only for a part of the sampling period. They gather for just a millisecond
 * - if a file was new recently, since others may follow whose processes soon end;
 * - if there were many records recently, since more might overflow a ring.
 *
 * Pure: times are CLOCK_MONOTONIC, in ns.
 */
#ifndef PROF_BPF_RUN_GATHERING_H
#define PROF_BPF_RUN_GATHERING_H

#include <stdbool.h>
#include <stdint.h>

#define GATHERING_LEAST_NS 1000000ull
#define GATHERING_MOST_NS 10000000ull
#define GATHERING_LOOK_NS 3000000ull /* interval at which the loop checks whether a ring fills */

struct gathering {
	uint64_t due_ns;  /* 0: no record has come */
	uint64_t keen_ns; /* until then, records gather for the shortest time */
	uint64_t paid_ns; /* when the budget covers the time spent on records */
	bool rests;	  /* records do not wake the loop now */
};

/* Call it when a record has come. hz: samples of a cpu per second; 0: the record is urgent. */
void gathering_begin(struct gathering *g, uint64_t now_ns, unsigned hz);
/* Call it when a process maps a file that no process had mapped before. */
void gathering_new_file(struct gathering *g, uint64_t now_ns);
/* Returns how long the loop may wait for other events, as an argument of epoll_wait. */
int gathering_patience_ms(const struct gathering *g, uint64_t now_ns);
/* Whether to take the records now. fills: a ring fills. */
bool gathering_is_due(const struct gathering *g, uint64_t now_ns, bool fills);
/* Call it after the records were taken, from began_ns to now_ns. If g->rests is set then, the loop
 * stops listening to records. */
void gathering_end(struct gathering *g, uint64_t began_ns, uint64_t now_ns);
/* Whether the pause is over. Then the loop listens to records again. */
bool gathering_rested(struct gathering *g, uint64_t now_ns);

#endif
