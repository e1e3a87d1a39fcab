# SPDX-License-Identifier: Apache-2.0
"""Debian's kernels, old and new, in an emulated machine: their verifiers accept each program, the
walker is correct, and profpipe works as on this host."""
import concurrent.futures
import contextlib
import functools
import itertools
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
from recordings import messages  # noqa: E402
from toys import Walked  # noqa: E402

CACHE = "build/vm"
VERIFIER_LIMIT = 1_000_000
TOYS = ("program", "toyjit-loop")
TOOLS = ("profpipe", "prof-bpf", "prof-deltas", "prof-symd", "prof-dump", "prof-export",
         "tests/walk-live", "tests/late", "tests/symd-peer", "tests/load-programs", "toy/live",
         *(f"toy/{program}" for program in TOYS))
DEPTH = 30
CONTAINER = "0123456789abcdef" * 4
AWAY_SECONDS, LONGEST_REST = 6, 4
# A program that rests leaves the cpus, which are emulated, to the tools and to the other machine.
SCRIPT = """
import sys, time
rest = len(sys.argv) > 1
def inner(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def middle(n): return inner(n) + 1
def outer(n): return middle(n) + 1
while True:
    outer(2000)
    if rest: time.sleep(0.05)
"""

HOG = """
held = []
while True:
    held.append(b"x" * (1 << 22))
"""
# A recording that goes on until told to stop, however slow the machine is. While it samples,
# something happens to the host; a program runs after that.
DURING = """
python3 -S -E /test/script.py rest &
profpipe record -v -F 199 {options} --summary /out/{name}.json 2>/out/{name}.log & run=$!
until grep -qE 'sampling has begun|^profpipe: error' /out/{name}.log; do sleep 0.1; done
sleep 2
{what}
{then}
kill -INT $run
wait $run
"""


def during(name, what, options="-f text -o /out/{name}.text", then=f"chain{DEPTH} 2"):
    return DURING.format(name=name, what=what, then=then, options=options.format(name=name))


OLDEST, NEWEST, ALL = "5.10", kernels.NEWEST, kernels.WANTED

