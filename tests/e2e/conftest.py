# SPDX-License-Identifier: Apache-2.0
"""Shared by the whole-tool tests: running profpipe, and programs of known shape."""
import json
import os
import re
import resource
import subprocess
import time
from types import SimpleNamespace

import pytest

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))
# Go compiles its library once for all tests.
GO_CACHE = os.path.join(os.path.dirname(BUILD), "go-cache")


def profpipe(*args, timeout=120, **kw):
    return subprocess.run([f"{BUILD}/profpipe", *map(str, args)], capture_output=True, text=True,
                          errors="replace", timeout=timeout, **kw)


def record(tmp_path, *args, command=None, ending=".folded", timeout=120):
    """Runs `profpipe record`. Returns its output (parsed if folded), its summary, and its
    messages."""
    out, summary = tmp_path / f"out{ending}", tmp_path / "summary.json"
    argv = ["record", "-o", out, "--summary", summary, *args]
    if command:
        argv += ["--", *command]
    p = profpipe(*argv, timeout=timeout)
    assert p.returncode == 0, p.stderr
    stacks = []
    if ending == ".folded":
        for line in out.read_text(errors="replace").splitlines():
            stack, count = line.rsplit(" ", 1)
            stacks.append((stack.split(";"), int(count)))
    return SimpleNamespace(path=out, stacks=stacks, summary=json.loads(summary.read_text()),
                           stderr=p.stderr)


def walked_live(argv, after=0.2):
    """Runs the kernel's walker without the rest of the pipeline. Returns how many samples it took
    of a program, and how many were complete. It runs for a second, or longer if a busy machine
    leaves the program too little time. after: seconds to wait, so that its mappings are there."""
    with subprocess.Popen(argv) as program:
        try:
            time.sleep(after)
            for seconds in ("1", "5", "25"):
                p = subprocess.run([f"{BUILD}/tests/walk-live", str(program.pid), seconds, "199"],
                                   capture_output=True, text=True, timeout=90)
                assert p.returncode == 0, p.stderr
                samples = int(re.search(r"samples (\d+)", p.stdout)[1])
                if samples > 40:
                    break
        finally:
            program.kill()
    return samples, int(re.search(r"^complete (\d+)", p.stdout, re.M)[1]), p.stdout


