/* SPDX-License-Identifier: Apache-2.0 */
/* Standard descriptors that the caller closed. A file that is opened later must not get their
 * numbers, and using them must still fail. */
#ifndef COMMON_BASE_COMMAND_STDFDS_H
#define COMMON_BASE_COMMAND_STDFDS_H

/* Call it first in main. Opens each closed one of 0, 1 and 2 in the wrong direction, so that
 * reading and writing still fail with EBADF. If that fails, exits with EXITS_FAILED. */
void stdfds_hold(void);
/* Flushes standard output, after a help text or a version. Returns EXITS_DONE, or EXITS_FAILED
 * after logging that the text could not be written. */
int stdfds_flush(void);
/* Logs that standard output could not be written, with a remedy. */
void stdfds_say(int error);

#endif