# The steps in the guest, one after the other: name, seconds at most, and the kernels, one where no
# difference is expected. A step that waits for something slow is repeated with more time.
LIVE = """
{program} >/dev/null & p=$!
sleep 0.5
walk-live $p 1 199
"""
STEPS = [
    ("load", 120, ALL, "ulimit -l unlimited; load-programs"),
    ("doctor", 300, ALL, "profpipe doctor --json >/out/doctor.json; cat /out/doctor.json"),
    ("late-exec", 150, ALL, "late exec"),
    ("late-call", 150, ALL, "late call"),
    ("live-chain", 150, ALL, LIVE.format(program=f"chain{DEPTH} 60")),
    ("live-thread", 150, ALL, LIVE.format(program=f"chain{DEPTH} 60 thread")),
    ("live-bash", 150, (OLDEST, NEWEST),
     LIVE.format(program="bash -c 'while :; do x=$((x+1)); y=${x//1/2}; done'")),
    ("live-python", 150, ALL, LIVE.format(program="python3 -S -E /test/script.py")),
    # Toy runtimes: walks in the kernel, and deferred ones, for which the toy JIT's program fetches.
    ("toys", 150, ALL,
     f"live -f 199 -n 30 -w 10000 -d libc.so {' 60 200000 -- '.join(TOYS)} 60 200000"),
    ("dump", 150, ALL, f"chain{DEPTH} 60 & sleep 0.5; for i in 1 2 3 4; do prof-dump $!; done"),
    ("record", 400, ALL, f"""
        chain{DEPTH} 600 thread & python3 -S -E /test/script.py rest &
        for d in 5 15 45; do
            profpipe record -F 29 -d $d -o /out/host.folded --summary /out/host.json || exit 8
            grep -q 'f1;f2;f3' /out/host.folded &&
                grep -q 'outer;.*middle;.*inner' /out/host.folded && exit 0
        done
        exit 1"""),
    ("command", 200, ALL, """
        for s in 0.3 1 3; do
            profpipe record -F 499 -o /out/command.folded --summary /out/command.json -- \\
                sh -c "for i in 1 2 3 4 5 6 7 8; do chain10 $s; done; true" || exit 8
            test "$(grep -c '^chain10;.*;f1;' /out/command.folded)" -gt 8 && exit 0
        done
        exit 1"""),
    # All targets at once, and what a pid namespace sees. Repeated until a slow machine has samples.
    ("targets", 200, ALL, f"""
        mkdir /tmp/cgroups && mount -t cgroup2 none /tmp/cgroups || exit 9
        mkdir -p /tmp/cgroups/in/below /tmp/cgroups/in/out /tmp/cgroups/out
        for n in in out pid late; do cp /test/chain10 /test/t$n; done
        into() {{ sh -c "echo \\$\\$ >/tmp/cgroups/$1/cgroup.procs; exec $2 600" & }}
        into in/below tin; into out tout; into in/out tout; into in chain10
        sh -c 'echo $$ >/tmp/cgroups/in/cgroup.procs; tpid 600 & tpid 600' & p=$!
        sleep 1
        for d in 4 12 36; do
            prof-bpf -F 199 -d $d --cgroup in --exclude-cgroup in/out --unit none \\
                --exclude-container 0123456789ab --exclude-pid $p --descendants --comm 't*' \\
                --user 0 --min-age 0.1 --cpu 0-1 -o /out/targets.raw & b=$!
            sleep 2
            mkdir /tmp/cgroups/in/docker-{CONTAINER}.scope 2>/dev/null &&
                into in/docker-{CONTAINER}.scope tlate
            wait $b || exit 8
            grep -q tin /out/targets.raw && exit 0
        done
        exit 1"""),
    ("namespace", 200, ALL, """
        chain30 600 &
        for d in 2 8 32; do
            unshare -p -f --mount-proc sh -c "chain10 600 & p=\\$!; prof-bpf -F 199 -d $d \\
                -o /out/namespace.raw; r=\\$?; echo \\$p; kill -9 \\$p; exit \\$r" || exit 8
            grep -q chain10 /out/namespace.raw && exit 0
        done
        exit 1"""),
    # Events on a host while it is recorded. On cpus that come later, Debian's kernels let only
    # CAP_SYS_ADMIN open events, by default.
    ("allow", 10, ("6.12",), "echo 2 >/proc/sys/kernel/perf_event_paranoid"),
    # Cpu 1 goes with the suspend and comes back, and is not sampled any more.
    ("suspend", 300, ("6.1",), during(
        "suspend", "echo +8 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state || exit 9",
        then=f"taskset 1 chain{DEPTH} 2")),
    ("start", 200, ("6.1",), """
        date +%s
        chain10 600 & p=$!
        date +%s
        profpipe record -d 3 -p $p -o /out/start.prof
        echo $p
        symd-peer print </out/start.prof"""),
    ("cpus", 300, ("6.12",), during(
        "cpus", f"cd /sys/devices/system/cpu; "
        f"echo 0 >cpu1/online && sleep {AWAY_SECONDS} && echo 1 >cpu1/online || exit 9",
        then=f"taskset 2 chain{DEPTH} 2")),
    ("clock", 300, ("6.1",), during(
        "clock", "date -s @$(($(date +%s) + 3600)) && sleep 3 && "
        "date -s @$(($(date +%s) - 3600)) || exit 9")),
    ("memory", 300, ("6.1",), during("memory", """
        for t in $(pidof prof-symd); do echo 1000 >/proc/$t/oom_score_adj; done
        python3 -S -E /test/hog.py""", "-o /out/memory.folded")),
    # Root may have any number of descriptors, and the tools none.
    ("descriptors", 300, ("6.1",), during("descriptors", """
        max=$(cat /proc/sys/fs/file-max); cp /test/chain10 /test/later
        echo 10 >/proc/sys/fs/file-max
        later 60 &
        until grep -q 'no descriptor is left' /out/descriptors.log; do sleep 0.1; done
        echo $max >/proc/sys/fs/file-max""", "-o /out/descriptors.folded", "sleep 5")),
    # Sysctls that allow more than Debian's defaults, and then less and less.
    ("open", 150, ("6.1",), "cd /proc/sys/kernel; echo 0 >kptr_restrict; "
     "echo -1 >perf_event_paranoid; echo 0 >unprivileged_bpf_disabled; prof-bpf --check"),
    ("types", 150, ("6.12",), "mount -t tmpfs none /sys/kernel/btf; prof-bpf --check; "
     "profpipe record -d 1 -o /out/never.folded; r=$?; umount /sys/kernel/btf; exit $r"),
    ("sysctls", 150, ALL, "cd /proc/sys/kernel; echo 2 >kptr_restrict; "
     "echo 4 >perf_event_paranoid; echo 1 >unprivileged_bpf_disabled; prof-bpf --check; "
     "echo 0 >kptr_restrict"),
    ("memlock", 150, (OLDEST, "6.12"),
     "ulimit -l 64; capsh --drop=cap_sys_resource -- -c 'prof-bpf --check'"),
    ("few", 150, ("6.1",), "capsh --drop=cap_sys_admin,cap_sys_resource,cap_syslog,cap_sys_ptrace,"
     "cap_dac_read_search,cap_checkpoint_restore -- -c 'prof-bpf --check'"),
    ("integrity", 240, (OLDEST,), """
        echo integrity >/sys/kernel/security/lockdown
        chain10 600 &
        for d in 3 12 36; do
            profpipe record -d $d -o /out/integrity.folded || exit 8
            grep -q ';f1;' /out/integrity.folded && exit 0
        done
        exit 1"""),
    ("confidentiality", 150, ALL, "echo confidentiality >/sys/kernel/security/lockdown; "
     "prof-bpf --check; profpipe record -d 1 -o /out/never.folded"),
]
# What a kernel does against attacks takes a third of the time of an emulated machine, and changes
# nothing that profpipe sees. `make check-all` boots the kernels as Debian does.
BARE = " mitigations=off init_on_alloc=0"
# One kernel is locked down from its boot, and all of its steps work as elsewhere.
LOCKED = "6.12"


