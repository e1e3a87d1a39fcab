# SPDX-License-Identifier: Apache-2.0
"""profpipe run: its settings file, its messages to a service manager, reloading without losses,
files that follow each other in a folder, and probabilistic profiling. Only loopback addresses."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from conftest import BUILD, profpipe
from otlp_rules import lost, profiles, requests
from receivers import GrpcReceiver, spare_port
from running import children, cpu_s, kill_tool, lives, status_of
from streams import decode

# For a spinner that runs a third of the time.
HZ = 149
GOOD = [f"frequency = {HZ}", "cpu-limit = 100", "window = 0.5", "window-jitter = 0"]


class Manager:
    """The socket of a service manager."""

    def __init__(self):
        self.name = f"profpipe-test-{os.getpid()}-{time.monotonic_ns()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{self.name}")
        self.heard = []

    def wait(self, line, seconds=60):
        """Waits for this line, which may begin with a state. Returns what follows it."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            with contextlib.suppress(socket.timeout):
                lines = self.socket.recv(4096).decode().split("\n")
                self.heard += lines
                for x in lines:
                    if x.startswith(line):
                        return x[len(line):]
        raise AssertionError(f"no {line} in {self.heard}")


class Service:
    """profpipe run with a settings file and a manager; the with statement ends it. prefix: words
    before the command."""

    def __init__(self, tmp_path, lines, *args, prefix=(), **env):
        self.file, self.err = tmp_path / "profpipe.conf", tmp_path / "stderr"
        self.manager = Manager()
        self.write(lines)
        self.argv = [*prefix, f"{BUILD}/profpipe", "run", "--settings", self.file, *map(str, args)]
        self.env = {**os.environ, "NOTIFY_SOCKET": f"@{self.manager.name}", **env}

    def write(self, lines):
        new = self.file.with_suffix(".new")
        new.write_text("".join(f"{x}\n" for x in lines))
        new.rename(self.file)

    def __enter__(self):
        with open(self.err, "w") as err:
            self.p = subprocess.Popen(self.argv, env=self.env, stdout=subprocess.DEVNULL,
                                      stderr=err)
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()
        self.manager.socket.close()

    def reload(self, lines):
        self.write(lines)
        self.p.send_signal(signal.SIGHUP)
        self.manager.wait("RELOADING=1")
        self.manager.wait("READY=1")

    def end(self):
        self.p.terminate()
        status = self.p.wait(60)
        self.manager.wait("STOPPING=1", 1)
        return status, self.said()

    def said(self):
        return self.err.read_text(errors="replace")

    def wait_for(self, words, seconds=60):
        until_s = time.monotonic() + seconds
        while words not in self.said():
            assert time.monotonic() < until_s, self.said()
            time.sleep(0.05)

    def samples(self):
        """Waits until the state, which is reported every ten seconds, says so."""
        return int(re.search(r"; (\d+) samples", self.manager.wait("STATUS="))[1])


@contextlib.contextmanager
def spinner():
    """Runs a third of the time, and leaves the cpus to the tools."""
    code = ("import time\nwhile True:\n    end = time.process_time() + 0.005\n"
            "    while time.process_time() < end: pass\n    time.sleep(0.01)")
    with subprocess.Popen(["/usr/bin/python3", "-c", code]) as p:
        try:
            yield p.pid
        finally:
            p.kill()


def count(receivers):
    """The number of samples in all requests, none of which reports lost samples. On a busy host the
    kernel may also drop events."""
    data = [r for x in receivers for r in x.taken]
    rs = requests(b"".join(len(r).to_bytes(4, "big") + r for r in data))
    assert not set(lost(rs)) - {"sideband", "untracked"}, lost(rs)
    return sum(len(s.timestamps_unix_nano) for _, _, p in profiles(rs) for s in p.samples)


# --- the settings file ---

def test_a_correct_file_is_confirmed(tmp_path):
    f = tmp_path / "a.conf"
    f.write_text("# all hosts\n\nfrequency = 20\n; two\npid = %d\npid = 1\nlines = no\n"
                 "probabilistic-interval = 2m\notlp = http://127.0.0.1:4317\n" % os.getpid())
    p = profpipe("run", "--check", f)
    assert (p.returncode, p.stdout, p.stderr) == (0, f"{f}: 6 settings, all valid\n", "")


