/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling events, for a run and for the checks of `profpipe doctor`. */
#ifndef PROF_BPF_EVENTS_H
#define PROF_BPF_EVENTS_H

struct prof;

/* Makes the loader, which opens the events as the options say. Returns 0 or -errno. */
int events_open(struct prof *p);

#endif