# `make check` runs the oldest kernel, which lacks most. `make check-all` also runs the others.
NEWER = tuple(series for series in ALL if series != OLDEST)
# Steps of `make check-all` only: others also walk a thread and programs without an interpreter.
WHOLE_ONLY = ("live-thread", "live-bash", "live-python", "doctor", "command", "targets",
              "namespace")


def machines_but(some, kernels_of_step=ALL):
    """For a test of a step that `make check` runs on all its kernels but these."""
    return pytest.mark.parametrize("machine", [
        pytest.param(series, marks=[pytest.mark.check_all] if series in some else [])
        for series in kernels_of_step], indirect=True)


on_the_oldest = machines_but(NEWER)


def on(name):
    """For a test of one step: with each kernel that it is run on."""
    return machines_but(NEWER, next(series for step, _, series, _ in STEPS if step == name))


def modules():
    """The files of Python's library that a script without imports needs."""
    code = ("import os, sys; print('\\n'.join({m.__file__ for m in "
            "list(sys.modules.values()) if getattr(m, '__file__', None)}))")
    return subprocess.run(["/usr/bin/python3", "-S", "-E", "-c", code], capture_output=True,
                          text=True, check=True).stdout.split()


def on_kernels(name, series, whole):
    """The kernels that a step runs on. whole: in `make check-all`."""
    if name in WHOLE_ONLY and not whole:
        return []
    return series if whole else [OLDEST]


def make_root(path, chain, whole):
    root = guest.Root()
    root.program("/bin/busybox")
    root.copy(f"{guest.HERE}/init", "/init", 0o755)
    # Modes as in packages. A profile of the host also names the tools, and their lines would keep
    # prof-symd busy, which is emulated.
    for tool in TOOLS:
        stripped = f"{path}-{os.path.basename(tool)}"
        subprocess.run(["strip", "-g", "-o", stripped, f"{BUILD}/{tool}"], check=True)
        root.program(stripped, f"/test/{os.path.basename(tool)}")
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
        root.copy(f"{os.path.dirname(program)}/.debug/chain{n}.debug",
                  f"/test/.debug/chain{n}.debug")
    root.put("/test/script.py", SCRIPT.encode())
    root.put("/test/hog.py", HOG.encode())
    # The kernel passes unknown parameters of its command line to the first process, as its
    # environment.
    root.put("/test/steps", "".join(
        f"case $series in {'|'.join(on)}) step {name} {seconds} {quoted(command)} ;; esac\n"
        for name, seconds, series, command in STEPS
        if (on := on_kernels(name, series, whole))).encode())
    root.write(path)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