def test_each_error_of_a_file_has_its_line(tmp_path):
    f = tmp_path / "a.conf"
    f.write_text("frequncy = 20\ncpu-limit = 500\nfrequency = 20\nlines = maybe\n[run]\n"
                 "frequency = 30\nsettings = x\nwindow = 1h\nnothing\nmode = \x1b[2J\n")
    p = profpipe("run", "--check", f)
    assert (p.returncode, p.stdout) == (2, "")
    found = sorted(p.stderr.splitlines(), key=lambda x: int(x.split(":")[3]))
    assert found == [f"profpipe: error: {f}:{x}" for x in [
        "1: frequncy: unknown key; did you mean frequency?",
        "2: cpu-limit: 500: out of range; give a whole number from 1 to 100",
        "4: lines: maybe: unknown; give no or yes",
        "5: begins a section; remove the line, since all keys stand alone",
        "6: frequency: is also set in line 3; remove one of them",
        "7: settings: unknown key; see `profpipe --help` for all options",
        "9: no setting; write `key = value`, or # before a comment",
        "10: mode: \\x1b[2J: not a mode; give one to three octal digits, as 640"]]


X = "otlp = http://x:1"
TLS = "otlp = https://x:1"


@pytest.mark.parametrize("lines,errors", [
    (["frequency = 20", "otlp = htp://x:1"], ["2: otlp: htp://x:1: has neither http:// nor"]),
    ([X, "otlp-key = /no/key"], ["2: otlp-key: "]),
    (["cpu = 8191"], ["1: cpu: 8191: there is no such cpu"]),
    (["", "descendants = yes"], ["2: descendants: needs --pid"]),
    (["otlp-protocol = grpc"], ["1: otlp-protocol: needs --otlp"]),
    (["output = x.html"], ["1: output: x.html: its format, html, is written at the end"]),
    (["output-dir = .", "output = a.otlp"], ["1: output-dir: not together with --output"]),
    (["rotate = 1h", "output = a.otlp"], ["1: rotate: needs --output-dir"]),
    ([X, "format = html"], ["2: format: html: has no output"]),
    (["otlp = ftp://x", "window = 0", "descendants = yes", "otlp = http://u:p@h", X,
      "otlp = http://x:99999"],
     ["2: window: ", "3: descendants: ", "1: otlp: ftp://x: ", "4: otlp: endpoint 2: the URL has a",
      "6: otlp: http://x:99999: is not a URL"]),
    ([TLS, "otlp-header-file = open", "otlp-ca = a.conf", "otlp-spool = /etc", "otlp = http://y",
      "otlp-header-file = none", "output = none/a.otlp"],
     ["7: output: none/a.otlp: No such file", "4: otlp-spool: /etc: is a folder of the system",
      "2: otlp-header-file: open: others can read it", "3: otlp-ca: a.conf: has no valid cert",
      "6: otlp-header-file: none: does not exist"]),
    (["output-dir = none"], ["1: output-dir: none: No such file or directory"]),
], ids=lambda x: x[0][:30])
def test_check_names_each_error_that_would_stop_the_run(tmp_path, lines, errors):
    f = tmp_path / "a.conf"
    f.write_text("\n".join(lines))
    (tmp_path / "open").write_text("a: b")
    (tmp_path / "open").chmod(0o644)
    p = profpipe("run", "--check", f, cwd=tmp_path)
    assert (p.returncode, p.stdout, p.stderr.count("\n")) == (2, "", len(errors)), p.stderr
    for said, line in zip(p.stderr.splitlines(), errors, strict=True):
        assert said.startswith(f"profpipe: error: {f}:{line}"), p.stderr


