# SPDX-License-Identifier: Apache-2.0
"""Debian's kernels, old and new, in an emulated machine: that each program is taken by its verifier, that its walker is right, and that profpipe does there what it does here."""
import concurrent.futures
import contextlib
import functools
import json
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "vm"))
import guest  # noqa: E402
import kernels  # noqa: E402
from conftest import BUILD  # noqa: E402

AT_ONCE = 2
CACHE = "build/vm"
VERIFIER_LIMIT = 1_000_000
TOOLS = ("profpipe", "prof-bpf", "prof-deltas", "prof-symd", "prof-dump", "prof-export", "tests/walk-live", "tests/load-programs")
DEPTH = 30
SCRIPT = """
def inner(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def middle(n): return inner(n) + 1
def outer(n): return middle(n) + 1
while True: outer(2000)
"""

# What runs in the guest, one step after the other. A step that waits for something that the emulation is slow at is repeated with more time, until it is there.
LIVE = """
{program} >/dev/null & p=$!
sleep 0.5
walk-live $p 2 199
r=$?
kill -9 $p
exit $r
"""
STEPS = [
    ("load", 120, "ulimit -l unlimited; load-programs"),
    ("doctor", 300, "profpipe doctor --json"),
    ("live-chain", 150, LIVE.format(program=f"chain{DEPTH} 60")),
    ("live-thread", 150, LIVE.format(program=f"chain{DEPTH} 60 thread")),
    ("live-bash", 150, LIVE.format(program="bash -c 'while :; do x=$((x+1)); y=${x//1/2}; done'")),
    ("live-python", 150, LIVE.format(program="python3 -S -E /test/script.py")),
    ("dump", 150, f"chain{DEPTH} 60 & sleep 0.5; prof-dump $!; r=$?; kill -9 $!; exit $r"),
    ("record", 400, f"""
        chain{DEPTH} 600 thread & python3 -S -E /test/script.py &
        for d in 5 15 45; do
            profpipe record -d $d -o /out/host.folded --summary /out/host.json || exit 1
            grep -q 'f1;f2;f3' /out/host.folded && grep -q 'outer;.*middle;.*inner' /out/host.folded && exit 0
        done
        exit 1"""),
    ("command", 200, "profpipe record -F 499 -o /out/command.folded --summary /out/command.json -- sh -c 'for i in 1 2 3 4 5 6 7 8; do chain10 0.3; done; true'"),
    # Less than Debian's defaults allow, and more.
    ("sysctls", 150, "cd /proc/sys/kernel; echo 2 >kptr_restrict; echo 4 >perf_event_paranoid; echo 1 >unprivileged_bpf_disabled; prof-bpf --check; echo 0 >kptr_restrict"),
    ("memlock", 150, "ulimit -l 64; capsh --drop=cap_sys_resource -- -c 'prof-bpf --check'"),
    ("few", 150, "capsh --drop=cap_sys_admin,cap_sys_resource,cap_syslog,cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore -- -c 'prof-bpf --check'"),
    ("integrity", 240, "echo integrity >/sys/kernel/security/lockdown; for t in 3 12 36; do profpipe record -o /out/integrity.folded -- sh -c \"chain10 $t; true\"; grep -q ';f1;' /out/integrity.folded && exit 0; done; exit 1"),
    ("confidentiality", 150, "echo confidentiality >/sys/kernel/security/lockdown; prof-bpf --check; profpipe record -d 1 -o /out/never.folded"),
]


def modules():
    """The files of Python's library that a script needs which imports nothing."""
    code = "import os, sys; print('\\n'.join({m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)}))"
    return subprocess.run(["/usr/bin/python3", "-S", "-E", "-c", code], capture_output=True, text=True, check=True).stdout.split()


