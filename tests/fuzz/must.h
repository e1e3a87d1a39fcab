/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that hold for any input. An input that breaks one is a finding. */
#ifndef TESTS_FUZZ_MUST_H
#define TESTS_FUZZ_MUST_H

#include <stdbool.h>
#include <stdlib.h>

static inline void must(bool what)
{
	if (!what)
		abort();
}

#endif