class Results:
    """The results of one kernel's steps."""

    def __init__(self, series, version, files, seconds):
        self.series, self.version, self.files, self.seconds = series, version, files, seconds

    def text(self, name):
        return self.files[name].decode(errors="replace")

    def step(self, name):
        """Its exit status and what it wrote."""
        assert f"{name}.status" in self.files, (f"{self.version}: {name} did not run\n"
                                                f"{self.text('times')}")
        status = int(self.text(f"{name}.status"))
        assert status != 137, f"{self.version}: {name} did not end in time\n{self.text('times')}"
        return status, self.text(f"{name}.out"), self.text(f"{name}.err")

    def good(self, name):
        status, out, err = self.step(name)
        assert status == 0, f"{self.version}: {name}: {status}\n{out}\n{err}"
        return out

    def stacks(self, name):
        return [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1]))
                for line in self.text(name).splitlines()]

    def checks(self, name):
        """The checks of prof-bpf --check: the verdict and the text of each."""
        out = self.step(name)[1]
        return {m[1].strip(): (m[2], m[3])
                for m in re.finditer(r"^(.{26})(fine|degraded|fatal) +(.*)$", out, re.M)}


@pytest.fixture(scope="module")
def machines(chain, tmp_path_factory, request):
    """By series, the future results of a machine with such a kernel."""
    folder = tmp_path_factory.mktemp("vm")
    archive = functools.lru_cache(None)(lambda: kernels.Archive(CACHE))
    whole = any(item.get_closest_marker("check_all") for item in request.session.items)
    make_root(f"{folder}/initramfs", chain, whole)

    def one(series):
        kernel, version = archive().fetch(series)
        words = (f"series={series}{' lockdown=integrity' if series == LOCKED else ''}"
                 f"{'' if whole else BARE}")
        return Results(series, version,
                       *guest.run(kernel, f"{folder}/initramfs", f"{folder}/{series}", words))

    # Each has two cpus. With fewer, the tools miss deadlines.
    at_once = max(1, os.cpu_count() // 2)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        wanted = {item.callspec.params["machine"] for item in request.session.items
                  if "machine" in getattr(item, "fixturenames", ())}
        with contextlib.suppress(kernels.KernelError):
            archive()
        # Kernels with most steps begin first.
        yield {series: pool.submit(one, series) for series in (OLDEST, *reversed(NEWER))
               if series in wanted}


@pytest.fixture
def machine(request, machines):
    return machines[request.param].result()


@on_the_oldest
def test_every_program_is_taken_by_the_verifier(machine):
    verified = dict(line.split()[:2] for line in machine.good("load").splitlines()
                    if len(line.split()) == 3)
    print(f"Linux {machine.version}: {machine.seconds:.0f} s in all; verified:",
          ", ".join(f"{name} {n}" for name, n in verified.items()))
    assert {"on_tick", "on_walk", "on_fork", "on_exec", "on_python", "on_walk/raw_tp",
            "on_python/raw_tp"} <= set(verified), verified
    assert all(0 < int(n) < VERIFIER_LIMIT / 6 for n in verified.values()), verified


@pytest.mark.check_all
@on_the_oldest
def test_doctor_finds_nothing_fatal_and_gets_samples(machine):
    got = json.loads(machine.good("doctor"))
    checks = {c["name"]: c for c in got["checks"]}
    assert not [c for c in got["checks"] if c["verdict"] == "fatal"]
    # The emulation has no hardware counters, and Linux 5.10 has no Landlock; everything else is in
    # order.
    degraded = {c["name"] for c in got["checks"] if c["verdict"] == "degraded"}
    missing = {"cells"} if machine.series == OLDEST else set()
    assert degraded - {"perf events"} == {"perf_event_paranoid"} | missing, got
    paranoid = checks["perf_event_paranoid"]
    assert paranoid["found"].startswith("3; requires CAP_SYS_ADMIN")
    assert "come online later" in paranoid["lost"]
    assert "TCG" in checks["virtual machine"]["found"]
    no_landlock = "no Landlock" in checks["cells"]["found"]
    assert no_landlock == (machine.series == OLDEST), checks["cells"]
    assert checks["lockdown"]["found"] == ("none [integrity] confidentiality" if machine.series
                                           == LOCKED else "[none] integrity confidentiality")
    assert ("apparmor" in checks["LSM"]["found"]
            and checks["LSM"]["found"].endswith("own label: unconfined")), checks["LSM"]
    assert checks["tracefs"]["found"] == "not mounted; not needed"
    test = got["self_test"]
    assert (test["samples"] > 0 and test["complete"] > 0 and test["kernel_named"] > 0
            and test["user_named"] > 0), test


