# SPDX-License-Identifier: Apache-2.0
"""The tools of a run: their identity, and how a run goes on without one of them."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import record
from running import Run, TOOLS, children, nothing_is_left_behind, status_of


def test_only_the_draining_thread_has_priority_on_a_busy_host(tmp_path):
    def nice(task):
        return os.getpriority(os.PRIO_PROCESS, int(task))

    with Run("-q", "-o", tmp_path / "x.folded") as r:
        tools = r.sampling()
        first = {n for n, p in tools.items() for t in os.listdir(f"/proc/{p}/task") if nice(t) < 0}
        drains = tools["prof-bpf"]
        others = {t for t in os.listdir(f"/proc/{drains}/task") if t != str(drains)}
        assert first == {"prof-bpf"} and nice(drains) == -15 and {nice(t) for t in others} == {0}
        children = open(f"/proc/{drains}/task/{drains}/children").read().split()
        assert {nice(c) for c in children} <= {0}
        r.p.send_signal(signal.SIGINT)
        assert r.end()[0] == 0


def test_each_tool_has_the_least_identity(tmp_path):
    with Run("-q", "-o", tmp_path / "x.folded") as r:
        tools = r.sampling()
        status = {n: status_of(p) for n, p in tools.items()}
        fds = {n: sorted(int(f) for f in os.listdir(f"/proc/{p}/fd")) for n, p in tools.items()}
        sids = {os.getsid(p) for p in tools.values()}
        env = {n: open(f"/proc/{p}/environ", "rb").read() for n, p in tools.items()}
        r.p.send_signal(signal.SIGINT)
        assert r.end()[0] == 0
    uids = {n: set(s["Uid"].split()) for n, s in status.items()}
    assert all(len(u) == 1 for u in uids.values())
    assert len(set.union(*uids.values())) == 4
    assert all(int(u) >= 2_000_000_000 for s in uids.values() for u in s)
    assert len({s["Gid"] for s in status.values()}) == 1
    assert all(s["Groups"].strip() == "" for s in status.values())
    for n, s in status.items():
        assert s["NoNewPrivs"] == "1"
        if n != "prof-bpf":
            assert {s[c]
                    for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}, n
        assert int(s["CapEff"], 16) & 1 << 21 == 0, "CAP_SYS_ADMIN"
    assert len(sids) == 4 and all(e.strip(b"\0") == b"" or e.count(b"ASAN") for e in env.values())
    assert all(f[0] == 0 for f in fds.values())


def test_two_runs_at_once_share_no_identity(tmp_path):
    with Run("-q", "-o", tmp_path / "a.folded") as a, Run("-q", "-o", tmp_path / "b.folded") as b:
        seen = [status_of(p)["Uid"].split()[0] for r in (a, b) for p in r.sampling().values()]
        for r in (a, b):
            r.p.send_signal(signal.SIGINT)
        assert a.end()[0] == 0 and b.end()[0] == 0
    assert len(set(seen)) == 8


def test_leftovers_of_a_killed_launcher_are_removed(tmp_path):
    with Run("-q", "-o", tmp_path / "a.folded") as r:
        tools = r.sampling()
        with open(f"/proc/{tools['prof-bpf']}/cmdline") as f:
            argv = f.read().split("\0")
        folder = argv[argv.index("--run-dir") + 1]
        assert os.listdir(folder)
        r.p.kill()
        r.p.wait()
        for _ in range(100):
            if not any(os.path.exists(f"/proc/{p}") for p in tools.values()):
                break
            time.sleep(0.05)
        assert [n for n, p in tools.items() if os.path.exists(f"/proc/{p}")] == []
    record(tmp_path, "-d", "0.2")
    assert not os.path.exists(folder)


def test_a_killed_extractor_is_started_again(tmp_path):
    out = tmp_path / "x.folded"
    late = tmp_path / "late"
    shutil.copy("/usr/bin/gawk", late)
    with Run("-F", "499", "-o", out, "--", "sh", "-c", 'read -r go; exec "$0" "$1"', late,
             "BEGIN { for (i = 0; i < 10000000; i++) s += i }", stdin=subprocess.PIPE) as r:
        r.sampling()
        for _ in range(3):
            os.kill(r.tools()["prof-deltas"], signal.SIGKILL)
            time.sleep(0.6)
        # A new program, so that prof-bpf asks for rows now.
        r.p.stdin.write("\n")
        r.p.stdin.flush()
        status, _, err = r.end()
    assert status == 0, err
    assert "prof-deltas ended" in err and "restarting it" in err
    mine = [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1]))
            for line in out.read_text().splitlines() if line.startswith("late")]
    whole = sum(c for s, c in mine if not any(f.startswith("[truncated") for f in s))
    assert whole > 100 and whole >= 0.8 * sum(c for _, c in mine)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_stopped_tool_hangs_nothing(tmp_path, tool):
    rests = "import time\nwhile True:\n    for i in range(20000): pass\n    time.sleep(0.01)"
    with (subprocess.Popen(["/usr/bin/python3", "-c", rests]) as load,
          Run("-F", "99", "-d", "60", "-o", tmp_path / "x.folded") as r):
        os.kill(r.sampling()[tool], signal.SIGSTOP)
        for line in r.p.stderr:
            r.said += line
            if "ended" in line:
                break
        time.sleep(3)
        r.p.send_signal(signal.SIGINT)
        status, _, err = r.end(50)
        load.kill()
    assert status == 0, err
    assert f"{tool} has been stopped" in err and f"{tool} ended (signal 9" in err


@pytest.mark.parametrize("times, seed", [(8, 7), pytest.param(24, 8, marks=pytest.mark.check_all)])
def test_tools_killed_at_random_moments_hang_nothing(tmp_path, times, seed):
    choose = random.Random(seed)
    for i in range(times):
        tool, number, delay = choose.choice(TOOLS), signal.SIGKILL, choose.uniform(0, 0.6)
        with Run("-F", "199", "-d", "0.5", "-o", tmp_path / f"x{i}.folded") as r:
            for _ in range(200):
                found = children(r.p.pid)
                if tool in found:
                    break
                time.sleep(0.005)
            time.sleep(delay)
            try:
                os.kill(found[tool], number)
            except ProcessLookupError:
                pass
            status, _, err = r.end(30)
        assert status in (0, 1), (tool, delay, err)
        assert status == 0 or "profpipe: error: " in err


@pytest.mark.check_all
def test_5000_short_processes_leave_no_trace_in_memory(tmp_path):
    """After they are gone, memory is as after the first of them, and losses are counted."""
    def memory(tools):
        kib = {"prof-symd": 0, "others": 0}
        for name, p in tools.items():
            with open(f"/proc/{p}/smaps_rollup") as f:
                dirty = re.search(r"\nPrivate_Dirty: +(\d+)", f.read())
                kib[name if name in kib else "others"] += int(dirty.group(1))
        return kib

    def few(before, after):
        """New stacks and their names are kept, some 200 to 700 KiB in 5,000 processes. Processes
        are not kept: half a KiB each would be 2.5 MiB, and 35,000 took no more each. prof-symd's
        open files, with libc's debug file 11 MiB, come and go within its budget of 16."""
        return (after["others"] < before["others"] + 2048 and
                after["prof-symd"] < max(before["prof-symd"] + 4096, 22 << 10))

    # Only the loop and its children are recorded: the host's other programs would change the caches
    # of names.
    loop = ("go=3000; while [ $go -gt 0 ]; do i=0; while [ $i -lt $go ]; do /bin/true; "
            "i=$((i+1)); done; echo done; read -r go; done")
    summary = tmp_path / "s.json"
    with Run("-F", "99", "-o", tmp_path / "x.folded", "--summary", summary, "--", "/bin/dash", "-c",
             loop, stdin=subprocess.PIPE) as r:
        tools, seen = r.tools(), []
        # Samples that wait for an answer also take memory: more on a machine that is busy for a
        # while. A leak would remain each time.
        go_on = True
        while go_on:
            assert r.p.stdout.readline() == "done\n"
            time.sleep(4)
            seen.append(memory(tools))
            go_on = len(seen) < 2 or (len(seen) < 5 and not few(*seen[-2:]))
            r.p.stdin.write("5000\n" if go_on else "0\n")
            r.p.stdin.flush()
        status, _, err = r.end()
    assert status == 0, err
    got = json.loads(summary.read_text())
    assert few(*seen[-2:]), f"KiB after each time: {seen}"
    assert seen[-1]["others"] < seen[0]["others"] + 8192, f"KiB after each time: {seen}"
    assert got["processes"] > 10
    assert got["samples"] == got["complete"] + sum(got["truncated"].values())