REFUSED = [
    ([], "--otlp: missing; name a receiver, a folder with --output-dir, or an output with -o"),
    (["--output-dir", "x", "-o", "y"], "--output-dir: not together with --output; "),
    (["--output-dir", "x", "-f", "stream"], "--format: stream: has one beginning and one end; "),
    (["-o", "x.otlp", "--keep", "3"], "--keep: needs --output-dir"),
    (["--output-dir", "x", "--rotate", "0.5s"], "--rotate: 0.5s: out of range; give 1s to 24h"),
    (["--output-dir", "x", "--keep-size", "1K"], "--keep-size: 1K: "),
    (["-o", "x.pb.gz"], "--output: x.pb.gz: its format, pprof, is written at the end, "),
    (["-o", "x.otlp", "-f", "pprof"], "--format: pprof: is written at the end, and run has "),
    (["x"], "x: not an option; "),
    (["--check", "a", "--settings", "b"], "--check: not together with --settings; "),
    (["--settings", "a", "--settings", "b"], "--settings: b: "),
    (["--settings", "/no/file"], "/no/file: No such file or directory; "),
    (["--check", "/"], "/: is not a regular file; "),
    (["--check", "/dev/null"], "/dev/null: is not a regular file; "),
    (["--probabilistic-threshold", "0"], "--probabilistic-threshold: 0: "),
    (["--probabilistic-interval", "0.5s"], "--probabilistic-interval: 0.5s: out of range; "),
    (["-d", "5"], "-d: unknown option; "),
    (["--metrics", "0.0.0.0:9464"], "--metrics: 0.0.0.0:9464: not an address of this host alone; "),
]


@pytest.mark.parametrize("args,line", REFUSED, ids=[" ".join(r[0])[:40] for r in REFUSED])
def test_a_wrong_command_line_is_refused_in_one_line(tmp_path, args, line):
    p = profpipe("run", *args, cwd=tmp_path)
    assert (p.returncode, p.stdout, p.stderr.count("\n")) == (2, "", 1), p.stderr
    assert p.stderr.startswith(f"profpipe: error: {line}"), p.stderr
    assert not any(tmp_path.iterdir())


def test_an_option_replaces_the_key_of_the_file(tmp_path):
    f = tmp_path / "a.conf"
    f.write_text("output = a.otlp\nfrequency = 20\n")
    p = profpipe("run", "--check", f, "-o", "b.otlp", "-F", "30")
    assert (p.returncode, p.stderr) == (0, "")
    f.write_text("output = a.otlp\nfrequency = x\n")
    p = profpipe("run", "--check", f, "-F", "30")
    assert p.returncode == 2 and f"{f}:2: frequency: x: " in p.stderr


# --- the run ---

def test_a_service_says_when_it_is_ready_lives_and_ends(tmp_path):
    out = tmp_path / "out.otlp"
    with Service(tmp_path, [*GOOD, f"output = {out}"], WATCHDOG_USEC="4000000") as s:
        assert re.match(rf"sampling at {HZ} Hz; \d+ samples, 0 lost, 0 restarts",
                        s.manager.wait("STATUS="))
        # On a busy machine the start may take longer than half of the watchdog's time.
        assert next(x for x in s.manager.heard if x != "WATCHDOG=1") == "READY=1"
        s.manager.wait("WATCHDOG=1", 10)
        s.manager.wait("WATCHDOG=1", 10)
        status, said = s.end()
    assert status == 0 and "error" not in said, said
    assert requests(out.read_bytes())


def test_a_service_that_is_ended_before_it_samples_ends_well(tmp_path):
    with Service(tmp_path, [*GOOD, f"output = {tmp_path / 'out.otlp'}"]) as s:
        while not children(s.p.pid):
            assert s.p.poll() is None, s.said()
            time.sleep(0.001)
        s.p.terminate()
        assert s.p.wait(60) == 0, s.said()


def test_a_killed_tool_is_started_again(tmp_path):
    with spinner() as pid, GrpcReceiver() as r:
        with Service(tmp_path, [*GOOD, f"otlp = {r.url}", f"pid = {pid}"]) as s:
            s.manager.wait("READY=1")
            kill_tool(s.p.pid, "prof-symd")
            assert r.wait(len(r.taken) + 4)
            status, said = s.end()
        assert status == 0, said
        assert "prof-symd ended (signal 9 (Killed)); restarting it" in said, said


# --- reloading ---

