# SPDX-License-Identifier: Apache-2.0
"""The cost of an ordinary user's files and memory to the profiles of others."""
import contextlib
import json
import os
import subprocess
import threading
import time

import pytest
from attacks import mute_files, new_kit, sparse_memory
from conftest import BUILD
from fairness import ATTACKER, DEPTH, assert_counted, assert_unharmed, beside, reachable


class Charged(threading.Thread):
    """The peaks of what the kernel charges to a new control group: private memory, shared files,
    both, and all that is not in the page cache. A process that enters the group is in it, with its
    later children. inside: so does this process."""
    ROOT = "/sys/fs/cgroup/memory"

    def __init__(self, inside=True):
        super().__init__()
        self.path, self.over = f"{self.ROOT}/profpipe-test-{os.getpid()}", threading.Event()
        self.inside = inside
        self.shared = self.both = self.uncached = 0

    def look(self):
        with open(f"{self.path}/memory.stat") as f:
            of = dict(line.split() for line in f)
        with open(f"{self.path}/memory.usage_in_bytes") as f:
            used = int(f.read())
        shared, own, cache = (int(of[key]) for key in ("shmem", "rss", "cache"))
        self.shared, self.both = max(self.shared, shared), max(self.both, shared + own)
        self.uncached = max(self.uncached, used - cache + shared)

    def run(self):
        while not self.over.wait(0.05):
            self.look()

    @staticmethod
    def move(path):
        with open(f"{path}/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))

    def enter(self):
        self.move(self.path)

    def __enter__(self):
        os.mkdir(self.path)
        if self.inside:
            self.enter()
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        if self.inside:
            self.move(self.ROOT)
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
                break
            time.sleep(0.1)


def left_behind():
    """Workers that outlived their prof-bpf."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat") as f:
                stat = f.read()
            if "(prof-bpf-open)" in stat and stat.rsplit(")", 1)[1].split()[1] == "1":
                found.add(pid)
    return found


@pytest.fixture(scope="module")
def kit():
    with new_kit() as k:
        yield k


def test_files_that_are_never_served_cost_others_no_row(tmp_path, chain, kit):
    reachable(tmp_path)
    before = left_behind()
    with mute_files(kit, [ATTACKER]):
        got = beside(tmp_path, chain)
        assert_unharmed(got)
        assert_counted(got, "mute", ["no-process", "no-rows", "rows-pending"])
        # The run ends in time: nothing in prof-bpf waits for the server.
        assert got.summary["duration_s"] < 7
        assert "does not end" not in got.stderr, got.stderr
        assert "no longer waiting" not in got.stderr, got.stderr
    # The hanging workers end when the server does.
    until = time.monotonic() + 10
    while left_behind() - before and time.monotonic() < until:
        time.sleep(0.1)
    assert not left_behind() - before


def test_holes_of_files_in_memory_take_no_memory(tmp_path, chain, kit):
    built = chain(DEPTH)  # the compiler's memory is not the run's
    with sparse_memory(kit, [ATTACKER]):
        with Charged() as charged:
            got = beside(tmp_path, lambda _: built, options=["--memory-limit", "128M"])
        peak = got.summary["cost"]["memory_peak_bytes"]
        print(charged.shared >> 20, charged.both >> 20, peak >> 20)
        assert_unharmed(got)
        assert_counted(got, "sparse", ["no-process", "no-rows", "rows-pending"])
        assert charged.shared < 32 << 20
        # The test and the victim are also in the group.
        assert charged.both < 128 << 20 and peak < 128 << 20


def test_the_summary_tells_the_memory_that_the_kernel_charges(tmp_path):
    """The summary counts a file's pages by share, and the kernel those that the run read first. The
    kernel also counts stacks of threads, page tables and the like."""
    out = tmp_path / "summary.json"
    with Charged(inside=False) as charged:
        subprocess.run([f"{BUILD}/profpipe", "record", "-q", "-d", "6", "-o", tmp_path / "x.folded",
                        "--summary", out], check=True, preexec_fn=charged.enter)
    with open(out) as f:
        cost = json.load(f)["cost"]
    told = cost["memory_peak_bytes"]
    print(charged.both, charged.uncached, told, cost)
    assert told > 0.9 * (charged.both + cost["map_bytes"])
    assert 0.85 * charged.uncached < told < 1.4 * charged.uncached
