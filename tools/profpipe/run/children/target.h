/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that an exec of COMMAND will run: the program, or a script and the interpreters of its
 * first line. COMMAND maps them while it is held. prof-bpf looks at the mappings of each process,
 * so it knows these files before COMMAND's first instruction.
 */
#ifndef PROFPIPE_RUN_CHILDREN_TARGET_H
#define PROFPIPE_RUN_CHILDREN_TARGET_H

/* Maps the first page of each file that execvp(name, ...) would run, until the exec drops the
 * mappings. Skips files that it cannot find or map: exec will report why. */
void target_map(const char *name);

#endif
