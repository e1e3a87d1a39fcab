# SPDX-License-Identifier: Apache-2.0
"""Targets: which processes and cpus are sampled, by cgroup, container, unit, name, user, age and
pid; and that excluded processes cost no rows, no walk and no event. Each test has loads with a name
of its own, so that other programs of the host do not matter."""
import contextlib
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from conftest import BUILD, profpipe
from fairness import as_user, end
from recordings import messages
from running import NOBODY, Run

PROCESS, THREAD, SAMPLE, FIGURE = 4, 6, 11, 13
SPIN = "spin"
UNIFIED, OLD = "cgroup2", "cgroup"
CONTAINER = "0123456789abcdef" * 4
DAEMON = pwd.getpwnam("daemon").pw_uid
# Enough samples to decide, also on a busy machine.
HZ, SECONDS = "499", "0.5"
# A fifth of the time, so that several loads leave the cpus to the tools. Arguments are ignored.
SPINNER = r"""
#include <time.h>
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
int main(void)
{
	struct timespec rest = { 0, 8000000 };
	for (;; nanosleep(&rest, NULL))
		for (double end = now() + 0.002; now() < end;)
			for (volatile int i = 0; i < 1000; i++)
				;
}
"""


class Loads:
    """Programs that spin, each under a name that begins with `name`."""

    def __init__(self, folder, spinner):
        self.folder, self.name, self.running = folder, "t" + secrets.token_hex(3), []
        self.spinner = spinner
        folder.chmod(0o755)

    def path(self, suffix="", program=None):
        path = self.folder / (self.name + suffix)
        if not path.exists():
            shutil.copy(program or self.spinner, path)
            path.chmod(0o755)
        return path

    def start(self, suffix="", cgroup=None, script=SPIN, user=None, **kw):
        """A process with this name, in its cgroup and under its user from the beginning. script:
        for a shell; without it the process spins."""
        def enter():
            if cgroup:
                with open(f"{cgroup}/cgroup.procs", "w", encoding="ascii") as f:
                    f.write(str(os.getpid()))
            if user:
                os.setresuid(user, user, user)
        program = self.path(suffix, None if script == SPIN else "/bin/dash")
        p = subprocess.Popen([program, "-c", script], start_new_session=True, preexec_fn=enter,
                             **{"stdin": subprocess.DEVNULL, **kw})
        self.running.append(p)
        return p

    def end(self):
        for p in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            if p.stdin:
                p.stdin.close()


@pytest.fixture(scope="module")
def spinner(tmp_path_factory):
    program = tmp_path_factory.mktemp("targets") / "spinner"
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program], input=SPINNER, text=True,
                   check=True)
    return program


@pytest.fixture
def loads(tmp_path, spinner):
    found = Loads(tmp_path, spinner)
    yield found
    found.end()


