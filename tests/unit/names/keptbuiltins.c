/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/keptbuiltins.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include "common/names/runtime/v8/builtins.h"

static struct stat stat_of(unsigned inode)
{
	return (struct stat){ .st_dev = 1, .st_ino = inode, .st_size = 100, .st_ctim.tv_nsec = 5 };
}

static struct v8_builtins *give(unsigned inode)
{
	struct v8_builtins *b = calloc(1, sizeof(*b));
	const struct stat st = stat_of(inode);

	cr_assert(b);
	keptbuiltins_give(&st, b);
	return b;
}

Test(keptbuiltins, the_same_file_gets_its_own_back_once)
{
	struct stat st = stat_of(1);
	struct v8_builtins *one = give(1), *two = give(2);

	keptbuiltins_give(&st, NULL);
	cr_expect_eq(keptbuiltins_take(&st), one);
	cr_expect_null(keptbuiltins_take(&st));
	st.st_ino = 2;
	cr_expect_eq(keptbuiltins_take(&st), two);
	v8_builtins_free(one);
	v8_builtins_free(two);
}

Test(keptbuiltins, a_file_that_changed_gets_none)
{
	struct stat st = stat_of(1);

	give(1);
	st.st_ctim.tv_nsec++;
	cr_expect_null(keptbuiltins_take(&st));
	st = stat_of(1);
	st.st_mtim.tv_sec++;
	cr_expect_null(keptbuiltins_take(&st));
	st = stat_of(1);
	st.st_size++;
	cr_expect_null(keptbuiltins_take(&st));
}

Test(keptbuiltins, those_of_the_last_files_are_kept)
{
	struct v8_builtins *last = NULL;
	struct stat st = stat_of(0);

	for (unsigned i = 0; i <= KEPTBUILTINS_MAX; i++)
		last = give(i);
	cr_expect_null(keptbuiltins_take(&st));
	/* Given again, it takes no second place. */
	last = give(KEPTBUILTINS_MAX);
	st = stat_of(KEPTBUILTINS_MAX);
	cr_expect_eq(keptbuiltins_take(&st), last);
	v8_builtins_free(last);
	for (unsigned i = 1; i < KEPTBUILTINS_MAX; i++) {
		st = stat_of(i);
		struct v8_builtins *b = keptbuiltins_take(&st);

		cr_expect(b, "%u", i);
		v8_builtins_free(b);
	}
}
