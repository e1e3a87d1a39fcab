# SPDX-License-Identifier: Apache-2.0
"""prof-bpf's view of processes and their mappings, without BPF: host-watch follows the host through
hard cases, and is compared with /proc."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))
WATCH = os.path.join(BUILD, "tests/host-watch")
PROGRAMS = os.path.join(BUILD, "tests/host-programs")
MAX_MAP_COUNT = "/proc/sys/vm/max_map_count"

KINDS = ["plain", "memfd", "split", "jit", "late-exec-right", "forks", "execs", "vfork",
         "leader-gone", "exec-by-thread", "threads", "odd-name"]


class Watch:
    def __init__(self, folder):
        self.list = str(folder / "pids")
        self.out = open(folder / "watch.out", "w+")
        self.process = subprocess.Popen([WATCH, "-d", "120", "-l", self.list], stdout=self.out,
                                        preexec_fn=lambda: os.nice(-10))
        self.wait_for("scanned")

    def text(self):
        with open(self.out.name) as f:
            return f.read()

    def wait_for(self, word, seconds=30):
        until = time.monotonic() + seconds
        while word not in self.text():
            assert time.monotonic() < until and self.process.poll() is None, self.text()
            time.sleep(0.02)

    def name(self, pids):
        """Tells host-watch which processes to compare."""
        with open(self.list, "w") as f:
            f.write("\n".join(map(str, pids)) + "\n")

    def comparisons(self):
        """The number of differences found for each."""
        return re.findall(r"^compared .* differences=(\d+)", self.text(), re.M)

    def wait_until_known(self, pids, seconds):
        """Compares until it knows all of these processes' mappings."""
        self.name(pids)
        until = time.monotonic() + seconds
        while "0" not in self.comparisons() and time.monotonic() < until:
            done = len(self.comparisons())
            self.process.send_signal(signal.SIGUSR1)
            while len(self.comparisons()) == done and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(1)

    def end(self, pids):
        self.name(pids)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        text = self.text()
        figures = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", text)}
        return text, figures


class Programs:
    """Starts programs in sessions of their own, and kills them with all their descendants."""

    def __init__(self):
        self.children, self.pids = [], []

    def start(self, command, wanted=1, **more):
        p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True,
                             **more)
        self.children.append(p)
        for _ in range(wanted):
            line = p.stdout.readline()
            assert line.startswith("ready "), (command, line)
            self.pids.append(int(line.split()[1]))
        return p

    def end(self):
        for p in self.children:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            p.wait()
            p.stdout.close()


@pytest.fixture
def programs():
    p = Programs()
    yield p
    p.end()


@pytest.fixture
def many_mappings():
    before = open(MAX_MAP_COUNT).read()
    if int(before) < 262144:
        open(MAX_MAP_COUNT, "w").write("262144")
    yield
    open(MAX_MAP_COUNT, "w").write(before)


SH_WAIT = "echo ready $$; while :; do sleep 60; done"


def start_all(programs, folder):
    for kind in KINDS:
        programs.start([PROGRAMS, kind], wanted=4 if kind == "forks" else 1)

    # An executable that is deleted while it runs, and one that another one replaces.
    for name, replaced in (("gone", False), ("replaced", True)):
        path = str(folder / name)
        shutil.copy(PROGRAMS, path)
        programs.start([path, "plain"])
        os.unlink(path)
        if replaced:
            shutil.copy("/bin/true", path)

    programs.start(["bash", "-c", "for i in $(seq 50); do /bin/true; (exit 0); done; " + SH_WAIT])
    programs.start(["/usr/bin/perl", "-MPOSIX", "-MSocket", "-e",
                    "$| = 1; print \"ready $$\\n\"; sleep 1000"])
    programs.start(["/usr/bin/python3", "-c", "import ctypes, ctypes.util, os, ssl, sqlite3, time\n"
                    "for n in ('m', 'z', 'lzma', 'ncurses', 'stdc++'):\n"
                    "    p = ctypes.util.find_library(n)\n"
                    "    p and ctypes.CDLL(p)\n"
                    "print('ready', os.getpid(), flush=True)\ntime.sleep(1000)"])

    # A path with a line feed, a backslash and a suffix that resembles the kernel's mark of
    # deletion.
    odd = folder / "a\nb\\012 (deleted)"
    shutil.copy(PROGRAMS, odd)
    programs.start([str(odd), "split"])

    # A container's view: its own mounts, and a root of its own with a program that only it has.
    root = folder / "root"
    root.mkdir()
    shutil.copy(PROGRAMS, root / "private")
    libs = subprocess.run(["ldd", PROGRAMS], capture_output=True, text=True, check=True).stdout
    for lib in re.findall(r"(/\S+)", libs):
        to = root / lib.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(lib, to)
    programs.start(["unshare", "-m", "sh", "-c",
                    f"mount --bind {root} {root} && cd {root} && mkdir -p old proc && "
                    f"mount -t proc proc proc && pivot_root . old && exec /private split"])

    # Overlayfs: the inode in a record differs from the one that fstat reports.
    for f in ("lower", "upper", "work", "merged"):
        (folder / f).mkdir()
    shutil.copy(PROGRAMS, folder / "lower" / "p")
    programs.start(["unshare", "-m", "sh", "-c",
                    f"mount -t overlay overlay -o lowerdir={folder}/lower,"
                    f"upperdir={folder}/upper,workdir={folder}/work "
                    f"{folder}/merged && exec {folder}/merged/p split"])
    programs.start(["unshare", "-m", "sh", "-c",
                    f"mount -t tmpfs tmpfs {folder}/upper && cp {PROGRAMS} {folder}/upper/q && "
                    f"exec {folder}/upper/q split"])