def root_of(kind):
    """Where the unified tree of cgroups is mounted, or the one of the memory controller."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        for line in f:
            _, path, fs, options = line.split()[:4]
            if fs == kind and (kind == UNIFIED or "memory" in options.split(",")):
                return path
    return None


@pytest.fixture
def cgroups(loads):
    """Makes cgroups, by their paths below the root, and removes them."""
    made = []

    def make(path, kind=UNIFIED):
        root = root_of(kind)
        if not root:
            pytest.skip(f"no {kind} with the memory controller is mounted")
        at = root
        for part in path.split("/"):
            at = f"{at}/{part}"
            if at in made:
                continue
            os.makedirs(at, exist_ok=True)
            made.append(at)
        return at

    yield make
    loads.end()
    for path in sorted(made, key=len, reverse=True):
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(path)
            if not os.path.isdir(path):
                break
            time.sleep(0.02)


def field(fields, at, default=0):
    return fields[at] if at < len(fields) else default


def read(path):
    """Samples by the name and by the pid of their process, and the figures."""
    processes, threads, got = {}, {}, SimpleNamespace(comms={}, pids={}, cpus=set(), figures={},
                                                      processes={})
    for kind, f in messages(path.read_bytes()):
        if kind == PROCESS:
            processes[f[0]] = f
            got.processes[f[1]] = f
        elif kind == THREAD:
            threads[f[0]] = f[1]
        elif kind == SAMPLE:
            of = processes[threads[f[1]]]
            comm = of[5][0].decode()
            got.comms[comm] = got.comms.get(comm, 0) + 1
            got.pids[of[1]] = got.pids.get(of[1], 0) + 1
            got.cpus.add(field(f, 2))
        elif kind == FIGURE:
            got.figures[f[0][0].decode()] = field(f, 1)
    return got


@contextlib.contextmanager
def recording(tmp_path, *args):
    """prof-bpf in the background, once it samples; yields what it has recorded at its end."""
    out, got = tmp_path / "x.raw", SimpleNamespace()
    out.unlink(missing_ok=True)
    with subprocess.Popen([f"{BUILD}/prof-bpf", "-F", HZ, "-o", out, *map(str, args)],
                          stderr=subprocess.PIPE, text=True) as p:
        try:
            for _ in range(1500):
                if out.exists() and out.stat().st_size and b"sampling_since" in out.read_bytes():
                    break
                assert p.poll() is None, p.stderr.read()
                time.sleep(0.01)
            yield got
        finally:
            p.send_signal(signal.SIGINT)
            err = p.communicate(timeout=60)[1]
    assert p.returncode == 0, err
    vars(got).update(vars(read(out)), stderr=err)


def sampled(tmp_path, *args, names=1):
    """The names that prof-bpf samples in a second, or in a longer time if those were too few."""
    out = tmp_path / "x.raw"
    for seconds in (SECONDS, "4", "16"):
        p = subprocess.run([f"{BUILD}/prof-bpf", "-F", HZ, "-d", seconds, "-o", out,
                            *map(str, args)], capture_output=True, text=True, timeout=60)
        assert p.returncode == 0, p.stderr
        got = read(out)
        if len(got.comms) >= names:
            break
    return got


def comms(loads, got):
    """The suffixes of the loads that have samples; nothing else may have any."""
    assert all(c.startswith(loads.name) for c in got.comms), got.comms
    return {c[len(loads.name):] for c in got.comms}


# --- names and users ---

def test_a_name_chooses_and_one_with_a_star_chooses_all_that_begin_so(tmp_path, loads):
    for suffix in ("", "a", "ab"):
        loads.start(suffix)
    n = loads.name
    assert comms(loads, sampled(tmp_path, "--comm", n)) == {""}
    assert comms(loads, sampled(tmp_path, "--comm", n + "*", names=3)) == {"", "a", "ab"}
    assert comms(loads, sampled(tmp_path, "--comm", n + "a*", names=2)) == {"a", "ab"}
    assert comms(loads, sampled(tmp_path, "--comm", n, "--comm", n + "ab", names=2)) == {"", "ab"}


def test_an_excluded_name_wins_also_over_one_that_is_more_exact(tmp_path, loads):
    for suffix in ("", "a", "ab"):
        loads.start(suffix)
    n = loads.name
    got = sampled(tmp_path, "--comm", n + "*", "--exclude-comm", n + "a", names=2)
    assert comms(loads, got) == {"", "ab"} and got.figures["skipped"] > 0
    got = sampled(tmp_path, "--comm", n + "*", "--comm", n + "ab", "--exclude-comm", n + "a*")
    assert comms(loads, got) == {""}


def test_a_name_is_that_of_the_process_at_the_tick(tmp_path, loads):
    """A process that takes another name, by an exec or without one, is chosen by that one."""
    script = f"read x; exec {loads.path('b')} -c '{SPIN}'"
    p = loads.start("a", script=script, stdin=subprocess.PIPE)
    loads.start()
    with recording(tmp_path, "--comm", loads.name + "b") as got:
        p.stdin.write(b"\n")
        p.stdin.close()
        time.sleep(1.5)
    assert comms(loads, got) == {"b"} and p.pid in got.pids
    renames = ("import ctypes, time\nend, n = time.time() + 30, 0\n"
               "while time.time() < end:\n"
               "    n += 1\n"
               f"    ctypes.CDLL(None).prctl(15, b'{loads.name}%d' % (n % 2), 0, 0, 0)\n"
               "    until = time.time() + 0.1\n    while time.time() < until: pass\n")
    with subprocess.Popen(["/usr/bin/python3", "-c", renames]) as python:
        try:
            time.sleep(0.5)
            got = sampled(tmp_path, "--comm", loads.name + "0")
        finally:
            python.kill()
    assert python.pid in got.pids and got.figures["skipped"] > 0


def test_a_user_chooses_by_name_and_by_number(tmp_path, loads):
    loads.start("root")
    loads.start("daemon", user=DAEMON)
    loads.start("nobody", user=NOBODY)
    mine = ["--comm", loads.name + "*"]
    for user in ("daemon", str(DAEMON)):
        assert comms(loads, sampled(tmp_path, *mine, "--user", user)) == {"daemon"}
    assert comms(loads, sampled(tmp_path, *mine, "--exclude-user", str(DAEMON),
                                names=2)) == {"root", "nobody"}
    assert comms(loads, sampled(tmp_path, *mine, "--user", "daemon", "--user", "0",
                                "--exclude-user", "root")) == {"daemon"}


# --- cgroups ---

@pytest.mark.parametrize("kind", [UNIFIED, OLD])
def test_a_cgroup_chooses_all_below_it(tmp_path, loads, cgroups, kind):
    top = loads.name
    loads.start("out")
    loads.start("top", cgroups(top, kind))
    loads.start("below", cgroups(f"{top}/a/b", kind))
    loads.start("beside", cgroups(top + "x", kind))
    mine = ["--comm", loads.name + "*"]
    assert comms(loads, sampled(tmp_path, *mine, "--cgroup", f"/{top}",
                                names=2)) == {"top", "below"}
    assert comms(loads, sampled(tmp_path, *mine, "--cgroup", f"{top}/a/")) == {"below"}
    assert comms(loads, sampled(tmp_path, *mine, "--exclude-cgroup", top,
                                names=2)) == {"out", "beside"}
    assert comms(loads, sampled(tmp_path, *mine, "--cgroup", top,
                                "--exclude-cgroup", f"{root_of(kind)}/{top}/a")) == {"top"}


def test_an_excluded_cgroup_costs_no_row_no_walk_and_no_event(tmp_path, loads, cgroups):
    """The only loads whose names are given are in it, so all figures belong to excluded
    processes."""
    folder = cgroups(loads.name)
    for i in range(3):
        loads.start(str(i), folder)
    # It also starts programs, whose records arrive anyway.
    shutil.copy("/bin/true", loads.path("true"))
    loads.start("new", folder, script=f"while :; do {loads.path('true')}; done")
    with recording(tmp_path, "--comm", loads.name + "*", "--exclude-cgroup", loads.name) as got:
        time.sleep(1)
    f = got.figures
    assert not got.comms and not got.processes
    assert {k: f[k] for k in ("taken", "bpf_runs", "files_opened", "processes")} == {
        "taken": 0, "bpf_runs": 0, "files_opened": 0, "processes": 0}
    # Those of the vDSO, which are made at the start.
    assert f["rows_answered"] == 1 and f["skipped"] > 50


def test_a_process_that_moves_is_judged_by_where_it_is(tmp_path, loads, cgroups):
    inside, outside = cgroups(loads.name + "/in"), cgroups(loads.name + "/out")
    p = loads.start("moves", outside)
    with recording(tmp_path, "--cgroup", f"{loads.name}/in") as got:
        time.sleep(1)
    assert not got.comms
    with recording(tmp_path, "--cgroup", f"{loads.name}/in") as got:
        with open(f"{inside}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(p.pid))
        time.sleep(2)
    assert comms(loads, got) == {"moves"}


def test_a_cgroup_that_is_made_again_is_still_meant(tmp_path, loads, cgroups):
    """Like a restart of a service."""
    folder = cgroups(loads.name + "/again")
    with recording(tmp_path, "--cgroup", f"{loads.name}/again") as got:
        number = os.stat(folder).st_ino
        os.rmdir(folder)
        os.mkdir(folder)
        assert os.stat(folder).st_ino != number
        loads.start("a", folder)
        time.sleep(1)
    assert comms(loads, got) == {"a"}


POD = """
set -e
echo $$ >{pod}/cgroup.procs
exec unshare --cgroup --mount sh -ec '
umount -l {root}; mount -t cgroup2 none {root}
mkdir {root}/in
sh -c "echo \\$\\$ >{root}/in/cgroup.procs; exec {load} -c \\"{spin}\\"" & load=$!
trap "kill -9 $load" EXIT
sleep 0.2
{bpf} -F {hz} -d 2 -o {out} --cgroup in
{bpf} -d 1 -o {out}.none --cgroup {name}/pod/in || echo $?'
"""


def test_a_path_is_below_the_root_that_a_container_sees(tmp_path, loads, cgroups):
    pod, out = cgroups(loads.name + "/pod"), tmp_path / "x.raw"
    loads.start("out", pod)
    script = POD.format(pod=pod, root=root_of(UNIFIED), load=loads.path("in"), spin=SPIN,
                        bpf=f"{BUILD}/prof-bpf", hz=HZ, out=out, name=loads.name)
    p = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    cgroups(loads.name + "/pod/in")
    assert p.returncode == 0 and p.stdout == "1\n", p.stderr
    assert "there is no such cgroup" in p.stderr
    assert comms(loads, read(out)) == {"in"}


SHAPES = [f"docker/{CONTAINER}", f"system.slice/docker-{CONTAINER}.scope",
          f"machine.slice/libpod-{CONTAINER}.scope/container",
          f"kubepods/burstable/pod11111111-2222-3333-4444-555555555555/{CONTAINER}",
          f"kubepods-besteffort-pod1234.slice/cri-containerd-{CONTAINER}.scope",
          f"kubepods-pod11111111_2222_3333_4444_555555555555.slice:cri-containerd:{CONTAINER}",
          f"kubepods.slice/crio-{CONTAINER}.scope"]


# `make check` has the shortest and the longest; unit tests have more.
@pytest.mark.parametrize("shape", [
    pytest.param(shape, id=name, marks=[] if name in ("docker-v1", "kubernetes-v1") else
                 pytest.mark.check_all)
    for shape, name in zip(SHAPES, ("docker-v1", "docker", "podman", "kubernetes-v1", "containerd",
                                    "containerd-v1", "crio"))])
def test_a_container_is_known_by_its_id_before_and_after_it_starts(tmp_path, loads, cgroups,
                                                                   shape):
    shape = shape.replace(CONTAINER[:24], secrets.token_hex(12))
    whole = next(w for w in shape.replace("/", " ").replace("-", " ").replace(":", " ")
                 .replace(".", " ").split() if len(w) == 64)
    where = f"{loads.name}/{shape}"
    loads.start("other", cgroups(f"{loads.name}/{shape.replace(whole, CONTAINER[::-1])}"))
    mine = ["--comm", loads.name + "*"]
    with recording(tmp_path, *mine, "--container", whole[:12]) as got:
        loads.start("late", cgroups(where))
        time.sleep(1.5)
    assert comms(loads, got) == {"late"} and "no cgroup has this name yet" in got.stderr
    assert comms(loads, sampled(tmp_path, *mine, "--container", whole)) == {"late"}
    assert comms(loads, sampled(tmp_path, *mine, "--exclude-container", whole[:20])) == {"other"}


def test_containers_equal_those_of_otlp_before_and_after_their_start(tmp_path, loads, cgroups):
    """A monitor is outside of its container, and a pod's number is no id; a task of ECS has one."""
    whole, task = secrets.token_hex(32), secrets.token_hex(16)
    fargate = f"{task}-1234567890"
    names = {"a": f"docker-{whole}.scope", "b": f"libpod-conmon-{whole}.scope",
             "c": f"pod-{whole[:32]}.slice", "d": f"ecs/{task}/{fargate}", "e": f"x{whole}"}
    mine = ["--comm", loads.name + "*", "--container", whole[:12], "--container", fargate]
    with recording(tmp_path, *mine) as got:
        for name, path in names.items():
            loads.start(name, cgroups(f"{loads.name}/{path}"))
        time.sleep(1.5)
    assert comms(loads, got) == {"a", "d"}
    assert comms(loads, sampled(tmp_path, *mine)) == {"a", "d"}


