/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in memory, with room for three slabs. */
#ifndef TESTS_UNIT_TABLES_FIXTURE_H
#define TESTS_UNIT_TABLES_FIXTURE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
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

/* A rule that is not its own number. */
static inline struct unwind_rule rule(int32_t off)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_REG, .cfa_reg = 10, .cfa_off = off };
}

#endif