def check_live(machine, program):
    out = machine.good(f"live-{program}")
    figures, complete = re.search(r"samples (\d+) frames (\d+) kernel \d+ deepest (\d+)",
                                  out), re.search(r"^complete (\d+)", out, re.M)
    assert figures and complete, out
    samples = int(figures[1])
    assert samples > 20 and samples - int(complete[1]) <= 1 + samples / 50, out
    return int(figures[3])


@pytest.mark.parametrize("what", ["exec", "call"])
@on_the_oldest
def test_a_sample_is_never_walked_with_anothers_mappings(machine, what):
    machine.good(f"late-{what}")


@on_the_oldest
def test_stacks_of_a_program_are_complete(machine):
    assert check_live(machine, "chain") >= DEPTH


@pytest.mark.check_all
@on_the_oldest
def test_stacks_of_a_thread_are_complete(machine):
    assert check_live(machine, "thread") >= DEPTH


@pytest.mark.check_all
@on_the_oldest
def test_stacks_of_an_interpreter_are_complete(machine):
    check_live(machine, "python")


@pytest.mark.check_all
@on("live-bash")
def test_stacks_of_a_shell_are_complete(machine):
    check_live(machine, "bash")


@on_the_oldest
def test_stacks_of_toy_runtimes_are_exact(machine):
    """Walked in the kernel, and deferred."""
    out = machine.good("toys")
    for n, (program, deferred) in enumerate(itertools.product(TOYS, (False, True))):
        got = Walked(out, n, f"{BUILD}/toy/{program}")
        print(f"{program}, {'deferred' if deferred else 'walked'}: {got.samples} samples")
        # A machine this slow may leave no room for all the memory that a deferred walk needs.
        got.check(30, native=1)
        assert got.figures["deferred"] == (got.samples if deferred else 0), got.figures


@on_the_oldest
def test_a_stopped_process_is_dumped_with_names(machine):
    out = machine.good("dump")
    # One of them is sampled within the chain, and now and then where it reads the clock.
    assert " f1 " in out and " main " in out and "…" not in out, out


@on_the_oldest
def test_a_recording_of_the_host_has_stacks_and_names(machine):
    machine.good("record")
    stacks = machine.stacks("host.folded")
    summary = json.loads(machine.text("host.json"))
    # The stack of interrupted code continues in the kernel.
    users = [[f for f in s if not f.endswith("_[k]")] for s, _ in stacks if s[0] == f"chain{DEPTH}"]
    whole = [s for s in users if re.fullmatch(r"f\d+", s[-1])]
    assert any("start_thread" in s[1] or "thread" in s or "clone" in s[1]
               for s in whole), stacks[:20]
    chained = [s[s.index("f1"):] for s in whole if "f1" in s]
    assert chained, chained
    # On a machine this slow, some names may come too late, which the summary then tells.
    late = (f"[chain{DEPTH}+0x",) if summary["unnamed"] else ()
    wrong = [c for c in chained
             if not all(f == f"f{i}" or f.startswith(late) for i, f in enumerate(c, 1))]
    assert not wrong, (wrong[:5], len(wrong), len(chained), summary)
    assert any(any("outer" in f for f in s) and any("inner" in f for f in s)
               for s, _ in stacks if s[0].startswith("python")), stacks[:20]
    assert any(f.endswith("_[k]") for s, _ in stacks for f in s)
    assert summary["samples"] > 100, summary