def test_a_container_that_starts_later_can_be_excluded_from_its_first_event_on(tmp_path, loads,
                                                                               cgroups):
    loads.start("other")
    mine = ["--comm", loads.name + "*"]
    with recording(tmp_path, *mine, "--exclude-container", CONTAINER[:16]) as got:
        loads.start("late", cgroups(f"{loads.name}/docker-{CONTAINER}.scope"))
        time.sleep(1.5)
    assert comms(loads, got) == {"other"} and got.figures["skipped"] > 10


def test_a_unit_is_the_last_part_of_a_path(tmp_path, loads, cgroups):
    unit = loads.name + "-unit"
    where = cgroups(f"{loads.name}/system.slice/{unit}.service")
    loads.start("in", where)
    loads.start("out", cgroups(f"{loads.name}/system.slice/{unit}-2.service"))
    mine = ["--comm", loads.name + "*"]
    for name in (unit, unit + ".service"):
        assert comms(loads, sampled(tmp_path, *mine, "--unit", name)) == {"in"}
        assert comms(loads, sampled(tmp_path, *mine, "--exclude-unit", name)) == {"out"}
    with recording(tmp_path, *mine, "--unit", f"{unit}-3.service") as got:
        loads.start("late", cgroups(f"{loads.name}/{unit}-3.service"))
        time.sleep(1.5)
    assert comms(loads, got) == {"late"}


