# SPDX-License-Identifier: Apache-2.0
"""profpipe record: its errors, its outputs, and signals."""
import os
import pty
import random
import re
import select
import shutil
import signal
import stat
import subprocess
import threading
import time

import pytest

from conftest import BUILD, profpipe, record
from running import NOBODY, Run, TOOLS, burn, nothing_is_left_behind

# --- errors: one line that names the cause ---

REFUSED = [
    ([], 2, "record"),
    (["profile"], 2, "profile"),
    (["record", "--bogus"], 2, "--bogus"),
    (["record", "-Z"], 2, "-Z"),
    (["record", "-F"], 2, "--frequency"),
    (["record", "-F", "0"], 2, "--frequency: 0"),
    (["record", "-F", "abc"], 2, "--frequency: abc"),
    (["record", "-F", "100000"], 2, "--frequency: 100000"),
    (["record", "-F", "-5"], 2, "--frequency: -5"),
    (["record", "-d", "0"], 2, "--duration: 0"),
    (["record", "-d", "nan"], 2, "--duration: nan"),
    (["record", "-d", "5x"], 2, "--duration: 5x"),
    (["record", "-p", "x"], 2, "--pid: x"),
    (["record", "-p", "4194304"], 1, "--pid: 4194304"),
    (["record", "-f", "svg"], 2, "--format: svg"),
    (["record", "-o", "out.svg"], 2, "--output: out.svg"),
    (["record", "-d", "1", "-o", "/nowhere/at/all/out.html"], 1, "/nowhere/at/all/out.html"),
    (["record", "-d", "1", "-o", "/sys/kernel/x.html"], 1, "/sys/kernel/x.html"),
    (["record", "-d", "1", "-o", "/", "-f", "text"], 1, "/"),
    (["record", "-d", "1", "-o", "/dev/null", "-f", "text", "--summary", "/nowhere/s.json"], 1,
     "/nowhere/s.json"),
    (["record", "-o", "a.html", "-o", "b.html"], 2, "--output: b.html"),
    (["record", "--summary", "a.json", "--summary", "b.json"], 2, "--summary: b.json"),
    (["record", *["-p", "1"] * 1025], 2, "--pid: 1: too many processes; give 1024 at most"),
    (["report"], 2, "report"),
    (["report", "a.prof", "b.prof"], 2, "report"),
    (["report", "-F", "9", "a.prof"], 2, "-F"),
    (["report", "/nowhere/a.prof"], 1, "/nowhere/a.prof"),
    (["report", "/"], 1, "/"),
]


@pytest.mark.parametrize("args,status,named", REFUSED,
                         ids=[" ".join(r[0])[:80] or "nothing" for r in REFUSED])
def test_bad_usage_gets_one_line(tmp_path, args, status, named):
    p = profpipe(*args, cwd=tmp_path, timeout=20)
    assert p.returncode == status
    assert p.stdout == ""
    lines = p.stderr.splitlines()
    assert len(lines) == 1, p.stderr
    assert lines[0].startswith("profpipe: error: ") and named in lines[0]
    assert os.listdir(tmp_path) == []


def test_a_terminal_escape_in_an_argument_is_not_printed_raw(tmp_path):
    p = profpipe("record", "-f", "\x1b[2J", cwd=tmp_path)
    assert p.returncode == 2 and "\x1b" not in p.stderr and "\\x1b[2J" in p.stderr


def test_a_thread_is_no_process(tmp_path):
    stop = threading.Event()
    t = threading.Thread(target=stop.wait)
    t.start()
    try:
        p = profpipe("record", "-d", "1", "-p", t.native_id, "-o", tmp_path / "x.folded")
    finally:
        stop.set()
        t.join()
    assert p.returncode == 1 and f"--pid: {t.native_id}: there is no such process" in p.stderr


def test_missing_rights_are_named(tmp_path):
    os.chmod(tmp_path, 0o777)
    out = tmp_path / "x.html"
    tools = tmp_path / "tools"
    tools.mkdir()
    for t in ["profpipe", *TOOLS]:
        shutil.copy(f"{BUILD}/{t}", tools)
    for d in [tmp_path, *list(tmp_path.parents)[:3]]:
        os.chmod(d, os.stat(d).st_mode | 0o011)
    p = subprocess.run([tools / "profpipe", "record", "-d", "1", "-o", out], capture_output=True,
                       text=True, user=NOBODY, group=NOBODY, extra_groups=[])
    lines = p.stderr.splitlines()
    assert p.returncode == 1 and len(lines) == 1, p.stderr
    assert "CAP_BPF" in lines[0] and "CAP_PERFMON" in lines[0] and "root" in lines[0]
    assert not out.exists()