def test_reloads_lose_no_sample(tmp_path):
    with spinner() as pid, GrpcReceiver() as a, GrpcReceiver() as b:
        lines = [GOOD[0], "window = 3", "window-jitter = 0", f"pid = {pid}"]
        with Service(tmp_path, [*lines, "cpu-limit = 100", f"otlp = {a.url}"], "-v") as s:
            s.manager.wait("READY=1")
            before = cpu_s(pid)
            for i in range(5):
                time.sleep(2)
                s.reload([*lines, f"cpu-limit = {99 - i}", f"otlp = {(b if i == 2 else a).url}",
                          "probabilistic-threshold = 100"])
            time.sleep(1)
            spent = cpu_s(pid) - before
            status, said = s.end()
        assert status == 0 and said.count("reloaded") == 5, said
        n = count([a, b])
    assert "samples were lost" not in said, said
    # A virtual machine loses ticks. The summary counts samples that profpipe misses.
    assert n >= 0.7 * HZ * spent, (n, spent, said)
    assert "nothing was lost" in said or "no sample was lost" in said, said


def test_another_receiver_gets_all_from_a_reload_on(tmp_path):
    with spinner() as pid, GrpcReceiver() as a, GrpcReceiver() as b:
        lines = [*GOOD[:2], "window = 3", "window-jitter = 0", f"pid = {pid}"]
        with Service(tmp_path, [*lines, f"otlp = {a.url}"]) as s:
            assert a.wait(1)
            s.reload([*lines, f"otlp = {b.url}"])
            assert b.wait(2, 40), s.said()
            had = len(a.taken)
            status, said = s.end()
        assert status == 0, said
        assert len(a.taken) == had <= 3 and not a.wrong and not b.wrong
        assert "started again" not in said, "a planned end is no restart"
        m = re.search(r"OTLP: (\d+) requests with (\d+) samples; (\d+) delivered", said)
        assert m and int(m[1]) == int(m[3]) == len(a.taken) + len(b.taken), said
        assert count([a, b]) == int(m[2]) > 20, said


@pytest.mark.check_all
def test_a_replaced_file_of_names_is_followed(tmp_path):
    """prof-send may open only the files that existed when it started."""
    etc = tmp_path / "etc"
    shutil.copytree("/etc", etc, symlinks=True)

    def collector_is_at(address):
        new = etc / "hosts.new"
        new.write_text(f"127.0.0.1 localhost\n{address} collector.test\n")
        new.rename(etc / "hosts")
    collector_is_at("127.0.0.1")
    enter = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', etc]
    with spinner() as pid, GrpcReceiver() as a, GrpcReceiver(port=a.port, host="127.0.0.2") as b:
        lines = [*GOOD[:2], "window = 3", "window-jitter = 0", f"pid = {pid}",
                 f"otlp = http://collector.test:{a.port}"]
        with Service(tmp_path, lines, "-v", prefix=enter) as s:
            assert a.wait(1), s.said()
            collector_is_at("127.0.0.2")
            assert b.wait(2, 60), s.said()
            had = len(a.taken)
            collector_is_at("127.0.0.2")  # the same text in another file
            until_s = time.monotonic() + 60
            while s.said().count("has changed") < 2:
                assert time.monotonic() < until_s, s.said()
                time.sleep(0.1)
            assert b.wait(len(b.taken) + 2, 60), s.said()
            status, said = s.end()
        assert status == 0 and "/etc/hosts has changed" in said, said
        assert len(a.taken) == had and not a.wrong and not b.wrong
        m = re.search(r"OTLP: (\d+) requests with (\d+) samples; (\d+) delivered", said)
        assert m and int(m[1]) == int(m[3]) == len(a.taken) + len(b.taken), said


def test_delivery_returns_after_any_failure_of_prof_send(tmp_path):
    """A file that became bad stops only its own endpoint. A prof-send that keeps ending is started
    again at SIGHUP."""
    token, port = tmp_path / "token", spare_port()
    token.write_text("authorization: one\n")
    token.chmod(0o600)
    with spinner() as pid, GrpcReceiver() as a, GrpcReceiver() as b:
        lines = [*GOOD, f"pid = {pid}", f"metrics = 127.0.0.1:{port}", f"otlp = {a.url}",
                 f"otlp-header-file = {token}", f"otlp = {b.url}"]
        with Service(tmp_path, lines) as s:
            assert a.wait(1) and b.wait(1), s.said()
            token.chmod(0o644)
            s.reload([*lines, "otlp-timeout = 5"])
            kill_tool(s.p.pid, "prof-send")
            s.wait_for("requests wait for it")
            n = len(a.taken), len(b.taken)
            assert b.wait(n[1] + 2, 60) and len(a.taken) == n[0], s.said()
            token.chmod(0o600)
            assert a.wait(n[0] + 1, 60), s.said()
            end = time.monotonic() + 120
            while "keeps ending" not in s.said() and time.monotonic() < end:
                with contextlib.suppress(KeyError, ProcessLookupError):
                    os.kill(children(s.p.pid)["prof-send"], signal.SIGKILL)
                time.sleep(0.02)
            until(port, lambda m: m["up"] == 0)
            s.reload(lines)
            n = len(a.taken), len(b.taken)
            assert a.wait(n[0] + 1, 60) and b.wait(n[1] + 1, 60), s.said()
            until(port, lambda m: m["up"] == 1)
            status, said = s.end()
    errors = [x.removeprefix(f"profpipe: error: {s.file}") for x in said.splitlines()
              if " error: " in x]
    assert errors[:2] == [f":8: otlp-header-file: {token}: others can read it; run chmod 600",
                          ": the settings stay as they were"], said
    assert "others can read it; run chmod 600; requests wait for it" in said, said
    assert status == 0 and "prof-send works again" in said, said


