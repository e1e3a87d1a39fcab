/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/files/worker_warnings.h"

#include "common/base/bytes/buf.h"
#include "common/base/command/log.h"
#include "common/names/program/program.h"

#define SHOWN_MAX 256	/* bytes of a path in a message */
#define CODE_LOST_MAX 4 /* files that are logged individually */

void worker_warnings_keeper_gone(void)
{
	if (program_keeper_gone())
		log_warning("the process that starts readers of files ended or hangs; later "
			    "functions have no lines and no inlined calls; run prof-symd again");
}

static void say_of_file(struct str path, const char *what)
{
	struct buf shown = BUF_INIT(0);

	if (log_escape(&shown, path, SHOWN_MAX) == 0)
		log_warning("%.*s: %s", (int)shown.len, (const char *)shown.data, what);
	buf_done(&shown);
}

void worker_warnings_killed(struct str path)
{
	say_of_file(path, "the process that reads its debug information was killed "
			  "(by the kernel, for lack of memory?); it is read once more");
}

void worker_warnings_lost(struct str path, unsigned kills)
{
	say_of_file(
		path,
		kills > 1
			? "the process that reads its debug information was killed twice (by the "
			  "kernel, for lack of memory?); its inlined calls and lines are missing; "
			  "leave the tools more memory (mostly of their cgroup or container)"
			: "reading its debug information crashed or took too long; its inlined "
			  "calls and lines are missing");
}

void worker_warnings_died(struct str path, bool killed)
{
	say_of_file(path,
		    killed ? "is not named: prof-symd's worker was killed on it repeatedly; "
			     "it is read again later"
			   : "is not named: prof-symd's worker crashed on it twice, or waited "
			     "too long for it; unless its disk is slow or somebody locks it, "
			     "this is a bug: report it, with the file");
}

void worker_warnings_too_large(struct str path)
{
	say_of_file(
		path,
		"its debug information takes more memory than allowed; its inlined calls and lines "
		"are missing; raise --memory-limit (further files are only counted)");
}

void worker_warnings_too_large_by_hand(struct str path)
{
	say_of_file(path, "its debug information takes more memory than allowed; "
			  "its inlined calls and lines are missing; raise -m");
}

void worker_warnings_code_lost(uint32_t pid)
{
	static unsigned told;

	if (told++ < CODE_LOST_MAX)
		log_warning("process %u: its generated code has no names: the process that reads "
			    "its perf map or jitdump crashed on it or took too long",
			    (unsigned)pid);
}

void worker_warnings_codes_lost(uint64_t files)
{
	if (files)
		log_warning("%llu perf maps and jitdumps were given up, since reading them crashed "
			    "or took too long",
			    (unsigned long long)files);
}