def test_kinds_must_all_match_and_cgroups_are_one_kind(tmp_path, loads, cgroups):
    unit = loads.name + ".service"
    loads.start("a", cgroups(f"{loads.name}/{unit}"))
    loads.start("b", cgroups(f"{loads.name}/docker/{CONTAINER}"), user=DAEMON)
    loads.start("c", cgroups(f"{loads.name}/c"), user=DAEMON)
    either = ["--unit", unit, "--container", CONTAINER[:12]]
    assert comms(loads, sampled(tmp_path, *either, names=2)) == {"a", "b"}
    assert comms(loads, sampled(tmp_path, *either, "--user", "daemon")) == {"b"}


# --- cpus, ages and pids ---

def test_only_the_cpus_of_a_list_have_samples(tmp_path, loads):
    if os.cpu_count() < 2:
        pytest.skip("the machine has one cpu")
    for cpu in (0, 1):
        p = loads.start(str(cpu))
        os.sched_setaffinity(p.pid, {cpu})
    got = sampled(tmp_path, "--comm", loads.name + "*", "--cpu", "1")
    assert comms(loads, got) == {"1"} and got.cpus == {1}
    assert sampled(tmp_path, "--comm", loads.name + "*", "--cpu", "0-1").cpus == {0, 1}


def test_a_process_is_sampled_once_it_is_old_enough(tmp_path, loads):
    loads.start("old")
    time.sleep(3)
    with recording(tmp_path, "--comm", loads.name + "*", "--min-age", "3") as got:
        loads.start("young")
        time.sleep(1)
    assert comms(loads, got) == {"old"}
    assert comms(loads, sampled(tmp_path, "--comm", loads.name + "*",
                                "--min-age", "0.5", names=2)) == {"old", "young"}