def make_root(path, chain):
    root = guest.Root()
    root.program("/bin/busybox")
    root.copy(f"{guest.HERE}/init", "/init", 0o755)
    for tool in TOOLS:
        root.program(f"{BUILD}/{tool}", f"/test/{os.path.basename(tool)}")
    for program in ("/bin/bash", "/sbin/capsh"):
        root.program(program)
    python = os.path.realpath("/usr/bin/python3")
    root.program(python)
    root.link("/usr/bin/python3", python)
    for file in modules():
        root.copy(file)
        if file.endswith("/os.py"):
            root.folder(os.path.join(os.path.dirname(file), "lib-dynload"))
    for n in (10, DEPTH):
        program = chain(n)
        root.program(program, f"/test/chain{n}")
        root.copy(f"{os.path.dirname(program)}/.debug/chain{n}.debug", f"/test/.debug/chain{n}.debug")
    root.put("/test/script.py", SCRIPT.encode())
    root.put("/test/steps", "".join(f"step {name} {seconds} {quoted(command)}\n" for name, seconds, command in STEPS).encode())
    root.write(path)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


class Results:
    """What one kernel's steps left."""

    def __init__(self, series, version, files, seconds):
        self.series, self.version, self.files, self.seconds = series, version, files, seconds

    def text(self, name):
        return self.files[name].decode(errors="replace")

    def step(self, name):
        """Its exit status and what it wrote."""
        assert f"{name}.status" in self.files, f"{self.version}: {name} did not run\n{self.text('times')}"
        status = int(self.text(f"{name}.status"))
        assert status != 137, f"{self.version}: {name} did not end in time\n{self.text('times')}"
        return status, self.text(f"{name}.out"), self.text(f"{name}.err")

    def good(self, name):
        status, out, err = self.step(name)
        assert status == 0, f"{self.version}: {name}: {status}\n{out}\n{err}"
        return out

    def stacks(self, name):
        return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])) for line in self.text(name).splitlines()]

    def checks(self, name):
        """What prof-bpf --check says: of each check its verdict and its text."""
        out = self.step(name)[1]
        return {m[1].strip(): (m[2], m[3]) for m in re.finditer(r"^(.{26})(fine|degraded|fatal) +(.*)$", out, re.M)}


@pytest.fixture(scope="module")
def machines(chain, tmp_path_factory, request):
    """By series, what becomes of a machine with such a kernel. Two are under way at once."""
    folder = tmp_path_factory.mktemp("vm")
    archive = functools.lru_cache(None)(lambda: kernels.Archive(CACHE))
    make_root(f"{folder}/initramfs", chain)

    def one(series):
        kernel, version = archive().fetch(series)
        return Results(series, version, *guest.run(kernel, f"{folder}/initramfs", f"{folder}/{series}"))

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        wanted = {item.callspec.params["machine"] for item in request.session.items if "machine" in getattr(item, "fixturenames", ())}
        with contextlib.suppress(kernels.KernelError):
            archive()
        yield {series: pool.submit(one, series) for series in kernels.WANTED if series in wanted}


@pytest.fixture(params=kernels.WANTED)
def machine(request, machines):
    return machines[request.param].result()


def test_every_program_is_taken_by_the_verifier(machine):
    verified = dict(line.split()[:2] for line in machine.good("load").splitlines() if len(line.split()) == 3)
    print(f"Linux {machine.version}: {machine.seconds:.0f} s in all; verified:", ", ".join(f"{name} {n}" for name, n in verified.items()))
    assert {"on_tick", "on_fork", "on_exec", "on_python"} <= set(verified), verified
    assert all(0 < int(n) < VERIFIER_LIMIT / 10 for n in verified.values()), verified


def test_doctor_finds_nothing_fatal_and_gets_samples(machine):
    got = json.loads(machine.good("doctor"))
    checks = {c["name"]: c for c in got["checks"]}
    assert not [c for c in got["checks"] if c["verdict"] == "fatal"]
    # The emulation has no hardware counters; all else is as it should be.
    assert {c["name"] for c in got["checks"] if c["verdict"] == "degraded"} <= {"perf events"}, got
    assert "TCG" in checks["virtual machine"]["found"]
    test = got["self_test"]
    assert test["samples"] > 0 and test["complete"] > 0 and test["kernel_named"] > 0 and test["user_named"] > 0, test


