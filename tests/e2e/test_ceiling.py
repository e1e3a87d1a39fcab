# SPDX-License-Identifier: Apache-2.0
"""--memory-limit: the tools and their maps together stay below it under every load. `make bench`
runs the loads of tests/bench/ceiling.py at full size."""
import contextlib
import os
import subprocess
import sys

import pytest
from conftest import of_which_check_has, profpipe, record

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import ceiling  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ceiling")
    os.chmod(path, 0o755)
    return str(path)


# The names, the size of each load, and the limit in MiB; the minimum is 64. The larger giant takes
# a minute of cpu.
@pytest.mark.parametrize("name,scale,limit", [
    ("mappings", 0.3, 64), ("stacks", 1, 64),
    *of_which_check_has([("executables", 0.1, 64), ("shorts", 1, None), ("jit", 0.3, 64),
                         ("deep", 1, 64), ("giant", 0.05, 64), ("giant", 0.2, 64)], ())])
def test_the_limit_holds(folder, name, scale, limit):
    status, meter, summary, said, beside, whole = ceiling.run(
        folder, [name], scale=scale, seconds=4, limit=limit)
    assert status == 0, said
    assert meter.looks > 5, meter.peaks
    assert {"prof-bpf", "prof-symd", "prof-export", "maps"} <= set(meter.peaks), meter.peaks
    assert meter.peak <= (limit or 128) * ceiling.MIB, (meter.at_peak, said)
    # The ordinary program beside the load has its stacks and its names.
    assert whole >= beside * 0.9 and whole > 5, (whole, beside, said)


def test_no_stack_is_cut_for_want_of_memory_while_there_is_some(folder):
    """The rows of some compilers do not fit into the share that the tables are guaranteed. They do
    fit into that share and the memory that nothing else uses."""
    status, meter, summary, said, _, _ = ceiling.run(folder, ["compilers"], seconds=5)
    assert status == 0, said
    assert meter.peak <= 128 * ceiling.MIB, (meter.at_peak, said)
    assert summary["samples"] > 300 and "memory-limit" not in summary["truncated"], said


@pytest.mark.check_all
def test_the_limit_that_would_have_sufficed_is_named(folder):
    """The limit suffices for this load: nothing is cut while there is memory."""
    # In the first seconds rows are still to come, and their size is not known yet.
    status, meter, summary, said, _, _ = ceiling.run(folder, ["rows"], seconds=8, limit=64)
    cut = summary["truncated"]["memory-limit"]
    assert status == 0 and cut > 50, said
    assert 0.78 * 64 * ceiling.MIB <= meter.peak <= 64 * ceiling.MIB, (meter.at_peak, said)
    # prof-bpf counts all that the launcher may take, and reads one tool after another. On a busy
    # machine it does so late, and then counts memory twice that moved from one tool to another.
    told = summary["cost"]["memory_peak_bytes"]
    assert 0.78 * 64 * ceiling.MIB <= told <= 1.1 * 64 * ceiling.MIB, said
    enough = summary["memory_enough_mib"]
    assert f"with --memory-limit {enough}M" in said, said
    status, _, summary, said, _, _ = ceiling.run(folder, ["rows"], seconds=8, limit=enough)
    # The first run could not know the needs of files that it did not sample.
    assert status == 0 and summary["truncated"].get("memory-limit", 0) <= cut / 4, (cut, said)


# Copies of gcc's compiler, which has 430,000 rows. Six loops run new ones.
COPIES = """
cd "$2" || exit
for loop in 1 2 3 4 5 6; do
    while [ $SECONDS -lt 6 ]; do
        cp "$1" copy-$loop.$((i += 1)) && ./copy-$loop.$i -quiet -O1 code.c -o /dev/null
        rm -f copy-$loop.$i
    done &
done
wait
"""


@pytest.mark.check_all
def test_new_copies_of_a_large_program_find_room(tmp_path):
    """Each copy needs room for its rows, which those of copies that ended must leave at once."""
    (tmp_path / "code.c").write_text("\n".join(
        f"int f{k}(int a, int b) {{ int s = 0; for (int i = 0; i < a; i++) s += b * i ^ {k};"
        " return s; }" for k in range(40)))
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                              check=True).stdout.strip()
    for hz in (99, 999):
        got = record(tmp_path, "-F", str(hz), command=["bash", "-c", COPIES, "copies", compiler,
                                                       tmp_path])
        summary = got.summary
        assert summary["samples"] > 3 * hz and summary["complete_percent"] >= 99, got.stderr