FAMILY = "{a} & read x; {b} -c '{c} & wait' & wait"


def family(loads):
    """The script of a process with a child and, once it is told to go on, a grandchild."""
    return FAMILY.format(a=loads.path("a"), b=loads.path("b", "/bin/dash"), c=loads.path("c"))


def test_descendants_are_those_of_now_and_those_to_come(tmp_path, loads):
    loads.start("other")
    top = loads.start("top", script=family(loads), stdin=subprocess.PIPE)
    time.sleep(0.5)
    with recording(tmp_path, "-p", top.pid, "--descendants") as got:
        top.stdin.write(b"\n")
        top.stdin.close()
        time.sleep(1)
    assert comms(loads, got) >= {"a", "c"} and "other" not in comms(loads, got)
    # Without the option, only the process itself, which rests.
    with recording(tmp_path, "-p", top.pid) as got:
        time.sleep(0.5)
    assert not comms(loads, got) & {"a", "c"}


def test_excluded_descendants_are_those_of_now_and_those_to_come(tmp_path, loads):
    loads.start("other")
    top = loads.start("top", script=family(loads), stdin=subprocess.PIPE)
    time.sleep(0.5)
    mine = ["--comm", loads.name + "*", "--exclude-pid", top.pid]
    with recording(tmp_path, *mine, "--descendants") as got:
        top.stdin.write(b"\n")
        top.stdin.close()
        time.sleep(1)
    assert comms(loads, got) == {"other"} and got.figures["skipped"] > 10
    assert comms(loads, sampled(tmp_path, *mine, names=3)) >= {"other", "a", "c"}


