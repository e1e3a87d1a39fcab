# SPDX-License-Identifier: Apache-2.0
"""--cpu-limit: the share of the host's cpus that all tools together may use."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

import attacks
from conftest import BUILD, profpipe, record
from fairness import ATTACKER, VICTIM, as_user, assert_unharmed, beside, end, python_victim

PERCENT = 5
# Nearly all of its stacks differ.
LOAD = """
import random
def f(n):
    if n: (f if n % 2 else g)(n - 1)
def g(n):
    for i in range(random.randrange(300)): pass
    if n: (f if random.random() < .5 else g)(n - 1)
while True: f(random.randrange(60))
"""
TICK = 1 / os.sysconf("SC_CLK_TCK")


def family(pid):
    """The process and its descendants."""
    pids = [pid]
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                for child in f.read().split():
                    pids += family(int(child))
    return pids


def cpu_seconds(pid):
    total = 0
    for p in family(pid):
        with contextlib.suppress(OSError), open(f"/proc/{p}/stat", encoding="latin-1") as f:
            total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15]))
    return total * TICK


def test_the_tools_obey_the_cpu_limit(tmp_path):
    """At a rate at which the tools would use several times the limit. Their use until sampling
    begins is not limited, and depends on the machine."""
    summary = tmp_path / "summary.json"
    with contextlib.ExitStack() as stack:
        for _ in range(os.cpu_count()):
            load = stack.enter_context(subprocess.Popen(["/usr/bin/python3", "-c", LOAD]))
            stack.callback(load.kill)
        p = stack.enter_context(subprocess.Popen(
                [f"{BUILD}/profpipe", "record", "-v", "-F", "4999", "--cpu-limit", str(PERCENT),
                 "-o", tmp_path / "x.folded", "--summary", summary], stderr=subprocess.PIPE,
                text=True))
        stack.callback(p.kill)
        said = []
        for line in p.stderr:
            said.append(line)
            if "sampling has begun" in line:
                break
        began, start = time.monotonic(), cpu_seconds(p.pid)
        time.sleep(9)
        used, took = cpu_seconds(p.pid) - start, time.monotonic() - began
        p.send_signal(signal.SIGINT)
        log = "".join(said) + p.communicate(timeout=60)[1]
    assert p.returncode == 0, log
    # The limit is one over ten seconds. The rings are drained even at the limit, which costs more
    # on a busy machine. Without a limit the tools use more than five times as much.
    allowed = os.cpu_count() * max(took, 10) * PERCENT / 100
    assert allowed / 4 < used <= 2 * allowed, (used, allowed, log)
    got = json.loads(summary.read_text())
    assert got["lost"]["cpu-limit"] > got["samples"] / 20, got
    assert f"--cpu-limit {PERCENT}: the tools need more" in log, log
    assert got["samples"] > 0


# A hundredth of a cpu.
LIGHT = """
import time
open("/proc/self/comm", "w").write("victim")
while True:
    end = time.process_time() + .001
    while time.process_time() < end: pass
    time.sleep(.099)
