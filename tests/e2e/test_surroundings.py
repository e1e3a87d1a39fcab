# SPDX-License-Identifier: Apache-2.0
"""What the stream says of processes beside their samples: cgroups, pids in namespaces, mappings of
runtimes, and ends of threads."""
import subprocess
import sys

from conftest import BUILD, profpipe
from recordings import messages

SAMPLE, PROCESS, THREAD, CGROUP, MAPPING, THREAD_END = 11, 4, 6, 21, 22, 23
SPIN = "import time\nend = time.time() + %s\nwhile time.time() < end: pass\n"
# Takes another name every 50 ms, which is another thread in the stream.
RENAMES = """import ctypes, time
prctl = ctypes.CDLL(None).prctl
end, n = time.time() + 3, 0
while time.time() < end:
    n += 1
    prctl(15, b"name-%d" % n, 0, 0, 0)
    until = time.time() + 0.05
    while time.time() < until: pass
"""


def raw(tmp_path, pid):
    out = tmp_path / "x.raw"
    subprocess.run([f"{BUILD}/prof-bpf", "-F", "99", "-d", "1.5", "-o", out, "-p", str(pid)],
                   check=True, stderr=subprocess.PIPE, timeout=60)
    return list(messages(out.read_bytes()))


def of(found, number):
    return [fields for kind, fields in found if kind == number]


def field(fields, at, default=0):
    return fields[at] if at < len(fields) else default


def cgroup_of(pid):
    """The unified hierarchy's, unless that is the root; else systemd's, else any other."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as f:
        lines = [line.rstrip("\n").split(":", 2) for line in f]
    best = [path for _, name, path in lines if not name and path != "/"]
    best += [path for _, name, path in lines if name == "name=systemd" and path != "/"]
    best += [path for _, name, path in lines if path != "/"] + ["/"]
    return best[0]


def test_a_sampled_process_has_its_cgroup(tmp_path):
    p = subprocess.Popen([sys.executable, "-c", SPIN % 10])
    try:
        found, want = raw(tmp_path, p.pid), cgroup_of(p.pid)
    finally:
        p.kill()
        p.wait()
    process = [f for f in of(found, PROCESS) if f[1] == p.pid]
    assert process and of(found, SAMPLE)
    cgroups = {f[0]: f[2][0].decode() for f in of(found, CGROUP)}
    assert cgroups[field(process[-1], 10)] == want
    assert field(process[-1], 11) == p.pid
    kinds = [kind for kind, _ in found]
    assert kinds.index(CGROUP) < kinds.index(PROCESS)


def test_a_process_in_a_pid_namespace_has_its_inner_pid(tmp_path):
    p = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c",
                          SPIN % 10])
    try:
        inner = None
        while inner is None:
            with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="utf-8") as f:
                inner = (f.read().split() or [None])[0]
        found = raw(tmp_path, inner)
    finally:
        p.kill()
        p.wait()
    process = [f for f in of(found, PROCESS) if f[1] == int(inner)]
    assert process and field(process[-1], 11) == 1


def test_a_thread_that_takes_another_name_ends_under_its_old_one(tmp_path):
    p = subprocess.Popen([sys.executable, "-c", RENAMES])
    try:
        found = raw(tmp_path, p.pid)
    finally:
        p.kill()
        p.wait()
    threads = [f[0] for f in of(found, THREAD)]
    ended = [f[0] for f in of(found, THREAD_END)]
    assert len(threads) > 2
    assert ended == threads[:len(ended)] and len(ended) >= len(threads) - 1
    # No sample names a thread that has ended.
    gone = set()
    for kind, fields in found:
        if kind == THREAD_END:
            gone.add(fields[0])
        assert kind != SAMPLE or fields[1] not in gone


def test_a_recording_has_the_mappings_of_runtimes(tmp_path):
    out, maps = tmp_path / "x.prof", tmp_path / "maps"
    profpipe("record", "-F", "99", "-o", out, "--", sys.executable, "-c",
             f"open({str(maps)!r}, 'w').write(open('/proc/self/maps').read())\n" + SPIN % 2)
    found = list(messages(out.read_bytes()))
    paths = {f[0]: f[5][0].decode() for f in of(found, 7)}
    mapped = {(f[2], f[3], field(f, 4)): paths[f[1]] for f in of(found, MAPPING)}
    assert mapped
    with open(maps, encoding="utf-8") as f:
        lines = [line.split() for line in f]
    real = {(*(int(x, 16) for x in line[0].split("-")), int(line[2], 16)): line[-1]
            for line in lines if "x" in line[1]}
    for where, path in mapped.items():
        assert real[where] == path