def test_root_without_the_capability_gets_a_message(tmp_path):
    out = tmp_path / "x.html"
    p = subprocess.run(["setpriv", "--bounding-set", "-sys_admin,-bpf", "--inh-caps",
                        "-sys_admin,-bpf", f"{BUILD}/profpipe", "record", "-d", "1", "-o", out],
                       capture_output=True, text=True)
    lines = p.stderr.splitlines()
    assert p.returncode == 1 and len(lines) == 1 and "CAP_BPF" in lines[0], p.stderr
    assert not out.exists()


# --- outputs ---

def test_an_output_is_never_written_through_a_symbolic_link(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "x.folded"
    victim.write_text("precious")
    link.symlink_to(victim)
    for args in (["-o", link], ["-o", tmp_path / "y.folded", "--summary", link]):
        p = profpipe("record", "-d", "0.2", *args)
        assert p.returncode == 1 and "symbolic link" in p.stderr and str(link) in p.stderr
    assert victim.read_text() == "precious" and link.is_symlink()
    assert not (tmp_path / "y.folded").exists()


@pytest.mark.parametrize("ending", [".folded", ".txt", ".prof", ".html", ".pb.gz"])
def test_a_longer_old_output_is_replaced_whole(tmp_path, ending):
    out = tmp_path / f"x{ending}"
    out.write_bytes(b"old " * 3_000_000)
    os.chmod(out, 0o640)
    record(tmp_path, "-F", "499", command=burn(0.3), ending=ending)
    assert profpipe("record", "-F", "499", "-o", out, "--", *burn(0.3)).returncode == 0
    got = out.read_bytes()
    assert 0 < len(got) < 12_000_000 and b"old old" not in got
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_an_old_output_is_kept_when_the_command_cannot_be_run(tmp_path):
    out, summary = tmp_path / "x.folded", tmp_path / "s.json"
    out.write_text("precious\n")
    p = profpipe("record", "-o", out, "--summary", summary, "--", "/nowhere/command")
    assert (p.returncode == 127 and len(p.stderr.splitlines()) == 1
            and "/nowhere/command" in p.stderr)
    assert out.read_text() == "precious\n" and not summary.exists()


def test_a_command_that_is_not_executable_is_126(tmp_path):
    out = tmp_path / "x.folded"
    p = profpipe("record", "-o", out, "--", "/etc/passwd")
    assert p.returncode == 126 and "/etc/passwd" in p.stderr and not out.exists()


def test_output_and_summary_cannot_be_one_file(tmp_path):
    out = tmp_path / "x.folded"
    out.write_text("precious")
    p = profpipe("record", "-d", "0.2", "-o", out, "--summary", out)
    assert p.returncode == 1 and str(out) in p.stderr and out.read_text() == "precious"


def test_outputs_belong_to_who_called_sudo(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    for d in [tmp_path, *list(tmp_path.parents)[:3]]:
        os.chmod(d, os.stat(d).st_mode | 0o011)
    env = {**os.environ, "SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    p = profpipe("record", "-d", "0.3", "-o", theirs / "x.folded", "--summary", theirs / "s.json",
                 "--", "sh", "-c", "while :; do :; done", env=env)
    assert p.returncode == 0, p.stderr
    for n in ("x.folded", "s.json"):
        st = (theirs / n).stat()
        assert (st.st_uid, st.st_gid) == (NOBODY, NOBODY) and st.st_size > 0
    p = profpipe("record", "-d", "0.3", "-o", ours / "x.folded", env=env)
    assert p.returncode == 1 and "ermission" in p.stderr and str(ours) in p.stderr
    assert not (ours / "x.folded").exists()


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_may_be_the_output(name):
    p = profpipe("record", "-F", "499", "-f", "folded", "-o", name, "--", *burn(0.3))
    assert p.returncode == 0, p.stderr
    assert re.match(r"python3.*;.* \d+$", p.stdout.splitlines()[0])


def test_a_fifo_may_be_the_output_and_is_waited_for(tmp_path):
    fifo = tmp_path / "x.folded"
    os.mkfifo(fifo)
    got = []
    t = threading.Thread(target=lambda: got.append(fifo.read_text()))
    with Run("-q", "-F", "499", "-o", fifo, "--", *burn(0.3)) as r:
        assert (r.p.stderr.readline()
                == f"profpipe: warning: {fifo}: the pipe has no reader yet; the run begins when "
                f"it has one\n")
        t.start()
        assert r.end()[0] == 0
    t.join(10)
    assert got and "python3" in got[0]


def test_a_full_disk_is_reported(tmp_path):
    p = profpipe("record", "-F", "499", "-f", "folded", "-o", "/dev/full", "--", *burn(0.3))
    assert p.returncode == 1 and "No space left" in p.stderr


# --- signals ---

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_the_output_is_written(tmp_path, number):
    out = tmp_path / "x.folded"
    with subprocess.Popen(burn(30)) as load, Run("-F", "199", "-o", out) as r:
        r.sampling()
        time.sleep(1)
        r.p.send_signal(number)
        status, _, err = r.end(20)
        load.kill()
    assert status == 0, err
    assert "samples in" in err and "python3" in out.read_text()


def test_interrupt_reaches_a_background_job_of_a_script(tmp_path):
    """A shell without job control starts it with SIGINT ignored."""
    out = tmp_path / "x.folded"
    script = f"{BUILD}/profpipe record -q -o {out} & sleep 4; kill -INT $!; wait $!"
    p = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=30)
    assert p.returncode == 0 and out.stat().st_size > 0, p.stderr


def test_a_command_goes_with_a_run_that_ends_before_it(tmp_path):
    marker = f"3{random.randrange(10**8)}.25"
    p = profpipe("record", "-d", "0.5", "-o", tmp_path / "x.folded", "--", "sleep", marker,
                 timeout=20)
    assert p.returncode == 0, p.stderr
    assert subprocess.run(["pgrep", "-f", f"sleep {marker}"], capture_output=True).returncode == 1


def test_a_command_outlives_a_run_that_fails(tmp_path):
    said = tmp_path / "said"
    script = (f"trap 'echo asked >> {said}' TERM; i=0; while [ $i -lt 1500000 ]; do "
              f"i=$((i+1)); done; sleep 4; echo whole >> {said}")
    p = profpipe("record", "-f", "text", "-F", "499", "-o", "/dev/full", "--", "sh", "-c", script,
                 timeout=60)
    assert p.returncode == 1 and "No space left" in p.stderr, p.stderr
    assert said.read_text() == "whole\n", p.stderr
    assert "runs on but is no longer sampled" in p.stderr


def in_terminal(args, keys, seconds, **kw):
    """Runs args on a terminal of its own, and types keys, each after its number of seconds. Returns
    what the terminal showed, and the status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(args[0], args)
    seen, start, keys = b"", time.monotonic(), list(keys)
    while time.monotonic() < start + seconds:
        if keys and time.monotonic() > start + keys[0][0]:
            os.write(fd, keys.pop(0)[1])
        if fd in select.select([fd], [], [], 0.05)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
    for _ in range(200):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            os.close(fd)
            return seen.decode(errors="replace"), os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    raise AssertionError(f"did not end: {seen[-2000:]!r}")


def test_progress_is_shown_on_a_terminal_and_ctrl_c_ends(tmp_path):
    out = tmp_path / "x.html"
    seen, status = in_terminal([f"{BUILD}/profpipe", "record", "-o", str(out)], [(4.0, b"\x03")],
                               20)
    assert status == 0, seen
    assert seen.count("\r") >= 5 and "sampling" in seen and "% complete" in seen
    assert "samples in" in seen and out.stat().st_size > 1000


def test_quiet_says_nothing_on_a_terminal(tmp_path):
    # There may be messages about other programs of the host.
    spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    seen, status = in_terminal([f"{BUILD}/profpipe", "record", "-q", "-o", str(tmp_path / "x.html"),
                                "--", "sh", "-c", spin], [], 20)
    assert (seen, status) == ("", 0)


def test_a_command_has_the_terminal_to_itself(tmp_path):
    script = ("import sys\nassert sys.stdin.isatty() and sys.stdout.isatty()\n"
              "print('got', input())\n")
    seen, status = in_terminal([f"{BUILD}/profpipe", "record", "-o", str(tmp_path / "x.html"), "--",
                                "/usr/bin/python3", "-c", script], [(4.0, b"hello\n")], 20)
    assert status == 0, seen
    before = seen[:seen.index("got hello")]
    assert "sampling" not in before
