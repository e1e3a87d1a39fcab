/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "common/names/runtime/runtime.h"

Test(registry, each_runtime_has_all_functions_that_it_must_have)
{
#define RUNTIME(number, NAME, lower, title, type, mark) \
	cr_expect(lower##_runtime.describe &&lower##_runtime.name &&lower##_runtime.is_sane, title);
#include "bpf/runtimes.def"
}
