/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask prof-export to end. */
#ifndef PROF_EXPORT_INTERRUPTS_H
#define PROF_EXPORT_INTERRUPTS_H

/* From now on this signal is counted. */
void interrupts_catch(int signal);
/* How many came: SIGINT counts once, others twice. */
int interrupts_count(void);

#endif
