# SPDX-License-Identifier: Apache-2.0
"""A day of samples in minutes: prof-export and prof-send as a service runs them, fed with the
stream of a churning host. Memory stays flat, each sample arrives once, and no time is missing, also
when a receiver, prof-send or prof-export ends meanwhile. Only loopback addresses."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import BUILD, profpipe
from otlp_rules import check, schema, split
from receivers import GrpcReceiver
from running import Run, burn, kill_tool
from sending import CLEAN
from streams import HELLO

HZ = 20
SECOND = 10**9
STEP_S = 300  # of the host's time, after which the receiver has to keep up
LAG = 4 * HZ * 5  # samples in open windows, and on their way
FLAT_KIB = 1024

pytestmark = pytest.mark.check_all


class Host:
    """The named stream of a host on which, with one cpu busy, processes start every ten seconds,
    files and functions every minute, and cgroups every ten minutes. prof-symd begins a new epoch
    every hour. `greets`: there is another prof-symd."""

    def __init__(self):
        self.began_ns, self.wall_ns = time.monotonic_ns(), time.time_ns()
        self.at, self.samples, self.epochs, self.greets = 0, 0, 0, True

    def hello(self):
        line = HELLO.replace("hz=99 period=10101010", f"hz={HZ} period={SECOND // HZ}")
        return re.sub(r"mono_ns=.*", f"mono_ns={self.began_ns} wall_ns={self.wall_ns}", line)

    def epoch(self):
        self.epochs += 1
        yield f"epoch {self.epochs}"
        if self.greets:
            yield self.hello()
        self.greets = False
        yield 'file id=1 dev=1 inode=1 path="/usr/bin/python3.11"'
        for i in range(1, 41):
            yield f'function id={i} name="ns::function_{i}(int)" source="/src/{i % 7}.cc"'
            yield (f"frame id={i} file=1 offset={4096 * i} address={4096 * i} functions=[{i}] "
                   "lines=[3]")
        for i in range(1, 31):
            yield f"stack id={i} frames=[{','.join(str(i + k) for k in range(10))}]"

    def churn_files(self):
        n = self.at // 60 + 2
        yield f'file id={n} dev=1 inode={n} path="/srv/app/releases/{n}/lib{n}.so"'
        for k in range(3):
            i = 3 * n + k + 1000
            yield f'function id={i} name="handler_{i}" source="/srv/app/releases/{n}/h.py"'
            yield (f"frame id={i} kind=2 file={n} offset={i} runtime=1 process={self.process()} "
                   f"functions=[{i}] lines=[{k + 1}]")
            yield f"stack id={i} frames=[{i},{k + 1},{k + 2}]"

    def process(self):
        return self.at // 10 + 1

    def churn_processes(self, epoch):
        n = self.process()
        if not epoch:
            yield f"process_end id={n - 1} time_ns={self.now()}"
        cgroup = self.at // 600 + 1
        yield f'cgroup id={cgroup} path="/system.slice/job-{cgroup}.service"'
        yield f'process id={n} pid={n} start_ns={self.now()} comm="job" cgroup={cgroup}'
        yield f'thread id={n} process={n} tid={n} comm="job {n}"'

    def now(self, tick=0):
        return self.began_ns + self.at * SECOND + tick * SECOND // HZ

    def seconds(self, n):
        """The lines of the next n seconds."""
        for _ in range(n):
            epoch = self.at % 3600 == 0 or self.greets
            if epoch:
                yield from self.epoch()
            if epoch or self.at % 10 == 0:
                yield from self.churn_processes(epoch)
            if epoch or self.at % 60 == 0:
                yield from self.churn_files()
            thread, file = self.process(), self.at // 60 + 2
            for tick in range(HZ):
                stack = 3 * file + tick % 3 + 1000 if tick % 4 == 0 else self.at % 30 + 1
                yield (f"sample stack={stack} thread={thread} cpu={tick % 2} "
                       f"time_ns={self.now(tick)} value={SECOND // HZ}")
                self.samples += 1
            self.at += 1
            if self.at % 60 == 0:
                yield f'figure name="sampled_until" value={self.now()}'


class Seen(dict):
    """The time window of each request."""

    samples = 0

    def add(self, request):
        # One that arrives twice is the same.
        if (key := hash(request)) not in self:
            self[key] = window_of(schema().ProfilesData.FromString(request))
            self.samples += self[key][2]


class Sink(GrpcReceiver):
    """A receiver that keeps no request."""

    def __init__(self, seen, port=0):
        super().__init__(port=port)
        self.seen, self.taken = seen, self

    def append(self, request):
        self.seen.add(request)


def window_of(request):
    """When it begins and ends, and its samples."""
    ps = [p for r in request.resource_profiles for s in r.scope_profiles for p in s.profiles]
    (begin, length), = {(p.time_unix_nano, p.duration_nano) for p in ps}
    return begin, begin + length, sum(len(x.timestamps_unix_nano) for p in ps for x in p.samples)


def assert_gapless(windows, host):
    """Each window starts where the last one ended, from the first sample to the last."""
    spans = sorted({w[:2] for w in windows})
    assert sum(w[2] for w in windows) == host.samples
    for (_, end), (begin, _) in zip(spans, spans[1:]):
        assert begin == end
    assert spans[-1][1] - spans[0][0] >= (host.at - 1) * SECOND


def until(good, what, seconds=60):
    end = time.monotonic() + seconds
    while not good():
        assert time.monotonic() < end, what
        time.sleep(0.01)


class Tools:
    """prof-export, and a prof-send if there is a receiver."""

    def __init__(self, folder, *args, output=None):
        self.dir, self.args = folder / "run", args
        (self.dir / "export").mkdir(parents=True)
        self.life = os.pipe()
        self.files = []
        if output:
            self.files = [os.open(output, os.O_RDWR | os.O_CREAT, 0o600),
                          os.open(folder, os.O_RDWR | os.O_TMPFILE, 0o600)]
        self.err = open(folder / "stderr", "w+b")
        self.export = self.send = self.symd = None

    def start(self, tool, *args, **kw):
        return subprocess.Popen([f"{BUILD}/{tool}", "--run-dir", self.dir, "--life-fd",
                                 str(self.life[0]), *map(str, args)], stderr=self.err, env=CLEAN,
                                pass_fds=[self.life[0], *self.files], **kw)

    def start_export(self):
        files = [x for name, fd in zip(["--output-fd", "--journal-fd"], self.files)
                 for x in (name, str(fd))]
        self.export = self.start("prof-export", *self.args, *files)

    def start_symd(self):
        self.symd = subprocess.Popen([f"{BUILD}/tests/mkstream", self.dir], text=True,
                                     stdin=subprocess.PIPE, stderr=self.err)

    def start_send(self, url, *args):
        """Waits until it is connected: until then, prof-export drops its requests."""
        sealed = "network: the host's"
        before = self.said().count(sealed)
        self.send = self.start("prof-send", "-v", "--otlp", url, *args)
        until(lambda: self.said().count(sealed) > before, self.said())

    def feed(self, lines):
        try:
            self.symd.stdin.write("\n".join(lines) + "\n")
            self.symd.stdin.flush()
        except BrokenPipeError as e:
            raise AssertionError(self.said()) from e

    def end(self, host, send=0):
        """The stream ends, and then all tools do; prof-send with this status."""
        self.feed([f"end time_ns={host.now()}"])
        self.symd.stdin.close()
        for p, status in (self.export, 0), (self.symd, 0), (self.send, send):
            assert not p or p.wait(60) == status, self.said()

    def said(self):
        self.err.seek(0)
        return self.err.read().decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.export, self.send, self.symd:
            if p:
                p.kill()
                p.wait()
        if self.symd:
            with contextlib.suppress(OSError):
                self.symd.stdin.close()
        for fd in *self.life, *self.files:
            os.close(fd)
        self.err.close()


def memory_kib(p):
    """Private memory only: what it shares with other processes depends on what else runs."""
    with open(f"/proc/{p.pid}/smaps_rollup") as f:
        return int(re.search(r"^Anonymous:\s+(\d+)", f.read(), re.M)[1])


def settle(number):
    """Waits until the number stays the same for a while."""
    before = None
    while (now := number()) != before:
        before = now
        time.sleep(0.3)


@pytest.fixture
def spool():
    """In memory, because the time of a disk to sync does not matter here."""
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("hours", [3, 24])
def test_a_day_of_samples_arrives_in_flat_memory(tmp_path, spool, hours):
    host, seen, memory = Host(), Seen(), {}
    steps = hours * 3600 // STEP_S
    # Half an outage before prof-send is killed, and half an outage behind it.
    away, killed, back = steps // 2, steps // 2 + 1, steps // 2 + 2
    with contextlib.ExitStack() as receivers, Tools(tmp_path, "-f", "otlp", "--send") as t:
        sink = receivers.enter_context(Sink(seen))
        args = [sink.url, "--otlp-spool", spool]
        t.start_export()
        t.start_send(*args)
        t.start_symd()
        for step in range(steps):
            if step == away:
                receivers.close()
            if step == killed:
                # Requests that prof-export makes while there is no prof-send would be lost.
                settle(lambda: len(os.listdir(spool)))
                assert len(os.listdir(spool)) >= STEP_S / 10, "nothing waits in the spool"
                t.send.kill()
                t.send.wait()
                t.start_send(*args)
            if step == back:
                sink = receivers.enter_context(Sink(seen, sink.port))
            t.feed(host.seconds(STEP_S))
            if not away <= step < back:
                until(lambda: seen.samples >= host.samples - LAG,
                      f"fewer than {host.samples} samples after {host.at} s: {t.said()}")
            # A twelfth of the time is enough for the memory of a first epoch and of first
            # connections.
            for tool in (t.export, t.send) if step >= steps // 12 and step != killed else ():
                memory.setdefault(tool.pid, []).append(memory_kib(tool))
        t.end(host)
        assert_gapless(list(seen.values()), host)
        assert len(memory) == 3
        for pid, kib in memory.items():
            assert max(kib) - min(kib) <= FLAT_KIB, (pid == t.export.pid, kib)
        assert not os.listdir(spool)


@pytest.mark.parametrize("hours", [9, 48])
def test_an_output_of_weeks_survives_kills_of_prof_export(tmp_path, hours):
    """At the least memory, the journal holds 12 MiB, which are six hours here. Its prof-export is
    killed every four hours."""
    host, out = Host(), tmp_path / "out.otlp"
    most = 0
    with Tools(tmp_path, "-f", "otlp", "--memory-limit", "64M", output=out) as t:
        journal = t.files[1]
        for hour in range(hours):
            if hour % 4 == 0:
                host.greets = True
                t.start_export()
                t.start_symd()
            t.feed([*host.seconds(3600), "flush"])
            settle(lambda: os.lseek(journal, 0, os.SEEK_END))
            most = max(most, os.fstat(journal).st_blocks * 512)
            if hour % 4 == 3 and hour + 1 < hours:
                for p in t.export, t.symd:
                    p.kill()
                    p.wait()
                t.symd.stdin.close()
                with open(out, "ab") as f:
                    f.write(b"torn")
        t.end(host)
        assert most < 13 << 20
    windows = []
    for i, message in enumerate(split(out.read_bytes())):
        r = schema().ProfilesData.FromString(message)
        windows.append(window_of(r))
        if i % 100 == 0:
            check(r)
    assert_gapless(windows, host)
    # Without rolling, the journal would have become full.
    assert hours * 3600 * HZ * 20 > 12 << 20


def test_a_recording_goes_on_behind_a_journal_that_has_rolled(tmp_path):
    """With so many samples, an epoch of prof-symd takes a quarter of a minute."""
    out, summary = tmp_path / "out.prof", tmp_path / "summary.json"
    with Run("-F", "4999", "-o", out, "--memory-limit", "64M", "--summary", summary, "--",
             *burn(60)) as run:
        run.sampling()
        time.sleep(50)
        before = out.stat().st_size
        kill_tool(run.p.pid, "prof-export")
        status, _, said = run.end(90)
    s = json.loads(summary.read_text())
    assert s["restarts"]["prof-export"] == 1 and before > 4 << 20, said
    text = profpipe("report", out, "-f", "text", "-o", "-").stdout
    assert len(re.findall(r"^\S.* cpu-clock", text, re.M)) == s["samples"] > 100000, said
    assert s["lost_total"] < s["samples"] / 10 and status == 0, said
