/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop, woken by side-band records, by peers, and by a timer. Samples wait in the ring buffers
 * until the timer fires, since a wake-up for each would cost as much as its walk. Side-band records
 * wake it within milliseconds, for the sake of new processes (gathering.h).
 */
#ifndef PROF_BPF_RUN_LOOP_H
#define PROF_BPF_RUN_LOOP_H

struct prof;

/* Call it when the parts to which the loop listens exist. -errno. */
int loop_open(struct prof *p);
/* Handles all events until the stream has ended or everything is over (course.exit_now). */
void loop_run(struct prof *p);

#endif
