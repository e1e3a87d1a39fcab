# SPDX-License-Identifier: Apache-2.0
"""Measure what profiling CPython costs.

BPF time by the depth of stacks, the slowdown of profiled programs, memory and cpu for processes and
code objects, and an always-on view of busy workers. A peer's command is measured in the same way
beside it. Compare ratios within one run only."""
import collections
import ctypes
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from measure import BUILD, bpf_maps, bpf_programs, cpu_of, pss, tree

LIBC = ctypes.CDLL(None)
LOOPS = ("nbody", "objects", "documents", "patterns", "pipeline")
PYTHON = os.environ.get("BENCH_PYTHON", "/usr/bin/python3")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loops.py")
DEPTHS = (10, 50, 200)
BASE = 4  # frames of a stack that the others are compared with
ROUNDS = 4
CODE_OBJECTS = 4000
PROCESSES = 8
PAIRS = 24


class Loop:
    """A program of loops.py."""

    def __init__(self, *argv):
        # it ends with this process
        self.p = subprocess.Popen([PYTHON, PROGRAM, *map(str, argv)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, start_new_session=True,
                                  preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL))

    def tell(self, command):
        self.p.stdin.write(f"{command}\n")
        self.p.stdin.flush()

    def hear(self):
        return self.p.stdout.readline()

    def ask(self, command):
        self.tell(command)
        return self.hear()

    def prefer(self):
        """Gives a process precedence over everything else on this machine, if the kernel allows
        that."""
        try:
            os.setpriority(os.PRIO_PROCESS, self.p.pid, -20)
            with open(f"/proc/{self.p.pid}/autogroup", "w") as f:
                f.write("-20")
        except OSError:
            pass

    def stop(self):
        os.kill(self.p.pid, signal.SIGKILL)
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()


def figures(path):
    """Returns the figures (value by name) that prof-symd writes as msgpack at the end of its stream
    of interpreted frames."""
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as f:
        f.seek(max(os.path.getsize(path) - (1 << 16), 0))
        tail = f.read()
    out = {}
    for m in re.finditer(rb"objects_([a-z_]+)([^a-z_])", tail, re.S):
        kind = m[2][0]
        size = {0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8}.get(kind, 0)
        out[m[1].decode()] = int.from_bytes(tail[m.end():m.end() + size], "big") if size else kind
    return out


class Profiler:
    """A profiler of the whole host, running while this object is open."""

    def __init__(self, command, settle):
        self.settle, self.command = settle, command
        self.folder = tempfile.mkdtemp(prefix="profpipe-bench.")

    def __enter__(self):
        self.said = open(f"{self.folder}/said", "w+")
        self.p = subprocess.Popen([w.replace("{folder}", self.folder) for w in self.command],
                                  stdout=subprocess.DEVNULL, stderr=self.said)
        self.pids, begun = [], time.time()
        while self.p.poll() is None and not self.runs()[1] and time.time() - begun < 120:
            time.sleep(0.2)
            self.pids = tree(self.p.pid)
        time.sleep(self.settle)
        if self.p.poll() is not None or not self.runs()[1]:
            self.__exit__()
            raise RuntimeError(f"{self.command[0]} does not sample: {self.words}")
        self.pids = tree(self.p.pid)
        return self

    def held(self, what):
        """Ids of the BPF programs or maps that the profiler's processes have open; other profilers
        may run."""
        out = set()
        for p in self.pids:
            try:
                for fd in os.listdir(f"/proc/{p}/fdinfo"):
                    with open(f"/proc/{p}/fdinfo/{fd}") as f:
                        out.update(int(m) for m in re.findall(what + r"_id:\s+(\d+)", f.read()))
            except OSError:
                pass
        return out

    def text(self):
        with open(f"{self.folder}/said") as f:
            return f.read()

    def runs(self):
        """How many ns and runs its longest-running perf_event program had so far."""
        now = bpf_programs()
        return max(((now[k].get("run_time_ns", 0), now[k].get("run_cnt", 0))
                    for k in self.held("prog") if k in now and now[k]["type"] == "perf_event"),
                   default=(0, 0))

    def memory(self):
        """Memory in KiB by process, and of all maps together."""
        out = collections.Counter()
        for p in self.pids:
            try:
                with open(f"/proc/{p}/comm") as f:
                    out[f.read().strip()] += 1024 * pss([p])
            except OSError:
                pass
        now = bpf_maps()
        out["maps"] = sum(now.get(k, 0) for k in self.held("map")) / 1024
        return out

    def cpu(self):
        """Cpu seconds by process."""
        out = collections.Counter()
        for p in self.pids:
            try:
                with open(f"/proc/{p}/comm") as f:
                    out[f.read().strip()] += cpu_of([p])
            except OSError:
                pass
        return out

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.send_signal(signal.SIGINT)
        try:
            self.p.wait(20)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        self.figures, self.words = figures(f"{self.folder}/out.prof"), self.text()[-300:]
        self.said.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def profilers(peers, hz, settle, *more):
    """Returns profilers by name, as functions that make them. more: additional options of
    profpipe."""
    out = {
            "profpipe": lambda: Profiler([f"{BUILD}/profpipe", "record", "-q", "-F", str(hz), "-o",
                                          "{folder}/out.prof", *more], settle)}
    for command in peers:
        words = shlex.split(command.replace("{hz}", str(hz)))
        out[os.path.basename(words[0])] = lambda words=words: Profiler(words, settle)
    return out


