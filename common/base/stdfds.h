/* SPDX-License-Identifier: Apache-2.0 */
/* Standard descriptors that the caller closed: nothing opened later may land on their numbers, and
 * whoever uses them is told so all the same. */
#ifndef PROFPIPE_STDFDS_H
#define PROFPIPE_STDFDS_H

/* First in main. Those of 0, 1 and 2 that are closed become open in the wrong direction: to read
 * from them, or write to them, is EBADF as before. Exits with 2 where even that fails. */
void stdfds_hold(void);
/* After a help text or a version: an exit status, EXIT_FAILURE where it could not be written, which
 * is said. */
int stdfds_flush(void);

#endif
