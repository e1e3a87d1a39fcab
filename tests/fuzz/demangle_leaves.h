/* SPDX-License-Identifier: Apache-2.0 */
/* Tells LeakSanitizer to ignore memory that demangle.c leaves behind on purpose: it counts it, for
 * D names that take too much memory. */
#ifndef TESTS_FUZZ_DEMANGLE_LEAVES_H
#define TESTS_FUZZ_DEMANGLE_LEAVES_H

const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:xrealloc\nleak:xmalloc\n";
}

#endif