def each(peers, hz, settle, measure, *more):
    """Calls `measure` for each profiler, and yields names and results. A profiler that does not run
    is reported and left out."""
    out = {}
    for name, make in profilers(peers, hz, settle, *more).items():
        try:
            with make() as p:
                found = measure(p)
            out[name] = (found, p.figures)
        except RuntimeError as e:
            print(e, file=sys.stderr)
    return out


# --- BPF time ---


def by_depth(peers, seconds):
    """Runs these programs on each cpu with the highest priority: one kind at a time, in turns,
    while the others are stopped."""
    kinds = [(kind, n) for kind in ("recursion", "distinct") for n in (BASE, *DEPTHS)]
    loops = {k: [Loop("depth", *k) for _ in range(os.cpu_count())] for k in kinds}

    def signal_all(k, number):
        for loop in loops[k]:
            os.kill(loop.p.pid, number)

    def measure(p):
        found = collections.defaultdict(list)
        for i in range(ROUNDS + 1):
            for k in kinds:
                signal_all(k, signal.SIGCONT)
                time.sleep(0.3)
                ns, n = p.runs()
                time.sleep(seconds / ROUNDS if i else 1)
                ns2, n2 = p.runs()
                signal_all(k, signal.SIGSTOP)
                if i:  # the first time, everything is new
                    found[k].append((ns2 - ns) / max(n2 - n, 1))
        return {k: statistics.median(v) for k, v in found.items()}
    for k in kinds:
        for loop in loops[k]:
            loop.hear()
            loop.prefer()
        signal_all(k, signal.SIGSTOP)
    print(f"\nns of BPF for Python frames, at 99 Hz: of a sample, and of a frame more "
          f"than a stack of {BASE} has; recursion, or as many functions as frames")
    print(f"{'':14}{'frames':>8}{'recursion':>12}{'a frame':>10}{'distinct':>12}{'a frame':>10}")
    for name, (found, _) in each(peers, 99, 4, measure).items():
        for d in (BASE, *DEPTHS):
            def cost(kind):
                per_frame = (found[kind, d] - found[kind, BASE]) / (d - BASE) if d > BASE else 0
                return f"{found[kind, d]:>12.0f}{per_frame:>10.0f}"
            cells = cost("recursion") + cost("distinct")
            print(f"{name if d == BASE else '':14}{d:>8}{cells}")
    for k in kinds:
        for loop in loops[k]:
            loop.stop()


# --- the slowdown of profiled programs ---


def one_by_one(loops, units):
    """Measures the cpu seconds that each loop takes for its units. The loops run at the same time
    on other cpus only by chance."""
    return {name: float(loops[name].ask(units[name]).split()[0]) for name in loops}


def interval(values):
    """Median, and the range that contains it with 95 % probability, by order statistics."""
    v, n = sorted(values), len(values)
    k = max(int(n / 2 - 0.98 * n ** 0.5), 0)
    return statistics.median(v), v[k], v[n - 1 - k]