@pytest.mark.check_all
@on_the_oldest
def test_processes_are_followed_from_their_first_moment(machine):
    machine.good("command")
    stacks = machine.stacks("command.folded")
    summary = json.loads(machine.text("command.json"))
    assert summary["processes"] >= 9, summary
    assert sum(n for s, n in stacks if s[0] == "chain10" and "f1" in s) > 8, stacks


def sampled_in(machine, name):
    """Of a raw stream: the processes that have samples, as [name, pid, host's pid]."""
    found = list(messages(machine.files[f"{name}.raw"]))
    processes = {f[0]: f + [0] * 13 for kind, f in found if kind == 4}
    threads = {f[0]: f[1] for kind, f in found if kind == 6}
    return {(of[5][0].decode(), of[1], of[12])
            for kind, f in found if kind == 11 for of in [processes[threads[f[1]]]]}


@pytest.mark.check_all
@on_the_oldest
def test_targets_are_chosen_in_the_kernel(machine):
    machine.good("targets")
    assert {comm for comm, _, _ in sampled_in(machine, "targets")} == {"tin"}


@pytest.mark.check_all
@on_the_oldest
def test_a_pid_namespace_shows_only_its_own_pids(machine):
    pid = int(machine.good("namespace").split()[-1])
    found = sampled_in(machine, "namespace")
    assert ("chain10", pid) in {(comm, at) for comm, at, _ in found}, found
    assert "chain30" not in {comm for comm, _, _ in found}
    assert all(at < host for _, at, host in found), found


def samples_of(machine, name):
    """Of a recording as text: (program, cpu, second of the machine's clock) of each sample."""
    return [(m[1], int(m[2]), float(m[3]))
            for m in re.finditer(r"^(\S+) +\d+/\d+ \[(\d+)\] +([\d.]+): ",
                                 machine.text(f"{name}.text"), re.M)]


def check_during(machine, name):
    """Checks that sampling went on to the end, with the tools that it began with. Returns its
    samples in their order, and its summary."""
    status, _, err = machine.step(name)
    said, summary = machine.text(f"{name}.log"), json.loads(machine.text(f"{name}.json"))
    assert status == 0, f"{err}\n{said}"
    assert summary["restarts"] == {} and summary["unsampled_s"] == 0, said
    samples = samples_of(machine, name)
    assert any(comm == f"chain{DEPTH}" for comm, _, _ in samples), said
    times = sorted(t for _, _, t in samples)
    # A program spins all the while: the samples' clock neither stands still nor jumps.
    assert max(b - a for a, b in zip(times, times[1:])) < LONGEST_REST, said
    assert abs(times[-1] - times[0] - summary["duration_s"]) < 2 * LONGEST_REST, (
        times[0], times[-1], summary)
    return samples, summary


@on("suspend")
def test_a_host_that_sleeps_is_sampled_while_awake_and_its_sleep_shown(machine):
    _, summary = check_during(machine, "suspend")
    assert 1 < summary["suspended_s"] < 9, summary
    assert "the host was suspended for " in machine.text("suspend.log")


@on("start")
def test_start_times_are_right_by_the_wall_clock_after_a_sleep(machine):
    out = machine.good("start")
    # Busybox's date has no fractions of a second.
    before, after, pid = map(int, re.findall(r"^\d+$", out, re.M)[:3])
    clocks = re.search(r"^hello .*mono_ns=(\d+) wall_ns=(\d+) boot_ns=(\d+)", out, re.M)
    mono, wall, boot = (int(n) for n in clocks.groups())
    assert boot - mono > 1e9, "it slept"
    start = int(re.search(rf"^process .*\bpid={pid} .*start_ns=(\d+)", out, re.M)[1])
    assert before - 0.1 < (wall - (boot - start)) / 1e9 < after + 1.1, (
        before, after, wall, boot, start)


@on("cpus")
def test_a_cpu_that_goes_is_not_missed_and_sampled_when_it_is_back(machine):
    samples, _ = check_during(machine, "cpus")
    later = {cpu for comm, cpu, _ in samples if comm == f"chain{DEPTH}"}
    assert later == {1}, later
    # While that cpu is away, the other one's samples continue, which check_during checks.
    of_it = sorted(t for _, cpu, t in samples if cpu == 1)
    assert max(b - a for a, b in zip(of_it, of_it[1:])) > AWAY_SECONDS - 1, "it was away"


