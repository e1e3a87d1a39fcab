/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that an exec of COMMAND will run: the program, or a script and the interpreters that
 * its first line names. COMMAND maps them while it is held, so that the profiler, which looks at
 * what a process maps, knows them before their first instruction.
 */
#ifndef PROFPIPE_TARGET_H
#define PROFPIPE_TARGET_H

/* Maps the first page of each file that execvp(name, ...) would run, for good: an exec drops the
 * mappings. What cannot be found or mapped is left out: exec will say why. */
void target_map(const char *name);

#endif
