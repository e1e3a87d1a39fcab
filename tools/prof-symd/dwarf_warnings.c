/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/names/dwarf/dwarf.h"
#include "tools/prof-symd/dwarf_warnings.h"

#define SHOWN_MAX 256 /* bytes of a path in a message */

void dwarf_warnings_keeper_gone(void)
{
	if (dwarf_keeper_gone())
		log_warning("debug information: the process that starts its readers is gone or "
			    "stopped; later functions have no lines and inlined calls");
}

static void say_of_file(struct str path, const char *what)
{
	struct buf shown = BUF_INIT(0);

	if (log_escape(&shown, path, SHOWN_MAX) == 0)
		log_warning("%.*s: %s", (int)shown.len, (const char *)shown.data, what);
	buf_done(&shown);
}

void dwarf_warnings_killed(struct str path)
{
	say_of_file(path, "the process that reads its debug information was killed "
			  "(by the kernel, for want of memory?); it is read once more");
}

void dwarf_warnings_lost(struct str path, unsigned kills)
{
	say_of_file(
		path,
		kills > 1
			? "the process that reads its debug information was killed twice (by the "
			  "kernel, for want of memory?); its inlined calls and lines are missing; "
			  "leave the tools more memory (mostly of their cgroup or container)"
			: "reading its debug information crashed or took too long; its inlined "
			  "calls and lines are missing");
}

void dwarf_warnings_too_large(struct str path)
{
	say_of_file(
		path,
		"its debug information takes more memory than allowed; its inlined calls and lines "
		"are missing; raise --memory-limit (further files are only counted)");
}

void dwarf_warnings_too_large_by_hand(struct str path)
{
	say_of_file(path, "its debug information takes more memory than allowed; "
			  "its inlined calls and lines are missing; raise -m");
}
