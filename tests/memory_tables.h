/* SPDX-License-Identifier: Apache-2.0 */
/* Tables without BPF maps, in this process's memory. */
#ifndef TESTS_MEMORY_TABLES_H
#define TESTS_MEMORY_TABLES_H

#include "common/walk/tables/tables.h"

static inline struct tables_config memory_tables(size_t max_bytes)
{
	return (struct tables_config){ .slabs_fd = -1,
				       .files_fd = -1,
				       .rules_fd = -1,
				       .processes_fd = -1,
				       .max_bytes = max_bytes };
}

#endif