# Maps a page of code 12,000 times, when told to, and runs in all of them.
MANY_MAPPINGS = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define N 12000
int main(void)
{
	/* push rbp; mov rbp, rsp; count down from 2^24; pop rbp; ret */
	static const unsigned char page[4096] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0, 0, 1,
						  0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };
	FILE *f = tmpfile();
	char *a = mmap(NULL, N * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char go;
	fwrite(page, 1, sizeof(page), f);
	fflush(f);
	write(1, "ready\n", 6);
	read(0, &go, 1);
	for (long i = 0; i < N; i++)
		if (mmap(a + i * 4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			 fileno(f), 0) == MAP_FAILED)
			return 1;
	write(1, "mapped\n", 7);
	read(0, &go, 1);
	/* The kernel tells of what a cpu's ring lost with that ring's next record. */
	cpu_set_t all, one;
	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		if (CPU_ISSET(i, &all) && sched_setaffinity(0, sizeof(one), &one) == 0)
			mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
	}
	sched_setaffinity(0, sizeof(all), &all);
	for (long i = 0, end = time(NULL) + 3; time(NULL) < end; i += 7919)
		((void (*)(void))(a + i % N * 4096))();
	return 0;
}
"""


def test_mappings_whose_records_were_lost_are_read_again(tmp_path):
    """prof-bpf is stopped while a process makes more mappings than its rings can hold. It reports
    the loss, and the stacks are complete anyway."""
    source, program, summary = tmp_path / "many.c", tmp_path / "many", tmp_path / "s.json"
    source.write_text(MANY_MAPPINGS)
    subprocess.run(["gcc", "-O1", "-w", "-o", program, source], check=True)
    with Run("-F", "199", "-o", tmp_path / "x.folded", "--summary", summary, "--", program,
             stdin=subprocess.PIPE) as r:
        assert r.p.stdout.readline() == "ready\n"
        held = r.tools()["prof-bpf"]
        os.kill(held, signal.SIGSTOP)
        while any(open(f"/proc/{held}/task/{t}/stat").read().rsplit(")", 1)[1].split()[0] != "T"
                  for t in os.listdir(f"/proc/{held}/task")):
            time.sleep(0.01)
        r.p.stdin.write("m")
        r.p.stdin.flush()
        mapped = r.p.stdout.readline()
        os.kill(held, signal.SIGCONT)
        assert mapped == "mapped\n"
        r.p.stdin.write("r")
        r.p.stdin.flush()
        status, _, err = r.end()
    assert status == 0, err
    got = json.loads(summary.read_text())
    assert got["missed"].get("sideband", 0) > 1000, (got["missed"], got["samples"],
                                                     got["truncated"], err)
    assert got["samples"] > 40 and got["complete"] > 0.9 * got["samples"], got["truncated"]