# --- pid namespaces ---

# Processes in a pid namespace of their own, with its /proc: one more level for each.
INSIDE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
REUSE = """
set -e
{load} -c '{spin}' & first=$!
{bpf} -F {hz} -o {out} --comm '{name}*' --exclude-pid $first & bpf=$!
until grep -q sampling_since {out} 2>/dev/null; do sleep 0.05; kill -0 $bpf; done
sleep 0.5
kill -9 $first; wait $first || true
echo $((first - 1)) >/proc/sys/kernel/ns_last_pid
{other} -c '{spin}' & second=$!
test $second = $first
sleep 1
kill -INT $bpf; wait $bpf
kill -9 $second
"""


def test_a_stranger_with_the_pid_of_an_excluded_process_is_sampled(tmp_path, loads):
    out = tmp_path / "x.raw"
    script = REUSE.format(load=loads.path("a"), other=loads.path("b"), spin=SPIN, hz=HZ, out=out,
                          name=loads.name, bpf=f"{BUILD}/prof-bpf")
    p = subprocess.run([*INSIDE, "sh", "-c", script], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    assert comms(loads, read(out)) == {"b"}


# A load in the viewer's namespace, and one in a namespace below it.
NESTED = """
{load} -c '{spin}' & here=$!
unshare --pid --fork --kill-child {other} -c '{spin}' & sleep 0.5
echo here $here
read x </proc/$!/task/$!/children; echo below $x
{bpf} -F {hz} -d 1.5 -o {out} {args} || exit 1
kill -9 $here $x
"""


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_viewer_in_a_namespace_sees_its_own_pids(tmp_path, loads, levels):
    out = tmp_path / "x.raw"
    loads.start("outside")
    script = NESTED.format(load=loads.path("here"), other=loads.path("below"), spin=SPIN, hz=HZ,
                           out=out, bpf=f"{BUILD}/prof-bpf", args=f"--comm '{loads.name}*'")
    p = subprocess.Popen([*INSIDE * levels, "sh", "-c", script], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, start_new_session=True)
    # The host's pids of both loads, by their names.
    host = {}
    for _ in range(600):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                    comm = f.read().strip()
                if comm.startswith(loads.name):
                    host[comm[len(loads.name):]] = int(pid)
        if len(host) == 3:
            break
        time.sleep(0.02)
    said, err = p.communicate(timeout=60)
    assert p.returncode == 0, err
    want = dict(line.split() for line in said.splitlines())
    got = read(out)
    # A process outside is neither sampled nor reported.
    assert comms(loads, got) == {"here", "below"}
    assert {int(want["here"]), int(want["below"])} == set(got.pids)
    process = got.processes[int(want["here"])]
    assert field(process, 11) == int(want["here"]) and field(process, 12) == host["here"]
    process = got.processes[int(want["below"])]
    assert field(process, 11) == 1 and field(process, 12) == host["below"]


def test_a_sidecar_records_whole_stacks_of_its_pod(tmp_path, loads, chain):
    """All of profpipe in the pid namespace, and -p with a pid as it is there."""
    out = tmp_path / "x.folded"
    script = f"""
        {chain(10)} 30 & p=$!
        {chain(10)} 30 &
        {BUILD}/profpipe record -F {HZ} -d 2 -p $p -o {out} --summary {tmp_path}/s.json
        r=$?; kill -9 $p $!; exit $r"""
    p = subprocess.run([*INSIDE * 2, "sh", "-c", script], capture_output=True, text=True,
                       timeout=90)
    assert p.returncode == 0, p.stderr
    lines = out.read_text().splitlines()
    whole = sum(int(line.rsplit(" ", 1)[1]) for line in lines if "main;descend;f1" in line)
    every = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
    assert every > 20 and whole > 0.5 * every, lines[:5]


# --- the launcher ---

def test_the_launcher_passes_targets_on_and_whole_stacks_come(tmp_path, loads, chain, cgroups):
    folder, program = cgroups(loads.name), loads.path("chain")
    shutil.copy(chain(10), program)
    loads.start("in", folder, script=f"exec {program} 40")
    loads.start("out", script=f"exec {program} 40")
    out = tmp_path / "x.folded"
    p = profpipe("record", "-F", HZ, "-d", "1", "-o", out, "--cgroup", loads.name, "--user", "root",
                 "--exclude-pid", os.getpid(), "--descendants", "--min-age", "0.01", "--cpu",
                 f"0-{os.cpu_count() - 1}", "--summary", tmp_path / "s.json")
    # Both are our descendants.
    assert p.returncode == 0 and "no samples: the chosen processes" in p.stderr, p.stderr
    summary = json.loads((tmp_path / "s.json").read_text())
    assert (summary["samples"], summary["lost"], summary["cost"]["bpf_runs"]) == (0, {}, 0)
    p = profpipe("record", "-F", HZ, "-d", "1", "-o", out, "--cgroup", loads.name, "--user", "root")
    assert p.returncode == 0, p.stderr
    lines = out.read_text().splitlines()
    assert lines and all(line.startswith(loads.name + "chain;") for line in lines)
    whole = [line for line in lines if "__libc_start_call_main;" in line]
    assert len(whole) > 0.5 * len(lines), lines[:5]


def test_a_program_that_starts_later_has_whole_stacks_from_its_first_sample_on(tmp_path, loads,
                                                                               chain):
    """It runs too briefly to be looked for in /proc by its samples. Its user is not root: the other
    programs of root, among them those of other tests, may need all of root's share."""
    program = loads.path("chain")
    shutil.copy(chain(10), program)
    out = tmp_path / "x.folded"
    with Run("-F", HZ, "-d", "4", "-o", out, "--exclude-comm", loads.name + "other",
             "--exclude-user", "nobody") as r:
        r.sampling()
        loads.start("sh", script=f"while :; do {program} 0.06; done", user=DAEMON)
        status, _, err = r.end()
    assert status == 0, err
    stacks = [line.rsplit(" ", 1) for line in out.read_text().splitlines()
              if line.startswith(loads.name + "chain;")]
    every = sum(int(n) for _, n in stacks)
    whole = sum(int(n) for stack, n in stacks if ";[truncated: " not in stack)
    in_main = sum(int(n) for stack, n in stacks if "__libc_start_call_main;" in stack)
    cut = [stack for stack, _ in stacks if ";[truncated: " in stack]
    print(f"{whole} of {every} samples are whole", err, *cut[:20], sep="\n")
    assert every > 50 and whole > 0.9 * every and in_main > 0, (whole, every, stacks[:5])


def test_a_prof_bpf_that_is_started_again_has_the_same_targets(tmp_path, loads, cgroups):
    folder = cgroups(loads.name)
    loads.start("in", folder)
    loads.start("out")
    gone = loads.start("gone")
    out = tmp_path / "x.folded"
    with Run("-F", HZ, "-d", "4", "-o", out, "--comm", loads.name + "*", "--exclude-cgroup",
             loads.name, "--exclude-pid", gone.pid) as r:
        tools = r.sampling()
        gone.kill()
        gone.wait()
        os.kill(tools["prof-bpf"], signal.SIGKILL)
        status, _, err = r.end()
    assert status == 0, err
    assert {line.split(";")[0] for line in out.read_text().splitlines()} == {loads.name + "out"}


# --- errors ---

NAMES = "0123456789abcdef"
REFUSED = [
    (["--cgroup", "no/such/group"], 1, "--cgroup: no/such/group: there is no such cgroup"),
    (["--exclude-cgroup", "nosuch"], 1, "--exclude-cgroup: nosuch: there is no such cgroup"),
    (["--cgroup", "../.."], 2, "--cgroup: ../..: not a path"),
    (["--cgroup", ""], 2, '--cgroup: "": not a path'),
    (["--container", "12345"], 2, "--container: 12345: not the id of a container"),
    (["--container", "0123456789xyz"], 2, "--container: 0123456789xyz: not the id"),
    (["--exclude-container", NAMES * 5], 2, "--exclude-container: "),
    (["--unit", "a/b"], 2, "--unit: a/b: not a unit"),
    (["--unit", ""], 2, '--unit: "": not a unit'),
    (["--comm", "a*b"], 2, "--comm: a*b: not a name"),
    (["--comm", ""], 2, '--comm: "": not a name'),
    (["--user", "no-such-user"], 1, "--user: no-such-user: there is no such user"),
    (["--user", "4294967295"], 2, "--user: 4294967295: no user"),
    (["--user", ""], 2, '--user: "": not a user'),
    (["--exclude-user", "-1"], 2, "--exclude-user: -1: not a user"),
    (["--exclude-pid", "4194304"], 1, "--exclude-pid: 4194304: there is no such process"),
    (["--exclude-pid", "x"], 2, "--exclude-pid: x: not a number"),
    (["--cpu", "1-"], 2, "--cpu: 1-: not a list of cpus"),
    (["--cpu", "3-1"], 2, "--cpu: 3-1: not a list"),
    (["--cpu", ""], 2, '--cpu: "": not a list'),
    (["--cpu", "0,8191"], 1, "--cpu: 8191: there is no such cpu"),
    (["--min-age", "0"], 2, "--min-age: 0: "),
    (["--min-age", "5x"], 2, "--min-age: 5x: "),
    (["--descendants"], 2, "--descendants: needs --pid or --exclude-pid"),
    (["--comm", "ab", "--exclude-comm", "a*"], 2, "--exclude-comm: a*: nothing is left of --comm"),
    (["--unit", "x.service", "--user", "0", "--exclude-user", "root"], 2,
     "--exclude-user: root: nothing is left of --user"),
    (["--pid", "1", "--exclude-pid", "1"], 2, "--exclude-pid: 1: nothing is left of --pid"),
    (["--comm", "x"] * 1025, 2, "--comm: x: too many targets; give 1024 at most"),
]


@pytest.mark.parametrize("args,status,said", REFUSED,
                         ids=[" ".join(r[0])[:40] for r in REFUSED])
def test_a_bad_target_is_refused_in_one_line(tmp_path, args, status, said):
    p = profpipe("record", *args, cwd=tmp_path, timeout=20)
    assert (p.returncode, p.stdout, p.stderr.count("\n")) == (status, "", 1), p.stderr
    assert p.stderr.startswith(f"profpipe: error: {said}") and ";" in p.stderr, p.stderr
    assert os.listdir(tmp_path) == []
    p = subprocess.run([f"{BUILD}/prof-bpf", "-o", "x.raw", *args], capture_output=True, text=True,
                       cwd=tmp_path, timeout=20)
    assert (p.returncode, p.stderr.count("\n")) == (status, 1), p.stderr
    assert p.stderr.startswith(f"prof-bpf: error: {said}") and not os.listdir(tmp_path)


TWO_USERS = """for user in 3001 3002; do
    setpriv --reuid=$user --clear-groups sh -c 'while :; do :; done' &
done
sleep 10"""


def test_the_users_of_a_container_are_one_owner(tmp_path):
    """A container's root can take any user id. On the host a user is an owner of its own."""
    out = tmp_path / "out.prof"
    with subprocess.Popen(["unshare", "-pf", "--kill-child", "sh", "-c", TWO_USERS]) as inside:
        host = [as_user(uid, ["sh", "-c", "while :; do :; done"]) for uid in (3003, 3004)]
        try:
            profpipe("record", "-q", "-F", "99", "-d", "2", "-o", out)
        finally:
            end(host)
            inside.kill()
    # A process has its user in the eighth field and its owner, container << 32 | user, in the
    # tenth.
    processes = [fields for kind, fields in messages(out.read_bytes()) if kind == PROCESS]
    owners = {p[7]: p[9] for p in processes if len(p) > 9 and 3000 < p[7] < 3005}
    assert set(owners) == {3001, 3002, 3003, 3004}
    assert owners[3003] == 3003 and owners[3004] == 3004
    assert owners[3001] == owners[3002] and owners[3001] >> 32
    assert owners[3001] & 0xffffffff == 0
