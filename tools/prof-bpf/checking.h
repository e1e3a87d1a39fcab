/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the host (checks/checks.h), as a run makes them, and as `profpipe doctor` does. */
#ifndef PROF_BPF_CHECKING_H
#define PROF_BPF_CHECKING_H

struct prof;

/* The checks that a run begins with, which log what is amiss. clock: the result of probe_event.
 * 0; -EPERM: the run cannot begin. */
int checking_start(const struct prof *p, int clock);
/* Makes all checks with the rights of a real run, loads the programs, and tells the launcher or
 * standard output. Returns the exit status. */
int checking_host(struct prof *p);

#endif
