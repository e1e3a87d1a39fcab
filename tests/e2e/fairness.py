# SPDX-License-Identifier: Apache-2.0
"""For tests of what an ordinary user can cost others: attackers and a victim under different users,
and the victim's share of stacks that are complete and named."""
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
from types import SimpleNamespace

from conftest import BUILD
from test_chain import shape

VICTIM, ATTACKER = 61001, 62001  # users of no name; twenty attackers are 62001 to 62020
DEPTH, RATE = 10, 99
HERTZ = os.sysconf("SC_CLK_TCK")


def as_user(uid, argv, nice=0, by=(), **kw):
    """Starts a program as an ordinary user, in a session of its own. It ends with us. Where the
    scheduler divides the cpus between sessions, nice is the session's. by: the beginning of the
    command, as root."""
    p = subprocess.Popen([*by, "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                          "--inh-caps=-all", "--pdeathsig=KILL", "nice", "-n", str(nice),
                          *map(str, argv)], start_new_session=True, **kw)
    if nice:
        with contextlib.suppress(OSError), open(f"/proc/{p.pid}/autogroup", "w") as f:
            f.write(str(nice))
    return p


def end(processes):
    """Kills all of them before waiting for any: while one of them exits, it shares the cpus with
    those that still run."""
    for p in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, 9)
    for p in processes:
        p.wait()


def reachable(folder):
    """Lets every user into a folder below /tmp."""
    os.chmod(folder, 0o755)
    for parent in folder.parents:
        if parent.stat().st_mode & 0o001 == 0 and str(parent).startswith("/tmp/"):
            os.chmod(parent, 0o755)


def running():
    """How many tasks run or wait for a cpu."""
    with open("/proc/loadavg") as f:
        return int(f.read().split()[3].split("/")[0])


def read_log(p, log):
    """Reads a run's messages to their end. Returns when sampling began."""
    began = None
    for line in p.stderr:
        log.append(line)
        if "sampling has begun" in line:
            began = time.monotonic()
    return began


def recorded(tmp_path, seconds, *options):
    """Records the host. Returns the stacks, the summary, the messages; `late`: how many seconds the
    run continued after its duration; `busy`: how many tasks per cpu were runnable at its end."""
    out, summary = tmp_path / "out.folded", tmp_path / "summary.json"
    log = []
    with subprocess.Popen([f"{BUILD}/profpipe", "record", "-v", "-o", out, "--summary", summary,
                           "-d", str(seconds), *map(str, options)], stderr=subprocess.PIPE,
                          text=True, errors="replace") as p:
        watch = threading.Timer(120, p.kill)
        watch.start()
        try:
            began = read_log(p, log)
            p.wait()
        finally:
            watch.cancel()
        ended, busy = time.monotonic(), running()
    stderr = "".join(log)
    assert p.returncode == 0, stderr
    stacks = []
    for line in out.read_text(errors="replace").splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks.append((stack.split(";"), int(count)))
    return SimpleNamespace(stacks=stacks, summary=json.loads(summary.read_text()), stderr=stderr,
                           late=ended - began - seconds, busy=busy / os.cpu_count(),
                           began=began)


