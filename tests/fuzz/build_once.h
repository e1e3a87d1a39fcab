/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the build's hash only once. A tool needs it once per pipe, a target in each run. For one
 * C file of a target that is linked with BUILD_ONCE of module.mk.
 */
#ifndef TESTS_FUZZ_BUILD_ONCE_H
#define TESTS_FUZZ_BUILD_ONCE_H

#include <stdint.h>
#include "common/wire/msg.h"

uint64_t __real_msg_build(void);
uint64_t __wrap_msg_build(void);
uint64_t __wrap_msg_build(void)
{
	static uint64_t hash;

	if (!hash)
		hash = __real_msg_build();
	return hash;
}

#endif
