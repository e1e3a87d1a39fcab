/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/label.h"

#include <criterion/criterion.h>

static void expect(const char *name, const char *shown)
{
	struct buf b = BUF_INIT(0);

	cr_assert_eq(buf_append_str(&b, "before;"), 0);
	cr_assert_eq(label_name(&b, str_from(name)), 0);
	cr_assert_eq(buf_append(&b, "", 1), 0);
	cr_expect_str_eq((char *)b.data + 7, shown);
	buf_done(&b);
}

Test(label, ordinary_names_stay_as_they_are)
{
	static const char *const names[] = {
		"",
		"main",
		"-[NSString length]",
		"[Foo bar]",
		"[k]",
		"a[k]",
		"_[k",
		"x_[k] (a.py:4)",
		"x_[k].cold",
		"operator[]",
		"<[T]>::sort",
		"void [System.Private.CoreLib] System.Foo::Bar()[Tier0]",
		"LazyCompile:*run /srv/[id].js:4",
		"Closure::{closure#0}",
		"App\\Http\\Kernel::handle",
		"\\[x]",
		"f+0x10",
		"truncated: no-rows",
		"x[truncated: no-rows]",
		"größe 日本",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i], names[i]);
}

/* A process cannot have a name that stands for a process without a name. */
Test(label, no_process_imitates_an_unknown_one)
{
	static const char *const names[][2] = {
		{ "[unknown]", "\\[unknown]" },
		{ "\\[unknown]", "\\\\[unknown]" },
		{ "pid-1", "\\pid-1" },
		{ "\\pid-1", "\\\\pid-1" },
		{ "tid-4711", "\\tid-4711" },
		{ "[truncated: x]", "\\[truncated: x]" },
		{ "pid-", "pid-" },
		{ "pid-1a", "pid-1a" },
		{ "rapid-1", "rapid-1" },
		{ "[unknown] ", "[unknown]\\x20" },
		{ "bash", "bash" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct buf b = BUF_INIT(0);

		cr_assert_eq(label_comm(&b, str_from(names[i][0])), 0);
		cr_assert_eq(buf_append(&b, "", 1), 0);
		cr_expect_str_eq((char *)b.data, names[i][1]);
		buf_done(&b);
	}
}

Test(label, no_name_imitates_a_mark)
{
	static const char *const names[][2] = {
		{ "do_sys_open_[k]", "do_sys_open_\\[k]" },
		{ "_[k]", "_\\[k]" },
		{ "a_\\[k]", "a_\\\\[k]" },
		{ "a_[k]_[k]", "a_[k]_\\[k]" },
		{ "[truncated: no-rows]", "\\[truncated: no-rows]" },
		{ "[truncated; no-rows]", "\\[truncated; no-rows]" },
		{ "[truncated:", "\\[truncated:" },
		{ "\\[truncated: x]", "\\\\[truncated: x]" },
		{ "[kernel+0x10]_[k]", "\\[kernel+0x10]_\\[k]" },
		{ "[libc.so.6+0x1000]", "\\[libc.so.6+0x1000]" },
		{ "[anon+0x1", "\\[anon+0x1" },
		{ "[unknown]", "\\[unknown]" },
		{ "[lost]", "\\[lost]" },
		{ "[vdso]", "\\[vdso]" },
		{ "\\[vdso]", "\\\\[vdso]" },
		/* A method of JavaScript. */
		{ "[Symbol.iterator]", "[Symbol.iterator]" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect(names[i][0], names[i][1]);
}

Test(label, escaped_labels_are_also_guarded)
{
	expect("\x01_[k]", "\\x01_\\[k]");
	expect("[truncated: \xff", "\\[truncated: \\xff");
	/* Readers may trim spaces. */
	expect("vfs_read_[k] ", "vfs_read_[k]\\x20");
	expect("  [truncated: x]", "\\x20\\x20[truncated: x]");
	expect("a b", "a b");
	expect(" ", "\\x20");
}
