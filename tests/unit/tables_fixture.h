/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in memory, with room for three slabs. */
#ifndef TESTS_UNIT_TABLES_FIXTURE_H
#define TESTS_UNIT_TABLES_FIXTURE_H

#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/walk/tables/tables.h"
#include "tests/memory_tables.h"

static struct tables *t;

static inline void setup(void)
{
	const struct tables_config c = memory_tables(3 * TABLES_SLAB_BYTES);

	cr_assert_eq(tables_new(&c, &t), 0);
	tables_tick(t, 1);
}

static inline void teardown(void)
{
	tables_free(t);
}

/* The maps of real tables, as bpf/walk/env.h has them. The caller closes slabs_fd. */
static inline struct tables_config kernel_tables(size_t max_bytes)
{
	struct tables_config c = memory_tables(max_bytes);
	LIBBPF_OPTS(bpf_map_create_opts, slab, .map_flags = BPF_F_MMAPABLE);
	const int inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slab", 4, TABLES_SLAB_BYTES, 1,
					 &slab);
	LIBBPF_OPTS(bpf_map_create_opts, slabs, .inner_map_fd = (uint32_t)inner);

	c.slabs_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "slabs", 4, 4, TABLES_MAX_SLABS,
				    &slabs);
	cr_assert_geq(c.slabs_fd, 0, "%s", strerror(errno));
	close(inner);
	return c;
}

/* A rule that is not its own number. */
static inline struct unwind_rule rule(int32_t off)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_REG, .cfa_reg = 10, .cfa_off = off };
}

#endif