def test_a_reload_refuses_fixed_settings_by_name(tmp_path):
    out = f"output = {tmp_path / 'out.otlp'}"
    with Service(tmp_path, [*GOOD, out, "probabilistic-threshold = 100"], "-v") as s:
        s.manager.wait("READY=1")
        s.reload(["cpu-limit = 50", "frequency = 50", "memory-limit = 256M", out])
        s.reload(["cpu-limit = 500"])
        s.reload([*GOOD, out])
        status, said = s.end()
    errors = [x.removeprefix(f"profpipe: error: {s.file}") for x in said.splitlines()
              if " error: " in x]
    assert errors == [
        ":3: memory-limit: cannot change while profpipe runs; restart it, or remove it",
        ":2: frequency: cannot change while profpipe runs; restart it, or put the old value back",
        ":3: window: cannot be removed while profpipe runs; restart it, or put the old value back",
        ":4: window-jitter: cannot be removed while profpipe runs; restart it, or put the old "
        "value back",
        ": the settings stay as they were",
        ":1: cpu-limit: 500: out of range; give a whole number from 1 to 100",
        ": the settings stay as they were"], said
    assert status == 0 and said.count("reloaded") == 1, said


# --- a folder of files ---

def folder(tmp_path, *lines):
    """Settings for a folder below tmp_path."""
    (tmp_path / "profiles").mkdir()
    return [*GOOD[:2], f"output-dir = {tmp_path / 'profiles'}", *lines]


def files(tmp_path):
    """The complete files, the oldest first."""
    return sorted(p for p in (tmp_path / "profiles").iterdir()
                  if not p.name.endswith(".part") and ".journal" not in p.name)


def wait_for_files(s, tmp_path, n, seconds=180):
    until_s = time.monotonic() + seconds
    while len(files(tmp_path)) < n:
        assert time.monotonic() < until_s and s.p.poll() is None, s.said()
        time.sleep(0.05)


def nothing_lost(said):
    """No sample is lost. On a busy host the kernel may drop other events."""
    return ("nothing was lost" in said or "no sample was lost" in said) and (
        "not sampled" not in said)


def folded(paths):
    """The number of samples in the files."""
    return sum(int(x.rsplit(" ", 1)[1]) for p in paths for x in p.read_text().splitlines())


def test_files_follow_each_other_without_a_gap(tmp_path):
    lines = folder(tmp_path, "rotate = 2s")
    with spinner() as pid, Service(tmp_path, [*lines, f"pid = {pid}"]) as s:
        wait_for_files(s, tmp_path, 4)
        status, said = s.end()
    assert status == 0 and nothing_lost(said), said
    assert {p.name for p in (tmp_path / "profiles").iterdir()} == {p.name for p in files(tmp_path)}
    end, count, lengths = 0, 0, []
    for path in files(tmp_path):
        assert re.fullmatch(r"\d{8}T\d{6}Z\.pb\.gz", path.name)
        assert path.stat().st_mode & 0o777 == 0o640
        p = decode(path.read_bytes())
        # A file that begins when sampling ends covers no time, and the field is then left out.
        begin, length = int(p["time_nanos"][0]), int(p.get("duration_nanos", [0])[0])
        assert not end or abs(begin - end) < 1_000_000, (begin, end)
        end = begin + length
        lengths.append(length / 1e9)
        assert "cut short" not in str(p.get("comment"))
        # On a busy host, the first samples may wait for names until the next file.
        count += sum(int(x["value"][0]) for x in p.get("sample", []))
    assert count == int(re.search(r"^(\d+) samples in", said, re.M)[1]), said
    # On a busy host, one file may begin late and the next one in time.
    assert sum(lengths[:4]) > 4 * 1.6, lengths