def symbolized(path, addresses):
    """Returns what prof-symd -e prints: a list of [(function, file:line), ...] per address,
    innermost first."""
    p = subprocess.run([f"{BUILD}/prof-symd", "-e", path],
                       input="\n".join(f"{a:x}" for a in addresses), capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    answers = []
    for line in p.stdout.splitlines():
        inlined = line.startswith(" (inlined by) ")
        line = line[len(" (inlined by) "):] if inlined else line
        call = ("??", "??:0") if line == "?? ??:0" else tuple(line.rsplit(" at ", 1))
        if inlined:
            answers[-1].append(call)
        else:
            answers.append([call])
    assert len(answers) == len(addresses)
    return answers


CHAIN_HEAD = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#define BURN(n) for (long i = 0; i < (n); i++) __asm__ volatile("" ::: "memory")
static long burn;
"""
CHAIN_TAIL = """
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline, noclone)) int descend(double until)
{
	int s = 0;
	for (int t = 1; now() < until; t = t % %(n)d + 1)
		s += f1(t);
	return s;
}
static void *thread(void *until) { return (void *)(long)descend(*(double *)until); }
int main(int argc, char **argv)
{
	double until = now() + atof(argv[1]);
	pthread_t p;
	burn = 40000;
	if (argc > 2 && pthread_create(&p, NULL, thread, &until) == 0) {
		pthread_join(p, NULL);
		return 0;
	}
	return descend(until) & 1;
}
"""


def few(samples, share=0.01):
    """How many of n samples may be wrong: this share of them, but at least three, which may be
    chance."""
    return max(3, share * samples)


def of_which_check_has(values, some):
    """For parametrize: all values. `make check` has some of them, `make check-all` the others."""
    return [pytest.param(*(v if isinstance(v, tuple) else (v,)),
                         marks=[] if v in some else [pytest.mark.check_all]) for v in values]


@pytest.fixture(scope="session", autouse=True)
def folders_are_reachable(tmp_path_factory):
    """A debug file is used only if every user can reach it. So every user can reach the folders of
    the tests, which pytest makes for one user only; the files in them have their own modes."""
    folder = tmp_path_factory.getbasetemp()
    for path in [folder, *folder.parents]:
        if path.stat().st_mode & 0o011 != 0o011:
            path.chmod(path.stat().st_mode | 0o011)


@pytest.fixture(scope="session")
def chain(tmp_path_factory):
    """A function that builds a chain of n nested functions without frame pointers, stripped of all
    but .eh_frame, with its names in a debug file. frame: bytes of stack that each takes, and a few
    more than its caller."""
    folder = tmp_path_factory.mktemp("chain")
    folder.chmod(0o755)

    def build(n, frame=0):
        name = folder / (f"chain{n}" + (f"of{frame}" if frame else ""))
        if name.exists():
            return str(name)
        source = [CHAIN_HEAD]
        for i in range(n, 0, -1):
            call = (f"if (t > {i}) {{ int r = f{i + 1}(t); __asm__ volatile(\"\" : "
                    f"\"+r\"(r)); return r + 1; }}" if i < n else "")
            room = f"volatile char room[{frame + 64 * i}]; room[0] = 1;" if frame else ""
            source.append(f"__attribute__((noinline, noclone)) int f{i}(int t) {{ {room} {call} "
                          f"BURN(burn); return t; }}")
        source.append(CHAIN_TAIL.replace("%(n)d", str(n)))
        c = folder / f"{name.name}.c"
        c.write_text("\n".join(source))
        subprocess.run(["gcc", "-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls",
                        "-o", name, c], check=True)
        (folder / ".debug").mkdir(exist_ok=True)
        debug = folder / ".debug" / f"{name.name}.debug"
        subprocess.run(["objcopy", "--only-keep-debug", name, debug], check=True)
        subprocess.run(["strip", "--strip-all", "--remove-section=.comment", name], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", name], check=True)
        return str(name)

    return build


# Where a test runs (pytest.ini, tests/check.sh), by its file or by its name.
MARKS = {
    "pure": ["test_bus", "test_go_names", "test_labels", "test_old_recordings", "test_otlp",
             "test_page", "test_pprof", "test_prof_deltas", "test_prof_export", "test_prof_send",
             "test_prof_send_hostile", "test_prof_send_queues", "test_prof_symd", "test_protocol",
             "test_usage"],
    "vm": ["test_vm"],
    "check_all": ["test_fair_model", "test_podman"],
    "alone": [
        # These measure how much memory or cpu profpipe uses at a given load.
        "test_thousands_of_short_processes_are_all_seen_and_forgotten",
        "test_the_limit_that_would_have_sufficed_is_named",
        # These compare the tools' texts about the whole host, word by word.
        "test_a_limit_is_named_by_doctor_and_by_record_in_the_same_words",
        # Users who take all that they can get: the log and the figures of the host are then not
        # what other tests expect.
        "test_fairness", "test_fairness_files", "test_fairness_idle", "test_fairness_processes",
        "test_fairness_priority", "test_fairness_symbols", "test_fairness_table",
        "test_fair_names", "test_fair_samples",
        "test_cpu_limit", "test_locks_of_folders_in_proc",
        # Takes a cpu offline for a while.
        "test_a_cpu_that_went_and_came_back_is_sampled_again",
        # These expect something at the time of a first sample, or within a second of it.
        "test_the_first_sample_of_a_new_interpreter_has_its_frames",
        "test_an_interpreter_that_is_the_command_has_its_frames_at_once",
        "test_frames_begin_soon_and_at_once_when_the_file_is_known",
        "test_recording_begins_within_half_a_second",
    ],
    "waits": [
        "test_a_process_is_sampled_once_it_is_old_enough",
        "test_a_run_does_not_wait_for_a_worker_that_the_kernel_keeps",
        "test_a_slow_reader_is_waited_for",
        "test_a_stopped_tool_hangs_nothing",
        "test_a_tool_that_is_never_ready_is_not_waited_for",
        "test_an_extractor_that_cannot_live_is_not_restarted_for_ever",
        "test_an_output_that_never_comes_is_given_up",
        "test_a_run_survives_repeated_deaths_of_each_tool",
        "test_garbage_on_the_status_pipe_ends_the_tool",
        "test_hundred_thousand_mappings_are_known_and_cost_little",
        "test_no_answer_about_rows_ends_prof_bpf_or_fills_it",
        "test_no_file_is_given_by_another_way",
        "test_prof_cpus_ends_with_a_prof_bpf_by_hand_even_if_it_was_stopped",
        "test_stacks_of_other_suites_equal_pythons_tracebacks",
        "test_the_loss_at_the_end_is_not_overestimated",
        "test_a_gap_is_in_all_outputs_and_overlaps_no_sample",
        "test_a_reader_that_does_not_read_blocks_until_it_goes_or_an_interrupt",
    ],
}


# The files that take longest begin first, so that no worker is left with one of them at the end.
LONGEST = ["test_run", "test_python", "test_targets", "test_redteam", "test_doctor", "test_ceiling",
           "test_step", "test_memory", "test_go", "test_prof_send_hostile", "test_hazards",
           "test_tools", "test_walker", "test_dump", "test_split_debug", "test_otlp_send",
           "test_death", "test_hotspot", "test_v8", "test_skeleton", "test_remedies",
           "test_attributes", "test_function_starts", "test_large_unit", "test_switched_stacks"]


def pytest_collection_modifyitems(items):
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(LONGEST)))
    for item in items:
        for mark, names in MARKS.items():
            if item.path.stem in names or item.originalname in names:
                item.add_marker(mark)


def children_cpu():
    """The cpu time of all ended children, in seconds."""
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds to a report how much cpu time the programs of this step took."""
    cpu = children_cpu()
    report = (yield).get_result()
    report.cpu = cpu - getattr(item.session, "cpu_before", 0)
    item.session.cpu_before = cpu


def pytest_runtest_logreport(report):
    """Notes what each test took, for the list of the slowest, and which ones failed."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    durations, failures = (os.environ.get(f"PROFPIPE_{w}") for w in ("DURATIONS", "FAILURES"))
    if failures and report.failed:
        with open(failures, "a", encoding="utf-8") as f:
            f.write(f"{report.nodeid}\n")
    if durations and report.duration >= 1:
        with open(durations, "a", encoding="utf-8") as f:
            f.write(f"{report.duration:.1f} {report.cpu:.1f} {report.nodeid} ({report.when})\n")
