# SPDX-License-Identifier: Apache-2.0
"""Production hazards for a profiler: files that kill its parsers, forged files, full disks, closed
descriptors, low limits, cpus that go and come, clocks that are set."""
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from types import SimpleNamespace

import pytest
from conftest import BUILD, profpipe, record
from running import ran_s

HERE = os.path.join(os.path.dirname(__file__), "world")
NOBODY = 65534


def build(folder, name, *flags):
    out = folder / name
    subprocess.run(["gcc", "-O2", "-g", *flags, "-o", out, f"{HERE}/{name.split('.')[0]}.c"],
                   check=True)
    return out


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A program that spins; the same with a mark that kills a preloaded parser; and for each parser
    a copy of the tools with that parser preloaded."""
    folder = tmp_path_factory.mktemp("world")
    w = SimpleNamespace(folder=folder, spin=build(folder, "spin"), deadly=folder / "deadly")
    shutil.copy(w.spin, w.deadly)
    with open(w.deadly, "r+b") as f:
        f.seek(9)
        f.write(b"CRASHa")
    asan = b"libasan" in subprocess.run(["ldd", f"{BUILD}/prof-symd"], capture_output=True,
                                        check=True).stdout
    build(folder, "crash.so", "-shared", "-fPIC", "-w", "-ldl")
    for parser in ("prof-deltas", "prof-symd"):
        tools = folder / parser
        tools.mkdir()
        for tool in ("profpipe", "prof-bpf", "prof-deltas", "prof-symd", "prof-export"):
            shutil.copy(f"{BUILD}/{tool}", tools / (f"{tool}.real" if tool == parser else tool))
        first = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True,
                               text=True, check=True).stdout.strip() + ":" if asan else ""
        (tools / parser).write_text(f"""#!/bin/sh
echo >>{tools}/starts; [ "$(wc -l <{tools}/starts)" -gt 5 ] || export DEADLY=1
LD_PRELOAD={first}{folder}/crash.so exec {tools}/{parser}.real "$@"
""")
        (tools / parser).chmod(0o755)
    return w


def stacks_of(path, comm):
    got = {}
    for line in path.read_text(errors="replace").splitlines():
        stack, count = line.rsplit(" ", 1)
        if stack.split(";")[0] == comm:
            got[stack] = got.get(stack, 0) + int(count)
    return got


def named(stacks):
    return sum(n for s, n in stacks.items() if "main;middle_of_it;leaf_of_it" in s)


def shares(seconds, *programs):
    """A command that runs programs at the same time."""
    return ["sh", "-c", " & ".join(f"{p} {seconds}" for p in programs) + "; wait"]


# --- files that kill a parser ---


@pytest.mark.parametrize("parser, said, lacks",
                         [("prof-deltas", "has no unwind rows: prof-deltas crashed on it twice",
                           "no-rows"),
                          ("prof-symd", "is not named: prof-symd's worker crashed on it twice",
                           "[deadly+0x")])
def test_a_file_that_a_parser_dies_on_is_given_up_and_no_other(
        world, tmp_path, parser, said, lacks):
    out = tmp_path / "out.folded"
    p = subprocess.run([world.folder / parser / "profpipe", "record", "-F", "199", "-o", out, "--",
                        *shares(5, world.deadly, world.spin)], capture_output=True, text=True,
                       timeout=120)
    assert p.returncode == 0, p.stderr
    assert p.stderr.count(f"{world.deadly}: {said}") == 1, p.stderr
    assert named(stacks_of(out, "spin")) > 0, p.stderr
    deadly = stacks_of(out, "deadly")
    assert any(lacks in s for s in deadly), deadly


@pytest.mark.parametrize("parser, said",
                         [("prof-deltas", "has no unwind rows: prof-deltas")])
def test_a_file_that_a_parser_was_killed_over_is_tried_again(world, tmp_path, parser, said):
    """The parser is killed five times in a row without a sign that the file is at fault, which may
    be chance. A second later, everything works as before."""
    (world.folder / parser / "starts").write_text("")
    shutil.copy(world.spin, tmp_path / "unlucky")
    with open(tmp_path / "unlucky", "r+b") as f:
        f.seek(9)
        f.write(b"CRASHf")
    out = tmp_path / "out.txt"
    p = subprocess.run([world.folder / parser / "profpipe", "record", "-F", "199", "-f", "text",
                        "-o", out, "--", *shares(14, tmp_path / "unlucky", world.spin)],
                       capture_output=True, text=True, timeout=120)
    assert p.returncode == 0, p.stderr
    line = f"/unlucky: {said} was killed on it repeatedly"
    assert p.stderr.count(line) == 1, p.stderr
    stacks = [block for block in out.read_text(errors="replace").split("\n\n")
              if block.startswith("unlucky ")]
    late = stacks[-len(stacks) // 4:]
    good = [s for s in late if "leaf_of_it" in s and "main " in s and "[truncated" not in s]
    assert len(good) >= 0.9 * len(late) > 0, (len(stacks), len(late), len(good), p.stderr, late[-1])


@pytest.fixture
def own():
    """Another user's folder that contains the program that crashes the parser."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        yield folder


