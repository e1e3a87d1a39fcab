# SPDX-License-Identifier: Apache-2.0
"""Facts of the stream about the host and about processes, beside their samples: cgroups, pids in
namespaces, mappings of runtimes, and ends of threads."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import BUILD, profpipe
from recordings import messages
from running import Run
from streams import ROOT

HELLO = 1
FILE, FRAME, ATTRIBUTE, FILE_END = 7, 9, 20, 24
SAMPLE, PROCESS, THREAD, CGROUP, MAPPING, THREAD_END = 11, 4, 6, 21, 22, 23
SPIN = "import time\nend = time.time() + %s\nwhile time.time() < end: pass\n"
# Takes another name every 50 ms, so it becomes another thread in the stream.
RENAMES = """import ctypes, time
prctl = ctypes.CDLL(None).prctl
end, n = time.time() + 3, 0
while time.time() < end:
    n += 1
    prctl(15, b"name-%d" % n, 0, 0, 0)
    until = time.time() + 0.05
    while time.time() < until: pass
"""


def raw(tmp_path, pid, *args):
    out = tmp_path / "x.raw"
    subprocess.run([f"{BUILD}/prof-bpf", "-F", "99", "-d", "1", "-o", out, "-p", str(pid), *args],
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


@pytest.fixture(name="cgroup")
def unified_cgroup():
    """A cgroup of the unified hierarchy."""
    root = next(p for p in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
                if os.path.exists(f"{p}/cgroup.procs"))
    path = f"{root}/profpipe-test-{os.getpid()}"
    os.mkdir(path)
    yield path
    os.rmdir(path)


def test_a_cgroup_has_the_kernels_number(tmp_path, cgroup):
    with subprocess.Popen([sys.executable, "-c", SPIN % 10]) as p:
        with open(f"{cgroup}/cgroup.procs", "w", encoding="utf-8") as f:
            f.write(str(p.pid))
        found = raw(tmp_path, p.pid)
        p.kill()
    process = [f for f in of(found, PROCESS) if f[1] == p.pid]
    cgroups = {f[0]: f for f in of(found, CGROUP)}
    mine = cgroups[field(process[-1], 10)]
    assert mine[2][0].decode() == f"/{os.path.basename(cgroup)}"
    assert mine[1] == os.stat(cgroup).st_ino != 0


def test_a_process_that_moves_is_seen_in_its_new_cgroup(tmp_path, cgroup):
    with subprocess.Popen([sys.executable, "-c", SPIN % 20]) as p:
        old = cgroup_of(p.pid)
        with subprocess.Popen([f"{BUILD}/prof-bpf", "-F", "99", "-d", "5", "-p", str(p.pid), "-o",
                               tmp_path / "x.raw"], stderr=subprocess.DEVNULL) as run:
            time.sleep(2)
            with open(f"{cgroup}/cgroup.procs", "w", encoding="utf-8") as f:
                f.write(str(p.pid))
            assert run.wait() == 0
        new = cgroup_of(p.pid)
        p.kill()
    found = list(messages((tmp_path / "x.raw").read_bytes()))
    paths = {f[0]: f[2][0].decode() for f in of(found, CGROUP)}
    seen = [paths[field(f, 10)] for f in of(found, PROCESS) if f[1] == p.pid]
    assert old != new and seen[0] == old and seen[-1] == new, seen


@contextlib.contextmanager
def below(cgroup, length):
    """A cgroup whose path has this length, from the root of the hierarchy on. Hands back its path
    and its open folder."""
    path, dirs = "/" + os.path.basename(cgroup), [os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)]
    names = []
    while len(path) < length:
        names.append("d" * min(200, length - len(path) - 1))
        os.mkdir(names[-1], dir_fd=dirs[-1])
        dirs.append(os.open(names[-1], os.O_RDONLY | os.O_DIRECTORY, dir_fd=dirs[-1]))
        path += "/" + names[-1]
    try:
        yield path, dirs[-1]
    finally:
        for d in reversed(dirs):
            os.close(d)
            if names and d != dirs[0]:
                parent = dirs[len(names) - 1]
                for _ in range(100):
                    # The kernel has not finished removing its processes.
                    with contextlib.suppress(OSError):
                        os.rmdir(names[-1], dir_fd=parent)
                        break
                    time.sleep(0.05)
                names.pop()


@pytest.mark.parametrize("length", [4000, 4090, 4500])
def test_a_cgroup_path_of_4_kib_equals_the_kernels(tmp_path, cgroup, length):
    with below(cgroup, length) as (path, folder):
        with subprocess.Popen([sys.executable, "-c", SPIN % 10]) as p:
            with open("cgroup.procs", "w", opener=lambda name, flags: os.open(
                    name, flags, dir_fd=folder), encoding="ascii") as f:
                f.write(str(p.pid))
            want = next((x[3:] for x in Path(f"/proc/{p.pid}/cgroup").read_text().splitlines()
                         if x.startswith("0::")), None)
            assert want == path or length > 4095
            found = raw(tmp_path, p.pid)
            p.kill()
    assert of(found, SAMPLE)
    process = [f for f in of(found, PROCESS) if f[1] == p.pid]
    cgroups = {f[0]: f[2][0].decode() for f in of(found, CGROUP)}
    told = cgroups.get(field(process[-1], 10))
    assert told == want if length < 4096 else told is None or path.startswith(told), told


def test_a_missing_cgroup_with_a_long_name_is_refused_with_a_reason():
    p = profpipe("record", "--cgroup", ("/" + "d" * 200) * 20, "-d", "1")
    assert p.returncode == 1 and p.stderr.count("\n") == 1 and len(p.stderr) < 2500
    assert p.stderr.endswith("d: there is no such cgroup; see /proc/PID/cgroup\n"), p.stderr


def derived_id():
    """Derived as by systemd."""
    with open(f"{ROOT}/tools/prof-bpf/hello.h", encoding="utf-8") as f:
        app = re.search(r'define HELLO_APP "(\w+)"', f.read())[1]
    return subprocess.run(["systemd-id128", "machine-id", f"--app-specific={app}"], check=True,
                          capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("args", [[], ["--host-id", "rack 4"], ["--host-id", ""]])
def test_the_hello_tells_the_host_and_its_kernel(tmp_path, args):
    hello = of(raw(tmp_path, os.getpid(), *args), HELLO)[0]
    with open("/sys/kernel/notes", "rb") as f:
        (tmp_path / "notes").write_bytes(f.read())
    # readelf reads notes of files alone.
    subprocess.run(["objcopy", "-I", "binary", "-O", "elf64-x86-64", "--rename-section",
                    ".data=.note.kernel", tmp_path / "notes", tmp_path / "notes.o"], check=True)
    notes = subprocess.run(["readelf", "-n", tmp_path / "notes.o"], check=True, capture_output=True,
                           text=True).stdout
    assert hello[15].hex() == re.search("Build ID: ([0-9a-f]+)", notes)[1]
    assert field(hello, 16, (b"",))[0].decode() == (args[1] if args else derived_id())


@pytest.mark.parametrize("value", ["x" * 65, "a\nb", "\u00e4"])
def test_a_host_id_that_is_no_plain_text_is_refused(value):
    for tool in (["prof-bpf"], ["profpipe", "record"]):
        p = subprocess.run([f"{BUILD}/{tool[0]}", *tool[1:], "--host-id", value], timeout=20,
                           capture_output=True, text=True, check=False)
        assert p.returncode == 2 and p.stderr.count("\n") == 1, p.stderr


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


# Prints what /proc says about itself, and spins.
TELLS = """import sys, time
out = open(sys.argv[1], "wb")
for name in "environ", "cmdline": out.write(open("/proc/self/" + name, "rb").read() + b"\\n")
out.close()
end = time.time() + 2
while time.time() < end: pass
"""


def attributes(found):
    """The properties of each process in a recording."""
    properties = {}
    for process, key, value in of(found, ATTRIBUTE):
        properties.setdefault(process, {})[key[0].decode()] = value[0].decode()
    return properties


def test_only_requested_variables_and_the_command_line_are_sent(tmp_path):
    out, told = tmp_path / "x.prof", tmp_path / "told"
    env = {**os.environ, "OTEL_SERVICE_NAME": "wäb server", "OTEL_SERVICE_NAMES": "n-o-1",
           "SECRET": "n-o-2", "EMPTY": ""}
    p = profpipe("record", "-F", "99", "-o", out, "--env", "OTEL_SERVICE_NAME", "--env", "EMPTY",
                 "--env", "MISSING", "--cmdline", "--", sys.executable, "-c", TELLS, told, env=env)
    assert p.returncode == 0, p.stderr
    environ, line = told.read_bytes().removesuffix(b"\n").split(b"\0\n", 1)
    variables = dict(v.split("=", 1) for v in environ.decode().split("\0"))
    data = out.read_bytes()
    properties, = attributes(list(messages(data))).values()
    assert properties == {
        "process.environment_variable.OTEL_SERVICE_NAME": variables["OTEL_SERVICE_NAME"],
        "process.command_args": line.decode().rstrip("\0")}
    assert b"n-o-" not in data


def test_another_prof_symd_gets_the_attributes_again(tmp_path):
    out = tmp_path / "x.prof"
    with Run("-F", "99", "-o", out, "--cmdline", "--", sys.executable, "-c", SPIN % 6) as run:
        symd = run.sampling()["prof-symd"]
        time.sleep(2)
        os.kill(symd, signal.SIGKILL)
        code, _, said = run.end(timeout=60)
    assert code == 0, said
    found = list(messages(out.read_bytes()))
    last = max(i for i, (kind, _) in enumerate(found) if kind == HELLO)
    assert of(found[last:], SAMPLE)
    for part in (found[:last], found[last:]):
        assert [p["process.command_args"].split("\0")[0] for p in attributes(part).values()] == [
            sys.executable]


def test_no_attributes_are_sent_unless_requested(tmp_path):
    out = tmp_path / "x.prof"
    p = profpipe("record", "-F", "99", "-o", out, "--", sys.executable, "-c", SPIN % 1,
                 env={**os.environ, "OTEL_SERVICE_NAME": "hidden"})
    assert p.returncode == 0 and not attributes(messages(out.read_bytes()))
    assert b"hidden" not in out.read_bytes() and b"time.time()" not in out.read_bytes()


def test_a_process_has_the_arguments_of_its_own_program(tmp_path):
    out = tmp_path / "x.prof"
    again = ("import os, sys\n" + SPIN % 1 + "os.environ['NAME'] = 'second'\n"
             f"os.execv(sys.executable, [sys.executable, '-c', {SPIN % 1!r}])\n")
    p = profpipe("record", "-F", "99", "-o", out, "--env", "NAME", "--", sys.executable, "-c",
                 again, env={**os.environ, "NAME": "first"})
    assert p.returncode == 0, p.stderr
    found = list(messages(out.read_bytes()))
    execs = {f[0]: f[4] for f in of(found, PROCESS)}
    assert [p["process.environment_variable.NAME"] for _, p in
            sorted(attributes(found).items(), key=lambda a: execs[a[0]])] == ["first", "second"]


@pytest.mark.check_all
def test_a_file_that_is_mapped_nowhere_ends(tmp_path):
    out, programs = tmp_path / "x.prof", [tmp_path / f"program-{i}" for i in range(5)]
    subprocess.run(["gcc", "-O1", "-o", programs[0], "-xc", "-"], check=True, text=True, input=
                   "int main(void) { for (volatile long i = 0; i < 300000000; i++) ; return 0; }\n")
    for path in programs[1:]:
        shutil.copy(programs[0], path)
    with Run("-F", "99", "-d", "60", "-o", out) as run:
        run.sampling()
        for path in programs:
            subprocess.run([path], check=True)
        code, _, said = run.end(timeout=120)
    assert code == 0, said
    found = list(messages(out.read_bytes()))
    ours = {f[0]: f[5][0].decode() for f in of(found, FILE) if f[5][0].decode().startswith(
        str(tmp_path))}
    ended = [f[0] for f in of(found, FILE_END)]
    assert sorted(ours.values()) == sorted(map(str, programs))
    assert set(ours) <= set(ended) and len(set(ended)) == len(ended)
    libc = {f[0] for f in of(found, FILE) if b"libc.so" in f[5][0]}
    assert libc and not libc & set(ended)
    gone = set()
    for kind, fields in found:
        if kind == FILE_END:
            gone.add(fields[0])
        assert kind != FILE or fields[0] not in gone
        assert kind != FRAME or field(fields, 2) not in gone