def slowdown(peers, pairs):
    """Measures each loop's cpu time with the profiler relative to that without. Runs with and
    without it alternate, and take turns at coming first."""
    loops = {name: Loop("work", name) for name in LOOPS}
    units = {}
    for name, loop in loops.items():
        loop.prefer()
        loop.ask(100)
        units[name] = max(int(100 * 0.4 / float(loop.ask(100).split()[0])), 1)
    print(f"\nslow-down of loops at 99 Hz: cpu time with the profiler over that "
          f"without, less one, in %: the median of {pairs} pairs, and between what it "
          f"lies with 95 %")
    print(f"{'':14}" + "".join(f"{name:>22}" for name in LOOPS) + f"{'all':>22}")
    for name, make in {"nothing": None, **profilers(peers, 99, 3)}.items():
        ratios = collections.defaultdict(list)
        count = pairs if name in ("profpipe", "nothing") else max(pairs // 2, 6)
        try:
            for i in range(count):
                found = {}
                for on in (False, True) if i % 2 else (True, False):
                    if on and make:
                        with make():
                            found[on] = one_by_one(loops, units)
                        time.sleep(0.5)
                    else:
                        found[on] = one_by_one(loops, units)
                for loop in LOOPS:
                    ratios[loop].append(100 * (found[True][loop] / found[False][loop] - 1))
                ratios["all"].append(
                        100 * (
                        statistics.geometric_mean([found[True][k] / found[False][k] for k in LOOPS])
                        - 1))
        except RuntimeError as e:
            print(e, file=sys.stderr)
            continue
        cells = ["{:.2f} ({:.2f}..{:.2f})".format(*interval(ratios[k])) for k in (*LOOPS, "all")]
        print(f"{name:14}" + "".join(f"{c:>22}" for c in cells))
    for loop in loops.values():
        loop.stop()


# --- memory, and the first samples ---


def growth(p, act):
    """Measures memory and cpu of an action, by process. The memory is the least within the second
    that follows the action."""
    memory, cpu = p.memory(), p.cpu()
    act()
    time.sleep(1.5)
    after = p.memory()
    return collections.Counter({k: after[k] - memory[k] for k in after}), collections.Counter(
            {k: v - cpu[k] for k, v in p.cpu().items()})


def memory(peers):
    """profpipe records only these programs, since others would show in its memory. A peer cannot
    select, and records the whole host."""
    loop, others = Loop("functions", CODE_OBJECTS, 50,
                        0.05), [Loop("work", "pages") for _ in range(PROCESSES)]

    def all_others():
        for _ in range(5):
            for o in others:
                o.tell(400)
            for o in others:
                o.hear()

    def measure(p):
        loop.ask("warm")
        return (growth(p, lambda: loop.ask("make")), growth(p, lambda: loop.ask("again")),
                growth(p, all_others))
    print(f"\n{CODE_OBJECTS} code objects sampled for the first time, in stacks of 50; "
          f"then {PROCESSES} processes more. What seeing the same objects again takes "
          f"is taken off, in the cpu")
    print(f"{'':14}{'KiB per 1,000 code objects':>28}{'us of cpu per object':>22}"
          f"{'KiB per process':>18}   by process, KiB per 1,000 objects; us per object")
    pids = [f"-p{o.p.pid}" for o in (loop, *others)]
    for name, ((first, second, processes), said) in each(peers, 99, 5, measure, *pids).items():
        kib = {k: v / (CODE_OBJECTS / 1000) for k, v in first[0].items()}
        us = {k: 1e6 * (v - second[1][k]) / CODE_OBJECTS for k, v in first[1].items()}
        by = ", ".join(f"{k} {kib.get(k, 0):.0f}; {us.get(k, 0):.1f}"
                       for k in sorted({*kib, *us}, key=lambda k: -kib.get(k, 0))
                       if abs(kib.get(k, 0)) >= 1 or us.get(k, 0) >= 0.1)
        print(f"{name:14}{sum(kib.values()):>28.0f}{sum(us.values()):>22.1f}"
              f"{sum(processes[0].values()) / PROCESSES:>18.0f}   {by}")
        if said.get("named"):
            n = said["named"]
            print(f"{'':14}{n} code objects named, {said['gone']} gone; "
                  f"{said['requests'] / n:.3f} requests, {said['pieces'] / n:.1f} pieces, "
                  f"{said['bytes'] / n:.0f} bytes and {said['rounds'] / n:.1f} rounds each; "
                  f"a request is answered after "
                  f"{said['waited_ns'] / said['answers'] / 1000:.0f} us, the fastest after "
                  f"{said['least_ns'] / 1000:.0f} us")
    for o in (loop, *others):
        o.stop()


# --- always on ---


def always_on(peers, seconds):
    loops = [Loop("work", "pages") for _ in range(PROCESSES)]
    for loop in loops:
        loop.tell(10**9)

    def measure(p):
        a, runs = p.cpu(), p.runs()
        time.sleep(seconds)
        b, after = p.cpu(), p.runs()
        cpu = {k: 100 * (v - a[k]) / seconds for k, v in b.items()}
        return cpu, p.memory(), (after[0] - runs[0]) / max(after[1] - runs[1], 1)
    print(f"\nalways on: 20 Hz, the whole host, {PROCESSES} busy workers of a web application")
    print(f"{'':14}{'cpu, % of one core':>20}{'PSS MiB':>9}{'maps MiB':>10}"
          f"{'BPF us/sample':>15}   by process, %")
    for name, ((cpu, kib, ns), _) in each(peers, 20, 10, measure).items():
        maps = kib.pop("maps")
        each_tool = ", ".join(f"{k} {v:.2f}" for k, v in cpu.items())
        print(f"{name:14}{sum(cpu.values()):>20.2f}{sum(kib.values()) / 1024:>9.1f}"
              f"{maps / 1024:>10.1f}{ns / 1000:>15.1f}   {each_tool}")
    for loop in loops:
        loop.stop()


def run(peers, seconds, only=None):
    """peers: commands. only: some of the parts."""
    parts = {"depth": lambda: by_depth(peers, max(seconds / 5, 2)), "memory": lambda: memory(peers),
             "always": lambda: always_on(peers, seconds),
             "slowdown": lambda: slowdown(peers, max(PAIRS * seconds // 20, 6))}
    print(f"\nCPython: "
          f"{subprocess.run([PYTHON, '-V'], capture_output=True, text=True).stdout.strip()}")
    for name, part in parts.items():
        if not only or name in only:
            part()