def test_files_that_kill_a_parser_harm_only_their_owner(world, own, tmp_path):
    """Each copy has its own name, inode and process, until the parser gets no more of them. After
    that, another user's program runs at the same time."""
    out, err, victim = tmp_path / "out.folded", tmp_path / "err", tmp_path / "victim"
    shutil.copy(world.deadly, f"{own}/deadly")
    attack = (f'i=0; while [ $i -lt 300 ]; do cp {own}/deadly {own}/c$i; {own}/c$i 0.3; rm '
              f'{own}/c$i; i=$((i+1)); done')
    script = f"""
        setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups sh -c '{attack}' & attack=$!
        n=0
        until grep -q 'user {NOBODY}: prof-deltas repeatedly crashed' {err} || [ $n -ge 600 ]; do
            sleep 0.1; n=$((n+1))
        done
        cp {world.spin} {victim}; {victim} 5
        kill $attack"""
    with open(err, "wb") as log:
        status = subprocess.run([world.folder / "prof-deltas" / "profpipe", "record", "-F", "199",
                                 "-o", out, "--", "sh", "-c", script], stderr=log,
                                timeout=150).returncode
    said = err.read_text()
    line = f"user {NOBODY}: prof-deltas repeatedly crashed or took too long on this user's files"
    assert status == 0 and said.count(line) == 1, said
    assert named(stacks_of(out, "victim")) > 0, said


