/* SPDX-License-Identifier: Apache-2.0 */
/* A live process for the walker's tests: its mappings, with the rows of the files behind them. One
 * process a program; trouble ends it. */
#ifndef PROFPIPE_TESTS_PROCESS_H
#define PROFPIPE_TESTS_PROCESS_H

#include <sys/types.h>
#include "tools/prof-bpf/tables.h"

/* Extracts the rows of every file that pid maps executable into t. Its mappings as
 * tables_process_set takes them; static storage. */
const struct tables_mapping *process_load(struct tables *t, pid_t pid, size_t *ret_n);
/* Memory of that process, as struct env wants it. */
long process_read(void *ctx, void *dst, uint32_t size, uint64_t addr);

#endif
