/* SPDX-License-Identifier: Apache-2.0 */
/* A live process for the walker's tests: its mappings, with the rows of their files. Errors end the
 * program. */
#ifndef TESTS_WALKER_PROCESS_H
#define TESTS_WALKER_PROCESS_H

#include <sys/types.h>
#include "tools/prof-dump/space/space.h"

/* A space over t and the memory of pid, without mappings. At most one in a program. */
void process_open(struct space *s, struct tables *t, pid_t pid);
/* From now on process_load takes the mappings of this one. */
void process_turn_to(pid_t pid);
/* Loads the present mappings; rows of files that are new to s are extracted. */
void process_load(struct space *s);
/* From now on, process_load looks for runtimes with `describe` (runtimes_describe), and frames of
 * their code are taken over. */
void process_find_runtimes(int (*describe)(struct tables *t, struct space_file *f));
/* Memory of that process, as struct env wants it. */
long process_read(void *ctx, void *dst, uint32_t size, uint64_t addr);

#endif
