/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the user named. profpipe opens them as the user (SUDO_UID if set, with that user's
 * groups). So root cannot be made to read or write what the user could not, and outputs belong to
 * that user. An existing file keeps its contents until the new one takes its place (outfile.h).
 */
#ifndef PROFPIPE_RUN_OUTPUTS_OUTPUTS_H
#define PROFPIPE_RUN_OUTPUTS_OUTPUTS_H

#include "common/base/files/outfile.h"

/* Like outfile_open, outfile_end and outfile_drop, but as the user. */
int output_open(struct outfile *o, const char *path, mode_t mode, bool grows);
int output_end(struct outfile *o, bool whole);
void output_drop(struct outfile *o);
/* Calls output_end, and logs an error if the new file did not get its name. Returns false after an
 * error. */
bool output_conclude(struct outfile *o, bool whole);
/* One line for the user about an error of output_open or output_open_input. Static storage. */
const char *output_error(int r);
/* Opens path for reading, as the user; `-` is standard input. Returns -errno, or -EISDIR for a
 * folder. */
int output_open_input(const char *path, int *ret_fd);

#endif
