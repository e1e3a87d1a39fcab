/* SPDX-License-Identifier: Apache-2.0 */
/* The events that sample: a run opens them, and so do the checks of `profpipe doctor`. */
#ifndef PROF_BPF_EVENTS_H
#define PROF_BPF_EVENTS_H

struct prof;

/* Makes the loader, which opens them as the options say. -errno. */
int events_open(struct prof *p);

#endif