def test_only_the_newest_files_are_kept(tmp_path):
    lines = folder(tmp_path, "rotate = 1s", "keep = 2", "format = folded")
    with spinner() as pid, Service(tmp_path, [*lines, f"pid = {pid}"]) as s:
        wait_for_files(s, tmp_path, 1)
        first, = files(tmp_path)
        until_s = time.monotonic() + 180
        while first.exists():
            assert time.monotonic() < until_s
            # A new file is there before the oldest one is removed.
            assert len(files(tmp_path)) <= 3
            time.sleep(0.02)
        status, said = s.end()
    assert status == 0 and len(files(tmp_path)) == 2, said


def test_all_samples_are_sent_beside_files(tmp_path):
    lines = folder(tmp_path, "rotate = 2s", "format = folded", "window = 0.5")
    with spinner() as pid, GrpcReceiver() as r:
        with Service(tmp_path, [*lines, f"pid = {pid}", f"otlp = {r.url}"]) as s:
            wait_for_files(s, tmp_path, 2)
            status, said = s.end()
        assert status == 0 and nothing_lost(said), said
        assert count([r]) == folded(files(tmp_path)) > 10, said


def test_a_killed_prof_export_or_prof_symd_costs_no_file(tmp_path):
    lines = folder(tmp_path, "rotate = 2s", "format = folded")
    with spinner() as pid, Service(tmp_path, [*lines, f"pid = {pid}"]) as s:
        for i, tool in enumerate(["prof-export", "prof-symd", "prof-export"]):
            wait_for_files(s, tmp_path, 2 * i + 1)
            kill_tool(s.p.pid, tool)
        wait_for_files(s, tmp_path, 7)
        status, said = s.end()
    assert status == 0 and "not sampled" not in said, said
    found = files(tmp_path)
    assert len(found) >= 8
    assert folded(found) == int(re.search(r"^(\d+) samples in", said, re.M)[1]), said
    # The samples that the killed tools held are counted.
    lost = re.search(r"^ +(\d+)  restart: ", said, re.M)
    assert not lost or int(lost[1]) < 0.5 * folded(found), said


def test_the_next_run_continues_the_file_of_a_killed_one(tmp_path):
    lines = folder(tmp_path, "rotate = 1m", "format = folded")
    with spinner() as pid:
        with Service(tmp_path, [*lines, f"pid = {pid}"]) as s:
            # Its state comes every ten seconds.
            while s.samples() < 200:
                pass
            before, tools = time.monotonic(), children(s.p.pid).values()
            s.p.kill()
            s.p.wait()
            # The file belongs to its prof-export until that has ended.
            while any(map(lives, tools)):
                time.sleep(0.01)
        assert not files(tmp_path)
        with Service(tmp_path, [*lines, f"pid = {pid}"]) as s:
            s.manager.wait("READY=1")
            time.sleep(2)
            status, said = s.end()
        assert time.monotonic() - before < 60
    assert status == 0 and ".folded.part: its run was killed; continuing it" in said, said
    path, = files(tmp_path)
    assert folded([path]) > 200


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    p = profpipe("run", "--output-dir", tmp_path / "none")
    assert (p.returncode, p.stderr) == (1, f"profpipe: error: --output-dir: {tmp_path}/none: No "
                                           "such file or directory; name a folder that you can "
                                           "write to\n")


def test_a_folder_that_others_control_is_refused(tmp_path):
    wide, link = tmp_path / "wide", tmp_path / "link"
    wide.mkdir()
    wide.chmod(0o1777)
    link.symlink_to("/var/tmp")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    for folder, why in (wide, "every user may write to it"), (link, "is a link of another user"):
        p = profpipe("run", "--output-dir", folder)
        assert p.returncode == 1 and p.stderr.startswith(
            f"profpipe: error: --output-dir: {folder}: {why}; "), p.stderr
    assert os.listdir(wide) == []