"""


def run_ns(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


@pytest.mark.check_all
def test_the_cpu_limit_drops_no_samples_of_a_light_user(tmp_path):
    """A user with loads on all cpus, and one whose program needs a hundredth of one: only the
    first loses samples."""
    loads = [as_user(ATTACKER, ["/usr/bin/python3", "-c", LOAD], nice=10)
             for _ in range(os.cpu_count())]
    victim = as_user(VICTIM, ["/usr/bin/python3", "-c", LIGHT])
    try:
        time.sleep(1)
        began, start = time.monotonic(), run_ns(victim.pid)
        got = record(tmp_path, "-F", "4999", "-d", "11", "--cpu-limit", "2")
        took, used = time.monotonic() - began, run_ns(victim.pid) - start
    finally:
        end([*loads, victim])
    # As many samples as its cpu time while the host was sampled.
    due = used / 1e9 / took * got.summary["duration_s"] * 4999
    kept = sum(n for s, n in got.stacks if s[0] == "victim")
    assert kept >= 0.7 * due, (kept, due, got.summary)
    lost = got.summary["lost"]["cpu-limit"]
    assert lost > got.summary["samples"] / 2, got.summary
    # The summary says who owned these samples.
    of = {o["uid"]: o["lost"].get("cpu-limit", 0) for o in got.summary["owners"]}
    assert of[ATTACKER] > lost / 10 and of.get(VICTIM, 0) <= 0.3 * due, got.summary
    assert sum(of.values()) > 0.9 * lost, got.summary


def test_subordinate_ids_of_a_user_are_one_owner(tmp_path):
    """A user may run programs under each id of a block of their own (subuid(5))."""
    (tmp_path / "subuid").write_text("somebody:100000:65536\nother:165536:65536\n")
    loads = [as_user(uid, ["/usr/bin/python3", "-c", LOAD], nice=10)
             for uid in (100007, 123456, 165535, 170000)]
    out, summary = tmp_path / "out.folded", tmp_path / "summary.json"
    try:
        p = subprocess.run(
            ["unshare", "-m", "sh", "-c", 'mount --bind "$1" /etc/subuid; shift; exec "$@"', "sh",
             tmp_path / "subuid", f"{BUILD}/profpipe", "record", "-F", "4999", "-d", "6",
             "--cpu-limit", "1", "-o", out, "--summary", summary],
            capture_output=True, text=True, timeout=60)
    finally:
        end(loads)
    assert p.returncode == 0, p.stderr
    owners = {o["uid"] for o in json.loads(summary.read_text())["owners"]
              if "cpu-limit" in o["lost"]}
    assert {uid for uid in owners if 100000 <= uid < 200000} == {100000, 165536}, p.stderr


# Root makes a user namespace and a pid namespace in it, and runs a program there for each user.
CONTAINER = """
import ctypes, os, sys, time
NEWUSER, NEWPID = 0x10000000, 0x20000000
ready, mapped = os.pipe(), os.pipe()
child = os.fork()
if child:
    os.read(ready[0], 1)
    for name in "uid_map", "gid_map":
        with open(f"/proc/{child}/{name}", "w") as f:
            f.write("0 300000 65536")
    os.write(mapped[1], b"x")
    os.waitpid(child, 0)
    sys.exit()
assert ctypes.CDLL(None).unshare(NEWUSER | NEWPID) == 0
os.write(ready[1], b"x")
os.read(mapped[0], 1)
if os.fork():
    os.wait()
    sys.exit()
for uid in map(int, sys.argv[2:]):
    if not os.fork():
        os.setgid(uid)
        os.setuid(uid)
        os.execv("/usr/bin/python3", ["python3", "-c", sys.argv[1]])
time.sleep(100)
"""


@pytest.mark.check_all
def test_a_container_with_ids_of_its_own_is_one_owner(tmp_path):
    """The ids of its user namespace are in no file."""
    with subprocess.Popen(["/usr/bin/python3", "-c", CONTAINER, LOAD, "7", "8", "9000"],
                          start_new_session=True) as p:
        try:
            time.sleep(1)
            got = record(tmp_path, "-F", "4999", "-d", "6", "--cpu-limit", "1")
        finally:
            os.killpg(p.pid, signal.SIGKILL)
    lost = [o for o in got.summary["owners"] if "cpu-limit" in o["lost"]]
    assert [o["uid"] for o in lost if o["container"]] == [0], got.summary
    assert not [o for o in lost if 300000 <= o["uid"] < 400000], got.summary


# Their cost is not that of many samples: new functions in each stack, mapped files and mappings
# without end, files whose rows take long.
COSTLY = {
    "functions": attacks.deep_python, "fleeting": attacks.fleeting_files,
    "large": attacks.large_stacks,
    "mappings": attacks.places, "rows": attacks.costly_rows, "files": attacks.files,
}


@pytest.mark.check_all
@pytest.mark.parametrize("name", COSTLY)
def test_costly_users_do_not_exceed_the_cpu_limit(name, tmp_path, chain):
    """Nor does it cost another user any samples. The first seconds are dearer: they also have what
    is at work when the limit is reached."""
    seconds = 20
    with attacks.new_kit() as kit, COSTLY[name](kit, [ATTACKER]):
        got = beside(tmp_path, chain, seconds, ("--cpu-limit", PERCENT), victim=python_victim)
    cost = got.summary["cost"]["cpu_s"]
    allowed = os.cpu_count() * seconds * PERCENT / 100
    assert cost < 2 * allowed, (cost, allowed, got.summary["cost"], got.stderr)
    assert_unharmed(got)


def test_a_cpu_limit_is_a_percentage(tmp_path):
    for wrong in ("0", "101", "5%", ""):
        p = profpipe("record", "--cpu-limit", wrong, "-o", tmp_path / "x.html", "true")
        assert p.returncode == 2 and "--cpu-limit" in p.stderr, p.stderr
