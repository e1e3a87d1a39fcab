/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the host (checks/checks.h), for the start of a run and for `profpipe doctor`. */
#ifndef PROF_BPF_CHECKING_H
#define PROF_BPF_CHECKING_H

struct prof;

/* Makes the checks at the start of a run, and logs problems. clock: the result of probe_event.
 * Returns 0; -EPERM: the run cannot begin. */
int checking_start(const struct prof *p, int clock);
/* Makes all checks with the rights of a real run, loads the programs, and reports to the launcher
 * or to standard output. Returns the exit status. */
int checking_host(struct prof *p);

#endif