# --- metrics ---

def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as r:
        assert r.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        lines = r.read().decode().splitlines()
    return {x.rsplit(" ", 1)[0].removeprefix("profpipe_"): float(x.rsplit(" ", 1)[1])
            for x in lines if not x.startswith("#")}


def until(port, good):
    for _ in range(300):
        with contextlib.suppress(OSError):
            m = metrics(port)
            if good(m):
                return m
        time.sleep(0.1)
    raise AssertionError(f"not within 30 s: {metrics(port)}")


def metrics_tool(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        for child in f.read().split():
            with open(f"/proc/{child}/comm") as comm:
                if comm.read() == "prof-metrics\n":
                    return int(child)
    return None


def test_figures_are_served_on_this_host_alone(tmp_path):
    port = spare_port()
    with spinner() as pid, GrpcReceiver() as r:
        with Service(tmp_path, [*GOOD, f"otlp = {r.url}", f"pid = {pid}"], "--metrics",
                     f"127.0.0.1:{port}") as s:
            # Each tool reports its own figures once a second, so one may be a second behind
            # another.
            m = until(port, lambda m: m["requests_delivered_total"] >= 3
                      and 0 < m["samples_kept_total"] <= m["samples_total"])
            assert m["up"] == m["sampling"] == 1 and m["samples_total"] > 20
            assert m["requests_total"] >= m["requests_delivered_total"]
            assert m["requests_lost_total"] == m["requests_dropped_total"] == 0
            assert m['lost_total{reason="cpu-limit"}'] == 0
            for t in ["prof-bpf", "prof-symd", "prof-export", "prof-send", "prof-metrics",
                      "profpipe"]:
                assert m[f'tool_up{{tool="{t}"}}'] == 1
                assert m[f'restarts_total{{tool="{t}"}}'] == 0
            assert m['cpu_seconds_total{tool="prof-bpf"}'] > 0
            until(port, lambda m: m['memory_bytes{tool="prof-metrics"}'] > 0)
            kill_tool(s.p.pid, "prof-symd")
            until(port, lambda m: m['restarts_total{tool="prof-symd"}'] == 1)
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
            with pytest.raises(urllib.error.HTTPError, match="405"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", b"x", timeout=10)
            for bad in [b"GET /metrics HTTP/1.1\r\nA: " + b"x" * 20000 + b"\r\n\r\n", b"\0" * 999]:
                with socket.create_connection(("127.0.0.1", port), timeout=30) as c:
                    c.sendall(bad)
                    with contextlib.suppress(ConnectionError):
                        assert re.match(rb"$|HTTP/1.. 4", c.recv(99))
            assert metrics(port)["up"] == 1
            status, said = s.end()
        assert status == 0, said
    with pytest.raises(OSError):
        metrics(port)


def test_the_server_holds_nothing_and_is_started_again(tmp_path):
    port = spare_port()
    with Service(tmp_path, [*GOOD, f"output = {tmp_path / 'o.otlp'}",
                            f"metrics = 127.0.0.1:{port}"]) as s:
        until(port, lambda m: m["up"])
        tool = metrics_tool(s.p.pid)
        with open(f"/proc/{tool}/status") as f:
            status = f.read()
        for caps in "Eff", "Bnd", "Amb":
            assert re.search(rf"^Cap{caps}:\t0+$", status, re.M), status
        assert "\nNoNewPrivs:\t1\n" in status
        assert "\nSeccomp:\t2\n" in status and re.search(r"^Groups:\t *$", status, re.M)
        uids = {status_of(p)["Uid"].split()[0] for p in children(s.p.pid).values()}
        assert status_of(tool)["Uid"].split()[0] not in uids | {"0"}
        held = {os.readlink(f"/proc/{tool}/fd/{n}").split(":")[0]
                for n in os.listdir(f"/proc/{tool}/fd")}
        assert held <= {"/dev/null", "pipe", "socket", "anon_inode"}
        os.kill(tool, signal.SIGKILL)
        until(port, lambda m: metrics_tool(s.p.pid) not in (tool, None) and m["up"])
        again = spare_port()
        s.reload([*GOOD, f"output = {tmp_path / 'o.otlp'}", f"metrics = 127.0.0.1:{again}"])
        until(again, lambda m: m["up"])
        status, said = s.end()
    assert status == 0 and "prof-metrics ended (signal 9 (Killed))" in said, said
    assert re.search(r"cost: .*; prof-metrics \d+\.\d+ s, \d", said), said


def test_a_port_in_use_is_reported(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        at = f"127.0.0.1:{other.getsockname()[1]}"
        p = profpipe("run", "-o", tmp_path / "o.otlp", "--metrics", at)
    assert p.returncode == 1 and not (tmp_path / "o.otlp").exists()
    assert p.stderr == (f"profpipe: error: --metrics: {at}: Address already in use; "
                        "choose another port\n")


def test_silent_clients_keep_no_other_client_out():
    life, word = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as idle:
        fds = [listener.fileno(), life]
        argv = [f"{BUILD}/prof-metrics", "--listen-fd", str(fds[0]), "--life-fd", str(fds[1])]
        at = listener.getsockname()
        with subprocess.Popen(argv, pass_fds=fds) as p, contextlib.ExitStack() as at_last:
            at_last.callback(p.kill)
            for i in range(80):
                c = idle.enter_context(socket.create_connection(at, timeout=10))
                # Some start a request, and one requests an answer that it does not read.
                c.sendall([b"", b"G", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                           b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20][i % 4]
                          if i < 40 else b"GET /met")
            for _ in range(20):
                began = time.monotonic()
                assert metrics(at[1])["up"] == 0 and time.monotonic() - began < 3
            with open(f"/proc/{p.pid}/status") as f:
                assert int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) < 16 << 10
            os.close(word)
            assert p.wait(10) == 0
    os.close(life)


@pytest.mark.parametrize("args,line,status", [
    ([], "--listen-fd: missing; ", 2), (["--listen-fd", "7"], "--life-fd: missing; ", 2),
    (["x"], "x: not an option; ", 2),
    (["--listen-fd", "70", "--life-fd", "71"], "--listen-fd: the descriptor is not open; ", 1),
])
def test_prof_metrics_by_hand_is_refused(args, line, status):
    p = subprocess.run([f"{BUILD}/prof-metrics", *args], capture_output=True, text=True, timeout=20,
                       check=False)
    assert (p.returncode, p.stdout, p.stderr.count("\n")) == (status, "", 1), p.stderr
    assert p.stderr.startswith(f"prof-metrics: error: {line}"), p.stderr


# --- probabilistic profiling ---

MASK = (1 << 64) - 1


def mix(n):
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9 & MASK
    n = (n ^ n >> 27) * 0x94d049bb133111eb & MASK
    return n ^ n >> 31


def thrown(hours):
    """The threshold above which this host samples now, with intervals of this many hours."""
    with open("/proc/sys/kernel/random/boot_id", "rb") as f:
        seed = 0
        for byte in f.read():
            seed = mix(seed + byte + 1 & MASK)
    interval = int(time.time()) // (hours * 3600)
    return (mix(mix(seed) + (interval + 1) * 0x9e3779b97f4a7c15 & MASK) >> 32) * 100 >> 32


def test_a_host_samples_in_its_intervals_only(tmp_path):
    # The present interval does not end during this test.
    hours, coin = next((h, thrown(h)) for h in range(24, 1, -1)
                       if 0 < thrown(h) < 100 and time.time() % (h * 3600) < h * 3600 - 300)
    with spinner() as pid:
        lines = [*GOOD, f"pid = {pid}", f"output = {tmp_path / 'out.otlp'}",
                 f"probabilistic-interval = {hours}h"]
        with Service(tmp_path, [*lines, f"probabilistic-threshold = {coin}"]) as s:
            assert s.manager.wait("STATUS=") == (
                    f"resting, samples at {HZ} Hz; 0 samples, 0 lost, 0 restarts")
            used = cpu_s(pid)
            while cpu_s(pid) < used + 0.5:
                time.sleep(0.1)
            assert s.samples() == 0
            s.reload([*lines, f"probabilistic-threshold = {coin + 1}"])
            used = cpu_s(pid)
            while cpu_s(pid) < used + 1:
                time.sleep(0.1)
            status, said = s.end()
    assert status == 0, said
    n = int(re.search(r"^(\d+) samples in", said, re.M)[1])
    assert 0.7 * HZ <= n, said
