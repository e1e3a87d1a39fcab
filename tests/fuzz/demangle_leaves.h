/* SPDX-License-Identifier: Apache-2.0 */
/* What demangle.c leaves behind of a name of D's that takes too much, which it counts: no leak. */
#ifndef PROFPIPE_TESTS_DEMANGLE_LEAVES_H
#define PROFPIPE_TESTS_DEMANGLE_LEAVES_H

const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:xrealloc\nleak:xmalloc\n";
}

#endif