def test_a_forged_libc_of_the_same_build_id_harms_no_other_file(tmp_path):
    """A file with other names and nonsensical unwind rows."""
    sort = build(tmp_path, "sort")
    libc = next(line.split()[2]
                for line in subprocess.run(["ldd", sort], capture_output=True, text=True,
                                           check=True).stdout.splitlines() if "libc.so.6" in line)
    forged = tmp_path / "forged"
    forged.mkdir()
    data = bytearray(open(libc, "rb").read())
    sections = subprocess.run(["readelf", "-SW", libc], capture_output=True, text=True,
                              check=True).stdout
    for line in sections.splitlines():
        words = line.split("]")[1].split() if "]" in line else []
        if words[:1] == [".eh_frame"]:
            at, size = int(words[3], 16), int(words[4], 16)
            data[at + size // 4:at + size // 2] = bytes(size // 2 - size // 4)
    for name in (b"\0qsort_r\0", b"\0qsort\0"):
        assert name in data
    # Of equal length, so that nothing moves; the dynamic linker still finds qsort.
    (forged / "libc.so.6").write_bytes(bytes(data))
    subprocess.run(["cp", sort, tmp_path / "honest"], check=True)
    subprocess.run(["cp", sort, tmp_path / "forger"], check=True)
    command = f"LD_LIBRARY_PATH={forged} {tmp_path}/forger 2 & {tmp_path}/honest 2; wait"
    got = record(tmp_path, "-F", "199", "--", "sh", "-c", command)
    honest = {";".join(s): n for s, n in got.stacks if s[0] == "honest"}
    whole = sum(n for s, n in honest.items() if "main" in s and "[truncated" not in s)
    assert honest and any("sort" in f for s in honest for f in s.split(";")[2:]), honest
    assert whole >= 0.9 * sum(honest.values()), honest
    assert any(s[0] == "forger" for s, _ in got.stacks)


# --- outputs ---


@pytest.mark.parametrize("fmt", ["folded", "pprof", "html", "text", "stream"])
def test_an_old_output_stays_on_a_full_disk(world, tmp_path, fmt):
    disk, err = tmp_path / "disk", None
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "none", disk], check=True)
    try:
        out, summary = disk / "out", disk / "summary"
        out.write_text("what was there\n")
        summary.write_text("likewise\n")
        with open(disk / "rest", "wb", buffering=0) as f:
            with pytest.raises(OSError):
                while True:
                    f.write(bytes(4096))
        p = profpipe("record", "-F", "199", "-f", fmt, "-o", out, "--summary", summary, "--",
                     world.spin, "0.7")
        err = p.stderr
        assert (p.returncode == 1 and "No space left on device" in err
                and err.count("keeps its old contents") == 2), err
        assert out.read_text() == "what was there\n" and summary.read_text() == "likewise\n"
        (disk / "rest").unlink()
        assert sorted(os.listdir(disk)) == ["out", "summary"], "nothing else is left"
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_new_output_does_not_keep_the_old_ones_owner_and_mode(world, tmp_path):
    out = tmp_path / "out.folded"
    out.write_text("old\n")
    os.chown(out, 1, 2)
    os.chmod(out, 0o640)
    assert profpipe("record", "-q", "-F", "199", "-o", out, "--", world.spin, "0.7").returncode == 0
    st = os.stat(out)
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (os.geteuid(), os.getegid(), 0o600)
    assert "leaf_of_it" in out.read_text()
    os.link(out, tmp_path / "other")
    assert profpipe("record", "-q", "-F", "199", "-o", out, "--", world.spin, "0.7").returncode == 0
    assert os.stat(out).st_ino != os.stat(tmp_path / "other").st_ino
    assert "leaf_of_it" in out.read_text()
    assert sorted(os.listdir(tmp_path)) == ["other", "out.folded"]


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_descriptors_are_no_outputs(world, tmp_path, closed):
    out = tmp_path / "out.folded"

    def close():
        for fd in closed:
            os.close(fd)

    p = subprocess.Popen([f"{BUILD}/profpipe", "record", "-F", "199", "-o", out, "--", world.spin,
                          "0.6"], preexec_fn=close, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.communicate(timeout=60)
    assert p.returncode == 0 and named(stacks_of(out, "spin")) > 0
    assert all(line.rsplit(" ", 1)[1].isdigit()
               for line in out.read_text().splitlines()), "nobody's messages went there"


def test_a_closed_output_is_reported(world):
    p = subprocess.run(["sh", "-c",
                        f"{BUILD}/profpipe record -f folded -o - -- {world.spin} 0.3 >&-"],
                       capture_output=True, text=True, timeout=60)
    assert (p.returncode == 1
            and p.stderr == "profpipe: error: -: is closed, or not open for writing; name a file\n")


def test_a_reader_that_goes_is_one_line_and_an_error(world):
    pipe = f"{BUILD}/profpipe record -q -f folded -o - -- {world.spin} 0.5 | true"
    p = subprocess.run(["bash", "-c", pipe + "; exit ${PIPESTATUS[0]}"], capture_output=True,
                       text=True, timeout=60)
    assert (p.returncode == 1 and p.stderr.count("\n") == 1
            and "Broken pipe; its reader went away before the end" in p.stderr), p.stderr


@pytest.fixture
def unread(world):
    """Starts runs whose output is a pipe of one page, which nobody reads yet."""
    spin = subprocess.Popen([world.spin, "100"])
    runs = []

    def start(*args):
        p = subprocess.Popen([f"{BUILD}/profpipe", "record", "-v", "-F", "199", "-p", str(spin.pid),
                              "-o", "-", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
        p.profiled = spin.pid
        runs.append(p)
        fcntl.fcntl(p.stdout, fcntl.F_SETPIPE_SZ, 4096)
        return p

    yield start
    for p in [*runs, spin]:
        p.kill()
        p.wait()


@pytest.mark.parametrize("fmt", ["text", pytest.param("stream", marks=pytest.mark.check_all)])
def test_a_slow_reader_is_waited_for(unread, tmp_path, fmt):
    """The reader pauses for longer than a tool may be silent. All samples of that time arrived or
    were counted."""
    p = unread("-d", "13", "-f", fmt, "--summary", tmp_path / "s.json")
    while "sampling has begun" not in p.stderr.readline():
        pass
    before = ran_s(p.profiled)
    time.sleep(12)
    took = ran_s(p.profiled) - before
    time.sleep(6)
    p.stdout.reconfigure(errors="replace")
    out, err = p.communicate(timeout=90)
    s = json.loads((tmp_path / "s.json").read_text())
    assert p.returncode == 0 and not s["restarts"] and not s["cut"], err
    assert fmt != "text" or out.count(" cpu-clock:") == s["samples"], err
    # Which programs run at a tick is a matter of chance.
    expected = 199 * took
    assert s["samples"] + s["lost_total"] >= 0.9 * expected - 4 * expected ** 0.5, (took, err)
    assert s["samples"] > 0, err
    print(f"{took:.1f} s of cpu: {s['samples']} samples, {s['lost']} lost")


@pytest.mark.parametrize("how", ["goes", "interrupted"])
def test_a_reader_that_does_not_read_blocks_until_it_goes_or_an_interrupt(unread, how):
    p = unread("-d", "2", "-f", "text")
    said = []
    for line in p.stderr:
        said.append(line)
        if "waits for its reader" in line:
            break
    if how == "goes":
        p.stdout.close()
    else:
        p.send_signal(signal.SIGINT)
        assert "interrupt again to abandon it" in p.stderr.readline()
        p.send_signal(signal.SIGINT)
    err = p.stderr.read()
    assert p.wait(30) == 1, (said, err)
    assert ("its reader went away before the end" if how == "goes"
            else "interrupted again: - is not complete") in err, (said, err)


def test_the_order_of_out_of_memory_kills(world):
    """The out-of-memory killer takes the parsers and the DWARF reader first, then prof-bpf, then
    the profiled programs; never later than the process that started profpipe."""
    for own in (None, 450):
        with open("/proc/self/oom_score_adj") as f:
            before = int(f.read())

        def worse(score=own):
            with open("/proc/self/oom_score_adj", "w") as f:
                f.write(str(score if score is not None else before))

        p = subprocess.Popen([f"{BUILD}/profpipe", "record", "-v", "-f", "folded", "-o",
                              "/dev/null", "--", "sleep", "60"], stderr=subprocess.PIPE, text=True,
                             preexec_fn=worse)
        try:
            while "sampling has begun" not in p.stderr.readline():
                pass
            scores = {}
            for pid in open(f"/proc/{p.pid}/task/{p.pid}/children").read().split():
                with open(f"/proc/{pid}/comm") as f, open(f"/proc/{pid}/oom_score_adj") as g:
                    tool, score = f.read().strip(), int(g.read())
                scores[tool] = score
                helpers = (open(f"/proc/{pid}/task/{pid}/children").read().split()
                           if tool == "prof-symd" else [])
                for helper in helpers:
                    with open(f"/proc/{helper}/oom_score_adj") as f:
                        assert int(f.read()) == score
        finally:
            p.send_signal(signal.SIGINT)
            p.communicate()
        least = before if own is None else own
        want = {"prof-bpf": 300, "prof-deltas": 500, "prof-symd": 500, "prof-export": 400,
                "sleep": least}
        assert scores == {tool: max(score, least) for tool, score in want.items()}


# --- limits ---


@pytest.mark.parametrize("limit, low, name",
                         [("NOFILE", 100, "open files"), ("NPROC", 20, "processes and threads"),
                          ("STACK", 131072, "bytes of stack")])
def test_limits_that_are_too_low_are_named(world, tmp_path, limit, low, name):
    out = tmp_path / "out.folded"
    out.write_text("old\n")
    def lower():
        resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (low, low))
    p = subprocess.run([f"{BUILD}/profpipe", "record", "-o", out, "--", world.spin, "0.3"],
                       capture_output=True, text=True, timeout=60, preexec_fn=lower)
    assert (p.returncode == 1 and p.stderr.count("\n") == 1
            and f"the limit of {name} is {low}: the tools need" in p.stderr), p.stderr
    assert out.read_text() == "old\n"


def test_low_but_sufficient_limits_are_no_error(world, tmp_path):
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (192, 192))
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        resource.setrlimit(resource.RLIMIT_STACK,
                           (65536, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    out = tmp_path / "out.folded"
    p = subprocess.run([f"{BUILD}/profpipe", "record", "-q", "-F", "199", "-o", out, "--",
                        world.spin, "1"], capture_output=True, text=True, timeout=60,
                       preexec_fn=lower)
    assert p.returncode == 0 and named(stacks_of(out, "spin")) > 0, p.stderr


def test_a_file_size_limit_is_an_error_of_writing(world, tmp_path):
    out = tmp_path / "out.folded"
    out.write_text("old\n")
    p = subprocess.run([f"{BUILD}/profpipe", "record", "-F", "199", "-f", "html", "-o", out, "--",
                        world.spin, "0.7"], capture_output=True, text=True, timeout=60,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert (p.returncode == 1 and "File too large" in p.stderr and "ulimit -f" in p.stderr
            and "name another" not in p.stderr and out.read_text() == "old\n"), p.stderr


# --- the host ---


def test_a_cpu_that_comes_back_is_sampled(world, tmp_path):
    """Where no cpu can be taken offline, the launcher itself may run only on the first cpu; all
    cpus are sampled anyway."""
    last = max(os.sched_getaffinity(0))
    switch = f"/sys/devices/system/cpu/cpu{last}/online"

    def turn(on):
        try:
            with open(switch, "w") as f:
                f.write(str(on))
        except OSError:
            pass

    out, err, later = tmp_path / "out.folded", tmp_path / "err", tmp_path / "later"
    shutil.copy(world.spin, later)
    # Until it can be taken offline, some seconds at most.
    script = (f"{world.spin} 3; n=0; until taskset -c {last} {later} 3 || [ $n -ge 100 ]; "
              f"do sleep 0.1; n=$((n+1)); done")
    with open(err, "wb") as log:
        run = subprocess.Popen(["taskset", "-c", "0", f"{BUILD}/profpipe", "record", "-v", "-F",
                                "199", "-o", out, "--", "sh", "-c", script], stderr=log)
    try:
        until = time.monotonic() + 60
        while "sampling has begun" not in err.read_text() and time.monotonic() < until:
            time.sleep(0.05)
        turn(0)
        time.sleep(1)
        turn(1)
        run.wait(120)
    finally:
        turn(1)
        run.kill()
    assert run.returncode == 0, err.read_text()
    assert named(stacks_of(out, "spin")) > 0, "sampling goes on while it is away"
    assert named(stacks_of(out, "later")) > 0, err.read_text()