def test_every_hard_case_equals_proc(tmp_path, programs):
    # Some programs start before host-watch, which finds them by its scan; the same start again
    # later, and it finds them by records.
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    start_all(programs, tmp_path / "before")
    watch = Watch(tmp_path)
    start_all(programs, tmp_path / "after")
    time.sleep(0.3)
    assert len(programs.pids) >= 40
    text, figures = watch.end(programs.pids)
    assert not [line for line in text.splitlines() if line.startswith("!")], text
    assert f"compared processes={len(programs.pids)} differences=0" in text, text
    assert figures["malformed"] == 0
    assert figures["lost"] == 0, text


def test_hundred_thousand_mappings_are_known_and_cost_little(tmp_path, programs, many_mappings):
    watch = Watch(tmp_path)
    p = programs.start([PROGRAMS, "many"], stderr=subprocess.PIPE)
    assert int(p.stderr.readline().split()[0]) == 100000
    p.stderr.close()
    # If they were read while they were being made, they are read again this much later. On a busy
    # machine that may happen more than once.
    time.sleep(1 + 100000 * 50e-6)
    watch.wait_until_known(programs.pids, 60)
    text, figures = watch.end(programs.pids)
    # On a busy machine the kernel drops records. Then the mappings of a process are read at its
    # next sample, and this one has none.
    assert watch.comparisons()[-1] == "0" or figures["lost"], text[:2000]
    assert figures["cpu_ms"] < 5000, text


def test_compilation_leaves_nothing_behind(tmp_path):
    watch = Watch(tmp_path)
    source = tmp_path / "a.c"
    source.write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <sys/stat.h>\n"
                      "int main(void) { return 0; }\n")
    for i in range(10):
        subprocess.run(["gcc", "-O2", "-o", str(tmp_path / "a"), str(source)], check=True)
        subprocess.run([str(tmp_path / "a")], check=True)
    time.sleep(3.5)
    text, figures = watch.end([os.getpid()])
    assert "differences=0" in text, text
    # gcc, cc1, as, collect2, ld and the program, ten times.
    assert figures["execs"] >= 60, text
    live = len([p for p in os.listdir("/proc") if p.isdigit()])
    assert figures["processes"] <= live + 20, text


def test_thousands_of_short_processes_are_all_seen_and_forgotten(tmp_path):
    watch = Watch(tmp_path)
    loop = ("import os\nfor i in range(5000):\n"
            "    os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n")
    subprocess.run(["/usr/bin/python3", "-c", loop], check=True)
    # Past the grace period.
    time.sleep(4)
    text, figures = watch.end([os.getpid()])
    assert figures["lost"] == 0, text
    assert figures["execs"] >= 5000, text
    live = len([p for p in os.listdir("/proc") if p.isdigit()])
    assert figures["processes"] <= live + 20, text
    assert figures["bytes"] < 4 << 20 and figures["peak"] < 16 << 20, text
    # 60 us for each process; twice that here, for machines that do other things at the same time.
    assert figures["cpu_ms"] < 5000 * 0.120, text
