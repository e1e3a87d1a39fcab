/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "tools/prof-bpf/checks/kernel.h"

static bool locks_up(const char *release, const char *version)
{
	struct kernel_version v;

	cr_assert(kernel_version_parse(release, version, &v), "%s", release);
	return kernel_locks_up(&v);
}

Test(kernel, versions_are_read_off_the_release)
{
	struct kernel_version v;

	cr_assert(kernel_version_parse("6.12.5-200.fc41.x86_64", "#1 SMP", &v));
	cr_assert(v.major == 6 && v.minor == 12 && v.patch == 5);
	cr_assert(kernel_version_parse("6.4-rc2", "#1 SMP", &v));
	cr_assert(v.major == 6 && v.minor == 4 && v.patch == 0);
	cr_assert_not(kernel_version_parse("", "", &v));
	cr_assert_not(kernel_version_parse("gVisor", "", &v));
	cr_assert_not(kernel_version_parse("6", "", &v));
	cr_assert_not(kernel_version_parse("6.-4", "", &v));
	cr_assert_not(kernel_version_parse("6. 4", "", &v));
}

Test(kernel, debian_says_the_patch_level_in_the_version)
{
	struct kernel_version v;

	cr_assert(kernel_version_parse("6.1.0-18-amd64",
				       "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)", &v));
	cr_assert(v.major == 6 && v.minor == 1 && v.patch == 76);
	/* The code of another kernel, such as a rebuilt one, proves nothing about this one. */
	cr_assert(kernel_version_parse("5.19.0-1", "#1 SMP Debian 6.1.76-1", &v));
	cr_assert(v.major == 5 && v.minor == 19 && v.patch == 0);
}

Test(kernel, known_bad_kernels_end_where_they_were_mended)
{
	static const char *const bad[] = { "5.18.0", "5.19.17", "6.0.19", "6.1.0",
					   "6.1.35", "6.2.16",	"6.3.9" };
	static const char *const good[] = { "5.10.0",  "5.15.199", "5.17.15", "6.1.36",
					    "6.1.119", "6.3.10",   "6.4.0",   "6.18.44" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert(locks_up(bad[i], "#1 SMP"), "%s", bad[i]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert_not(locks_up(good[i], "#1 SMP"), "%s", good[i]);
	cr_assert(locks_up("6.1.0-9-amd64", "#1 SMP Debian 6.1.27-1 (2023-05-08)"));
	cr_assert_not(locks_up("6.1.0-18-amd64", "#1 SMP Debian 6.1.76-1 (2024-02-01)"));
}

static struct kernel_symbols symbols(const char *const *lines, size_t n)
{
	struct kernel_symbols s = { 0 };

	for (size_t i = 0; i < n; i++)
		kernel_symbols_line(&s, lines[i]);
	return s;
}

static const char *const lines[] = {
	"ffffffff81345910 T nmi_uaccess_okay",
	"ffffffff8159a7b0 T copy_from_user_nofault",
	"ffffffff8159a860 T copy_to_user_nofault",
	"ffffffff816ae6f0 T __check_object_size",
};

Test(kernel, symbols_are_taken_from_their_lines)
{
	struct kernel_symbols s = symbols(lines, 4);

	cr_assert_eq(s.function, 0xffffffff8159a7b0);
	cr_assert_eq(s.function_end, 0xffffffff8159a860);
	cr_assert_eq(s.uaccess_okay, 0xffffffff81345910);
	cr_assert_eq(s.object_size, 0xffffffff816ae6f0);
	/* Hidden addresses, and malformed lines. */
	static const char *const none[] = { "0000000000000000 T copy_from_user_nofault", "",
					    "ffffffff8159a7b0", "ffffffff8159a7b0 T",
					    "x T copy_from_user_nofault" };

	s = symbols(none, 5);
	cr_assert_eq(s.function, 0);
}

/* A call at `at` of a function that starts there. */
static void put_call(uint8_t *code, size_t at, uint64_t function, uint64_t to)
{
	const int32_t distance = (int32_t)(to - (function + at + 5));

	code[at] = 0xe8;
	memcpy(code + at + 1, &distance, sizeof(distance));
}

Test(kernel, code_tells_the_bug_from_the_mended)
{
	const struct kernel_symbols s = symbols(lines, 4);
	uint8_t code[512];

	memset(code, 0x90, sizeof(code));
	cr_assert_not(kernel_code_locks_up(&s, code, sizeof(code)), "not hardened");
	put_call(code, 40, s.function, s.object_size);
	cr_assert(kernel_code_locks_up(&s, code, sizeof(code)));
	put_call(code, 20, s.function, s.uaccess_okay);
	cr_assert_not(kernel_code_locks_up(&s, code, sizeof(code)), "mended");
	/* Calls of the next function do not count. */
	memset(code, 0x90, sizeof(code));
	put_call(code, 40, s.function, s.object_size);
	put_call(code, 0xb0, s.function, s.uaccess_okay);
	cr_assert(kernel_code_locks_up(&s, code, sizeof(code)));
	memset(code, 0x90, sizeof(code));
	put_call(code, 0xb0, s.function, s.object_size);
	cr_assert_not(kernel_code_locks_up(&s, code, sizeof(code)));
	/* A call that is truncated at the end. */
	memset(code, 0x90, sizeof(code));
	code[sizeof(code) - 2] = 0xe8;
	cr_assert_not(kernel_code_locks_up(&s, code, sizeof(code)));
}
