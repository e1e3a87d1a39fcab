/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of record, report and doctor; service.h has that of run. */
#ifndef PROFPIPE_OPTIONS_SUBCOMMANDS_H
#define PROFPIPE_OPTIONS_SUBCOMMANDS_H

#include "tools/profpipe/options/options.h"

/* Parts of main (exits.h). argv[0] is the subcommand. */
int options_record(int argc, char **argv, struct options *ret);
int options_report(int argc, char **argv, struct options *ret);
int options_doctor(int argc, char **argv, struct options *ret);
/* Parses the options before the subcommand, and finds the index of the subcommand in argv. */
int options_subcommand(int argc, char **argv, int *ret);

#endif
