/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/format.h"

#include <criterion/criterion.h>
#include <stdio.h>

Test(format, is_found_by_the_ending_of_a_path)
{
	static const struct {
		const char *path;
		enum format format;
	} known[] = {
		{ "a.html", FORMAT_HTML },   { "x/a.b.folded", FORMAT_FOLDED },
		{ "a.pb.gz", FORMAT_PPROF }, { "a.pprof", FORMAT_PPROF },
		{ "a.TXT", FORMAT_TEXT },    { "a.prof", FORMAT_STREAM },
	};
	static const char *const unknown[] = { "", "a", ".html", "html", "a.gz", "a.html.", "-" };
	enum format f;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		cr_assert(format_of_path(known[i].path, &f), "%s", known[i].path);
		cr_assert_eq(f, known[i].format, "%s", known[i].path);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		cr_assert_not(format_of_path(unknown[i], &f), "%s", unknown[i]);
}

Test(format, ending_leads_back_to_the_format)
{
	for (int i = 0; i < FORMATS; i++) {
		char path[32];
		enum format f;

		snprintf(path, sizeof(path), "a%s", format_ending((enum format)i));
		cr_assert(format_of_path(path, &f));
		cr_assert_eq((int)f, i, "%s", format_names[i]);
	}
}