class Clock(threading.Thread):
    """Records the cpu time of a process ten times a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path, self.notes, self.over = f"/proc/{pid}/stat", [], threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.1):
            with contextlib.suppress(OSError), open(self.path) as f:
                ticks = f.read().rsplit(")", 1)[1].split()[11:13]
                self.notes.append((time.monotonic(), sum(map(int, ticks)) / HERTZ))

    def between(self, start, stop):
        within = [cpu for at, cpu in self.notes if start <= at <= stop]
        return within[-1] - within[0] if within else 0


def native_victim(folder, chain):
    """A program without frame pointers, whose names are in a debug file. Returns its command, its
    debug file, and a function that tells whether a stack is complete and named."""
    program = folder / "victim"
    built = chain(DEPTH)
    shutil.copy(built, program)
    debug = os.path.join(os.path.dirname(built), ".debug", os.path.basename(built) + ".debug")
    # Its debuglink leads here.
    return program, shutil.copy(debug, folder), lambda s: shape(s, DEPTH, {"_start"})


def is_whole_python(stack):
    """Whether no frame is missing: all functions that called the innermost one are there."""
    chain = [m[1] for f in stack if (m := re.search(r"\.(f\d+)$", f))]
    return (not any(f.startswith(("[truncated", "[python: ")) for f in stack)
            and chain == [f"f{i + 1}" for i in range(len(chain))]
            and (chain or "_PyEval_EvalFrameDefault" not in stack)
            and (not chain or any(f.endswith(".<module>") for f in stack)))


def python_victim(folder, _):
    """A Python program. Its interpreter is known, since the tests run in it."""
    script = folder / "script.py"
    calls = "".join(f"def f{i}(): f{i + 1}()\n" for i in range(1, DEPTH))
    script.write_text(f"import sys, time\n{calls}def f{DEPTH}():\n    for _ in range(2000): pass\n"
                      'open("/proc/self/comm", "w").write("victim")\n'
                      "end = time.monotonic() + float(sys.argv[1])\n"
                      "while time.monotonic() < end: f1()\n")
    return f"/usr/bin/python3 {script}", None, is_whole_python


def short_victim(folder, chain):
    """The native victim, as a new copy of its file ten times a second. So most of its samples wait
    for unwind rows."""
    program, debug, is_whole = native_victim(folder, chain)
    os.chmod(folder, 0o777)
    script = folder / "copies.sh"
    script.write_text(f'n=0; end=$(($(date +%s) + $1)); cd {folder}\n'
                      'while [ $(date +%s) -lt $end ]; do\n'
                      f'mkdir $n; cp {program} {debug} $n; timeout 0.1 $n/victim 9\n'
                      'n=$((n + 1)); done\n')
    # Also while it begins and ends.
    return f"sh {script}", debug, lambda stack: (
        is_whole(stack) or stack[1] == "_dl_start_user" or "do_exit_[k]" in stack)


def beside(tmp_path, chain, seconds=4, options=(), delay=1, uid=VICTIM, attack=None,
           victim=native_victim):
    """Records the host while a victim runs. Attackers run already. delay: seconds before the
    victim's program starts, whose files the profiler has not seen before. attack: attackers that
    need its paths, as a context manager of its program and its debug file. Returns the recording
    (recorded), with: samples of the victim; whole, those that are complete and named; cpu_s, its
    cpu time during the run; due, the samples that this time should have."""
    folder = tmp_path / "victim"
    folder.mkdir(mode=0o755)
    reachable(tmp_path)
    program, debug, is_whole = victim(folder, chain)
    command = f"sleep {delay}; exec {program} {seconds}"
    with attack(program, debug) if attack else contextlib.nullcontext():
        running = as_user(uid, ["sh", "-c", command])
        clock = Clock(running.pid)
        try:
            got = recorded(tmp_path, seconds, "-F", RATE, *options)
        finally:
            clock.over.set()
            end([running])
    # While the kernel executes it, a program has no frames yet.
    mine = [(s, n) for s, n in got.stacks
            if s[0] == "victim" and not any("execve" in f for f in s)]
    cpu_s = clock.between(got.began, got.began + seconds)
    rate = float(options[options.index("-F") + 1]) if "-F" in options else RATE
    # At higher rates the kernel leaves out ticks.
    rate = min(rate, 999)
    return SimpleNamespace(
        cpu_s=cpu_s, due=cpu_s * rate,
        samples=sum(n for _, n in mine),
        whole=sum(n for s, n in mine if is_whole(s)),
        bad=[s for s, _ in mine if not is_whole(s)], **vars(got))


def assert_on_time(got):
    """The run ends soon after its duration. An idle machine needs at most two seconds; the rest is
    for a busy one."""
    assert got.late < 2 + 1 + got.busy / 10, (got.late, got.busy, got.stderr)


def assert_unharmed(got, least=20, share=0.99):
    """At least `share` of the victim's stacks are complete and named, its cpu time has the samples
    that it should have, except for chance, and the run ended in time. least: the minimum number of
    the victim's samples, which is small because a busy machine may leave it little cpu time."""
    print(f"late {got.late:.1f} s, {got.busy:.1f} tasks per cpu; victim: {got.whole} of "
          f"{got.samples} whole, {got.due:.0f} due, {got.cpu_s:.1f} s of cpu; prof-bpf "
          f"{got.summary['cost']['tools']['prof-bpf']['cpu_s']:.1f} s", got.stderr)
    assert got.samples >= least, (got.samples, got.summary)
    assert got.samples >= 0.9 * got.due - 3 * got.due ** 0.5, (got.samples, got.due, got.summary)
    assert got.whole >= share * got.samples, (
        got.whole, got.samples, got.stderr, got.bad[:5], got.summary)
    assert_on_time(got)


def assert_counted(got, comms, reasons, share=None):
    """Asserts that the attackers' losses are counted. comms: prefixes of their names. reasons: why
    their stacks may be truncated; at least some are. share: the resource of which they take more
    than their share, according to the log."""
    cut = collections.Counter()
    for stack, n in got.stacks:
        for frame in stack if stack[0].startswith(comms) else ():
            if frame.startswith("[truncated: "):
                cut[frame[len("[truncated: "):-1]] += n
    assert cut and set(cut) <= set(reasons), cut
    for reason, n in cut.items():
        assert got.summary["truncated"][reason] >= n, (cut, got.summary)
    owners = [o for o in got.summary["owners"] if 62000 < o["uid"] < 63000]
    assert any(o["truncated"].get(reason) for o in owners for reason in cut), (cut, got.summary)
    said = re.findall(r"(user \d+)\)? (?:takes more than its share of|lacks) ([^;,]*)"
                      r"(?:, of which (user \d+) uses most)?;", got.stderr)
    of_them = {thing for lacks, thing, uses in said if "user 62" in lacks + uses}
    assert not share or of_them & set(share), got.stderr