@pytest.mark.parametrize("program", ["chain", "thread", "bash", "python"])
def test_stacks_of_a_program_are_complete(machine, program):
    out = machine.good(f"live-{program}")
    figures, complete = re.search(r"samples (\d+) frames (\d+) kernel \d+ deepest (\d+)", out), re.search(r"^complete (\d+)", out, re.M)
    assert figures and complete, out
    samples = int(figures[1])
    assert samples > 20 and samples - int(complete[1]) <= 1 + samples / 50, out
    if program in ("chain", "thread"):
        assert int(figures[3]) >= DEPTH, out


def test_a_stopped_process_is_dumped_with_names(machine):
    out = machine.good("dump")
    assert " f1 " in out and " main " in out and "…" not in out, out


def test_a_recording_of_the_host_has_stacks_and_names(machine):
    machine.good("record")
    stacks = machine.stacks("host.folded")
    summary = json.loads(machine.text("host.json"))
    whole = [s for s, _ in stacks if s[0] == f"chain{DEPTH}" and s[-1].startswith("f")]
    assert any("start_thread" in s[1] or "thread" in s or "clone" in s[1] for s in whole), stacks[:20]
    chained = [s[s.index("f1"):] for s in whole if "f1" in s]
    assert chained and all(c == [f"f{i}" for i in range(1, len(c) + 1)] for c in chained), chained[:5]
    assert any(any("outer" in f for f in s) and any("inner" in f for f in s) for s, _ in stacks if s[0].startswith("python")), stacks[:20]
    assert any(f.endswith("_[k]") for s, _ in stacks for f in s)
    assert summary["samples"] > 100, summary


def test_processes_are_followed_from_their_first_moment(machine):
    machine.good("command")
    stacks = machine.stacks("command.folded")
    summary = json.loads(machine.text("command.json"))
    assert summary["processes"] >= 9, summary
    assert sum(n for s, n in stacks if s[0] == "chain10" and "f1" in s) > 8, stacks


def test_what_sysctls_forbid_is_told(machine):
    checks = machine.checks("sysctls")
    assert not [c for c, (verdict, _) in checks.items() if verdict == "fatal"], checks
    assert checks["perf_event_paranoid"][1].startswith("4;") and checks["unprivileged_bpf_disabled"][1].startswith("1;")
    verdict, text = checks["kernel names"]
    # The iterator over kernel symbols is there from 6.0 on.
    if machine.series == "5.10":
        assert verdict == "degraded" and "kptr_restrict=1" in text, checks
    else:
        assert verdict == "fine" and "iterator" in text, checks


def test_memory_that_may_not_be_locked_is_told_where_it_matters(machine):
    checks = machine.checks("memlock")
    verdict, text = checks["memlock"]
    assert text.startswith("64 KiB")
    if machine.series == "5.10":
        assert verdict == "fatal" and "ulimit -l unlimited" in text, checks
    else:
        assert verdict == "fine" and checks["programs"][0] == "fine", checks


def test_few_capabilities_are_told(machine):
    """Where perf_event_paranoid is 4, as the step before left it, Debian's kernels want CAP_SYS_ADMIN."""
    checks = machine.checks("few")
    assert checks["perf events"][0] == "fatal" and "sysctl kernel.perf_event_paranoid=2" in checks["perf events"][1], checks
    assert checks["capabilities"][0] == "degraded" and "CAP_SYS_PTRACE" in checks["capabilities"][1], checks


def test_lockdown_for_integrity_takes_nothing_away(machine):
    machine.good("integrity")
    assert any("f1" in s for s, _ in machine.stacks("integrity.folded"))


def test_lockdown_for_confidentiality_is_fatal_and_named(machine):
    status, _, err = machine.step("confidentiality")
    checks = machine.checks("confidentiality")
    assert checks["lockdown"][0] == "fatal" and "lockdown=integrity" in checks["lockdown"][1], checks
    assert status == 1 and "lockdown" in err.splitlines()[0] and "never.folded" not in machine.files, err