def test_a_process_of_very_many_mappings_is_walked_by_the_kernel(folder):
    """There is room for 65,529 mappings; mappings of no file, here half of them, are dropped first.
    If the process had no entry, prof-bpf would walk each sample, and gather all mappings for it."""
    children = ceiling.mappings(folder, 1)
    try:
        assert children[0].made == 100000
        status, meter, summary, said, _, _ = ceiling.run(
            folder, [], seconds=6, options=["--pid", str(children[0].pid)])
    finally:
        ceiling.kill(children)
    assert status == 0, said
    with open(f"{folder}/out.folded", errors="replace") as f:
        counts = [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in f]
    whole = sum(n for frames, n in counts
                if "main" in frames and any(s.startswith("step_") for s in frames))
    # On a busy machine, a quarter of the cpu time that it should have; its first samples may come
    # before its rows.
    assert summary["samples"] > 20 and whole >= summary["samples"] * 0.7, said
    assert (summary["missed"]["untracked"] >= 30000
            and summary["lost_total"] < summary["samples"]), said


def test_a_load_ends_with_the_bench_that_is_killed(tmp_path):
    """The load's programs and their descendants also end."""
    def running():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe").startswith(f"{tmp_path}/"):
                    found.append(int(pid))
        return found

    script = os.path.join(os.path.dirname(ceiling.__file__), "ceiling.py")
    p = subprocess.Popen([sys.executable, script, "--scale", "0.05", "--seconds", "3", "--folder",
                          str(tmp_path), "executables"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if len(running()) > 40:
                break
            ceiling.time.sleep(0.1)
        assert len(running()) > 40
        p.kill()
        p.wait()
        for _ in range(400):
            if not running():
                break
            ceiling.time.sleep(0.1)
        assert not running()
    finally:
        p.kill()
        p.wait()
        for pid in running():
            os.kill(pid, 9)


@pytest.mark.parametrize("size",
                         ["63M", "1", "", "x", "128X", "-1", "99999999999999999999", "1.5G"])
def test_a_malformed_or_too_low_limit_is_refused_in_one_line(tmp_path, size):
    p = profpipe("record", "--memory-limit", size, "-o", tmp_path / "out.folded", "-d", "1")
    assert p.returncode == 2 and len(p.stderr.splitlines()) == 1 and "--memory-limit" in p.stderr
    assert not (tmp_path / "out.folded").exists()


def test_the_fence_is_the_kernels(tmp_path):
    """Each tool has a limit on its private memory, which is below the run's."""
    p = subprocess.Popen([f"{ceiling.BUILD}/profpipe", "record", "--memory-limit", "96M", "-o",
                          str(tmp_path / "out.folded")], stderr=subprocess.PIPE, text=True)
    try:
        found = {}
        for _ in range(600):
            for pid in ceiling.tree(p.pid)[1:]:
                line = next((s for s in ceiling.fields(f"/proc/{pid}/limits").splitlines()
                             if s.startswith("Max data size")), "")
                name = ceiling.fields(f"/proc/{pid}/comm").strip()
                if line.split() and line.split()[4] != "unlimited":
                    found[name] = int(line.split()[4])
            if {"prof-bpf", "prof-deltas", "prof-symd", "prof-export"} <= set(found):
                break
            ceiling.time.sleep(0.05)
        assert {"prof-bpf", "prof-deltas", "prof-symd", "prof-export"} <= set(found), found
        assert all(v < 96 * ceiling.MIB for v in found.values()), found
    finally:
        p.terminate()
        p.communicate(timeout=60)


SLEEPERS = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 9000; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	puts("ready");
	fflush(stdout);
	for (;; usleep(10000))
		for (volatile int i = 0; i < 1000000; i++)
			;
}
"""


def test_a_host_with_more_processes_than_are_kept_is_profiled(tmp_path):
    """prof-bpf forgets some while it still reads the others, before it can tell anybody."""
    (tmp_path / "sleepers.c").write_text(SLEEPERS)
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "sleepers", tmp_path / "sleepers.c"],
                   check=True)
    with subprocess.Popen([tmp_path / "sleepers"], stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout.readline() == "ready\n"
            p = profpipe("record", "--memory-limit", "64M", "-d", "4", "-o",
                         tmp_path / "out.folded", timeout=120)
        finally:
            host.kill()
    assert p.returncode == 0, p.stderr
    assert "prof-bpf ended" not in p.stderr
    assert "sleepers" in (tmp_path / "out.folded").read_text(errors="replace")