@on("clock")
def test_a_clock_that_is_set_changes_no_time_of_a_recording(machine):
    _, summary = check_during(machine, "clock")
    assert summary["suspended_s"] == 0, summary


@on("memory")
def test_a_host_out_of_memory_costs_a_tool_and_not_the_recording(machine):
    status, _, err = machine.step("memory")
    said, summary = machine.text("memory.log"), json.loads(machine.text("memory.json"))
    assert status == 0, f"{err}\n{said}"
    assert re.search(r"prof-symd ended \(.*\), because memory ran out: .*; restarting it",
                     said), said
    assert summary["restarts"]["prof-symd"] >= 1, summary
    assert any(s[0] == f"chain{DEPTH}" for s, _ in machine.stacks("memory.folded")), said


@on("descriptors")
def test_missing_descriptors_are_reported_and_files_opened_later(machine):
    status, _, err = machine.step("descriptors")
    said = machine.text("descriptors.log")
    assert status == 0, f"{err}\n{said}"
    assert said.count("no descriptor is left to open files with") == 1, f"{err}\n{said}"
    assert any(s[0] == "later" and "f1" in s for s, _ in machine.stacks("descriptors.folded")), said


@on("open")
def test_permissive_sysctls_are_fine(machine):
    checks = machine.checks("open")
    names = ("kptr_restrict", "perf_event_paranoid", "unprivileged_bpf_disabled")
    assert [checks[c][1].split(";")[0] for c in names] == ["0", "-1", "0"], checks
    assert {c for c, (verdict, _) in checks.items() if verdict != "fine"} <= {"perf events"}, checks


@on("types")
def test_a_kernel_without_types_is_fatal_and_named(machine):
    status, _, err = machine.step("types")
    checks = machine.checks("types")
    assert checks["BTF"][0] == "fatal" and "CONFIG_DEBUG_INFO_BTF=y" in checks["BTF"][1], checks
    assert status == 1 and "BTF" in err.splitlines()[0] and "never.folded" not in machine.files, err


@on_the_oldest
def test_restrictive_sysctls_are_reported(machine):
    checks = machine.checks("sysctls")
    assert not [c for c, (verdict, _) in checks.items() if verdict == "fatal"], checks
    assert checks["perf_event_paranoid"][1].startswith("4;")
    assert checks["unprivileged_bpf_disabled"][1].startswith("1;")
    verdict, text = checks["kernel names"]
    # The iterator over kernel symbols exists from 6.0 on.
    if machine.series == OLDEST:
        assert verdict == "degraded" and "kptr_restrict=1" in text, checks
    else:
        assert verdict == "fine" and "iterator" in text, checks


@on("memlock")
def test_a_limit_of_locked_memory_is_reported_where_it_matters(machine):
    checks = machine.checks("memlock")
    verdict, text = checks["memlock"]
    assert text.startswith("64 KiB")
    if machine.series == OLDEST:
        assert verdict == "fatal" and "ulimit -l unlimited" in text, checks
    else:
        assert verdict == "fine" and checks["programs"][0] == "fine", checks


@on("few")
def test_missing_capabilities_are_reported(machine):
    """Where perf_event_paranoid is 4, as the step before left it, Debian's kernels want
    CAP_SYS_ADMIN."""
    checks = machine.checks("few")
    assert (checks["perf events"][0] == "fatal"
            and "sysctl kernel.perf_event_paranoid=2" in checks["perf events"][1]), checks
    assert (checks["capabilities"][0] == "degraded"
            and "CAP_SYS_PTRACE" in checks["capabilities"][1]), checks


@on("integrity")
def test_lockdown_for_integrity_takes_nothing_away(machine):
    machine.good("integrity")
    assert any("f1" in s for s, _ in machine.stacks("integrity.folded"))


@on_the_oldest
def test_lockdown_for_confidentiality_is_fatal_and_named(machine):
    status, _, err = machine.step("confidentiality")
    checks = machine.checks("confidentiality")
    assert (checks["lockdown"][0] == "fatal"
            and "lockdown=integrity" in checks["lockdown"][1]), checks
    assert (status == 1 and "lockdown" in err.splitlines()[0]
            and "never.folded" not in machine.files), err
