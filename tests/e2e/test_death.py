# SPDX-License-Identifier: Apache-2.0
"""Each tool is killed, stopped or slowed at any moment, under load: the run goes on, and reports
its losses.

PROFPIPE_DEATHS=N does N times as much of it."""
import concurrent.futures
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import threading
import time

import pytest

from conftest import BUILD, of_which_check_has, profpipe
from running import children_of, cpu_s, lives, ran_s

TOOLS = ["prof-bpf", "prof-deltas", "prof-symd", "prof-export"]
ASAN = "asan" in os.path.basename(BUILD)
TIMES = int(os.environ.get("PROFPIPE_DEATHS", "1"))
QUIET = 6  # seconds without a failure at the end
# Both rest two thirds of the time. They are sampled anyway, and leave the cpus to the tools.
PYTHON = ("import time\ndef inner():\n    n = 0\n    for i in range(50000): n += i * i\n    "
          "return n\nwhile True: inner(); time.sleep(0.007)")
PERL = ("while (1) { for ($i = 0; $i < 100000; $i++) { $n += $i } "
        "select undef, undef, undef, 0.007 }")


@pytest.fixture
def spinning():
    with (subprocess.Popen(["/usr/bin/perl", "-e", PERL]) as native,
          subprocess.Popen(["/usr/bin/python3", "-c", PYTHON]) as python):
        yield [native.pid, python.pid]
        native.kill()
        python.kill()


def cpu_seconds(pids):
    return sum(map(ran_s, pids))


class Launched:
    def __init__(self, folder, pids, *args, ending="prof", hz=99):
        self.pids, self.hz = pids, hz
        self.output, self.summary = folder / f"x.{ending}", folder / "x.json"
        argv = [f"{BUILD}/profpipe", "record", "-v", "-F", hz, "-o", self.output, "--summary",
                self.summary, *[a for pid in pids for a in ("-p", str(pid))], *args]
        self.p = subprocess.Popen(list(map(str, argv)), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, errors="replace")
        self.err, self.begun = [], threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.p.stderr:
            self.err.append(line)
            if "sampling has begun" in line:
                self.before = cpu_seconds(self.pids)
                self.begun.set()

    def child(self, tool):
        """Its pid, or None while it is not there."""
        try:
            with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children") as f:
                for pid in f.read().split():
                    with open(f"/proc/{pid}/stat") as g:
                        text = g.read()
                    end = text.rindex(")")
                    if text[text.index("(") + 1:end] == tool and text[end + 2] not in "ZX":
                        return int(pid)
        except OSError:
            pass
        return None

    def hit(self, tool, number):
        """Waits until the tool is there, and returns its pid."""
        until = time.monotonic() + 40
        while time.monotonic() < until and self.p.poll() is None:
            pid = self.child(tool)
            try:
                if pid:
                    os.kill(pid, number)
                    return pid
            except ProcessLookupError:
                pass
            time.sleep(0.01)
        raise AssertionError(f"{tool} is not there: {''.join(self.err)}")

    def interrupt(self):
        self.took = cpu_seconds(self.pids) - self.before
        self.p.send_signal(signal.SIGINT)

    def end(self):
        status = self.p.wait(90)
        self.reader.join()
        self.p.stderr.close()
        return status, "".join(self.err)


def moment(stream):
    """The samples of a recording: time in seconds, command, and the stack's lines."""
    with open(stream, "rb") as f:
        text = subprocess.run([f"{BUILD}/prof-export", "-f", "text"], stdin=f,
                              stdout=subprocess.PIPE, check=True).stdout
    for block in text.decode(errors="replace").split("\n\n"):
        head, *stack = block.strip("\n").split("\n")
        m = re.match(r"(\S+) .* (\d+\.\d+): ", head)
        if m:
            yield float(m[2]), m[1], stack


def accounted(run, err, ran_s=None):
    """Returns the summary, after checking that the samples that arrived and those reported missing
    add up. ran_s: the cpu time of the sampled programs; None: they ran all the time."""
    s = json.loads(run.summary.read_text())
    expected = run.hz * (run.took if ran_s is None else ran_s)
    known = s["samples"] + s["lost_total"] + s["unsampled_samples"]
    print(f"{s['samples']} samples kept, lost {s['lost']}, {s['unsampled_samples']} "
          f"not taken in {s['unsampled_s']:.1f} s: {known} of {expected:.0f}; restarts "
          f"{s['restarts']}")
    # Which programs run at a tick is a matter of chance.
    assert known >= 0.9 * expected - 4 * expected ** 0.5, (known, expected, s, err)
    return s


def check(run, status, err, since):
    assert status == 0, err
    s = accounted(run, err)
    assert not s["cut"] and s["samples"] > 0, (s, err)
    samples = list(moment(run.output))
    assert len(samples) == s["samples"]
    # From a second after the last failure, plus the longest back-off, samples are whole and named.
    late = [x for x in samples if x[0] > since]
    assert {"perl", "python3"} <= {comm for _, comm, _ in late}, (len(late), err)
    whole = [x for x in late if not any("[truncated" in f or "[cut" in f for f in x[2])]
    named = [x for x in late if any("main" in f for f in x[2])]
    assert len(whole) >= 0.9 * len(late) and len(named) >= 0.9 * len(late), (
        len(late), len(whole), len(named), err)
    assert sum("inner" in "".join(x[2]) for x in late if x[1] == "python3") > 0
    return s


def quiet(run, seconds=QUIET):
    """Waits until all four tools have been there for this long. Returns the CLOCK_MONOTONIC time
    from which on stacks should be whole."""
    until = time.monotonic() + 60
    before, since = None, time.monotonic()
    while time.monotonic() < until:
        now = [run.child(t) for t in TOOLS]
        if None in now or now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > seconds:
            return since + 2
        time.sleep(0.1)
    raise AssertionError(f"they never rest: {''.join(run.err)}")


def kills(folder, spinning, times):
    choose, count = random.Random(11), 3 * times
    run = Launched(folder, spinning, "-f", "stream")
    assert run.begun.wait(60), run.err
    order = TOOLS * count
    choose.shuffle(order)
    for tool in order:
        time.sleep(choose.uniform(0.2, 2))
        run.hit(tool, signal.SIGKILL)
    since = quiet(run)
    run.interrupt()
    s = check(run, *run.end(), since)
    assert all(s["restarts"].get(tool, 0) >= count for tool in TOOLS), s["restarts"]
    assert s["lost"].get("restart", 0) > 0 and s["unsampled_s"] > 0 and s["unsampled_samples"] > 0
    return len(order)


def stops(folder, spinning, times):
    choose, count = random.Random(12), times
    run = Launched(folder, spinning, "-f", "stream")
    assert run.begun.wait(60), run.err
    events = 0
    for pair in [TOOLS[:2], TOOLS[2:]] * count:
        # A tool that gets no cpu for a third of a second, three times, is slow; that must not end
        # it.
        for tool in pair:
            for _ in range(2):
                pid = run.hit(tool, signal.SIGSTOP)
                time.sleep(choose.uniform(0.1, 0.3))
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
                events += 1
        time.sleep(choose.uniform(0, 0.5))
        stopped = {tool: run.hit(tool, signal.SIGSTOP) for tool in pair}
        until = time.monotonic() + 40
        while any(run.child(tool) == pid for tool, pid in stopped.items()):
            assert time.monotonic() < until, (stopped, run.err)
            time.sleep(0.05)
        events += len(pair)
    since = quiet(run)
    run.interrupt()
    s = check(run, *run.end(), since)
    assert all(s["restarts"].get(tool, 0) >= count for tool in TOOLS), s["restarts"]
    return events


def edges(folder, spinning, times):
    """Kills a tool while it starts, and while it ends."""
    choose, events = random.Random(13), 0
    for i, tool in enumerate(TOOLS * times):
        (folder / f"{i}").mkdir()
        run = Launched(folder / f"{i}", spinning, "-d", "1.5", ending="folded")
        time.sleep(choose.uniform(0, 0.4))
        run.hit(tool, signal.SIGKILL)
        assert run.begun.wait(60), run.err
        status, err = run.end()
        assert status == 0, (tool, err)
        (folder / f"{i}e").mkdir()
        run = Launched(folder / f"{i}e", spinning, ending="folded")
        assert run.begun.wait(60), run.err
        time.sleep(2)
        # The kill comes before, while or after the run ends; at no moment may the run hang.
        run.interrupt()
        time.sleep(choose.uniform(0, 0.06))
        pid = run.child(tool)
        if pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        status, err = run.end()
        # Data on its way at the very end may be lost, but the run reports that, and nothing hangs.
        assert status == 0, (tool, err)
        s = accounted(run, err)
        assert sum(int(line.rsplit(" ", 1)[1])
                   for line in run.output.read_text().splitlines()) == s["samples"], (tool, err)
        assert not s["cut"] or tool == "prof-bpf", (tool, err)
        events += 2
    return events


@pytest.mark.parametrize("times", [TIMES, pytest.param(3 * TIMES, marks=pytest.mark.check_all)])
def test_a_run_survives_repeated_deaths_of_each_tool(tmp_path, spinning, times):
    jobs = {"kills": kills, "stops": stops, "edges": edges}
    for name in jobs:
        (tmp_path / name).mkdir()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        done = [pool.submit(job, tmp_path / name, spinning, times) for name, job in jobs.items()]
        total = sum(f.result() for f in done)
    assert total >= 12 * times


def recoveries(folder, spinning, tool, count):
    """Kills the tool repeatedly, and checks what was sampled afterwards. Returns for each kill:
    seconds to the first stack that is complete and named, or None."""
    choose, times, firsts = random.Random(14), [], []
    run = Launched(folder, spinning, "-f", "stream")
    assert run.begun.wait(60), run.err
    time.sleep(2)
    for _ in range(count):
        run.hit(tool, signal.SIGKILL)
        times.append(time.monotonic())
        time.sleep(choose.uniform(3, 4))
    run.interrupt()
    status, err = run.end()
    assert status == 0, err
    accounted(run, err)
    samples = list(moment(run.output))
    late = good = 0
    for begin, end in zip(times, times[1:] + [float("inf")]):
        fine = [(t, not any("[truncated" in f or "[cut" in f for f in stack)
                 and any(word in "".join(stack) for word in ("main", "inner", "<module>")))
                for t, _, stack in samples if begin <= t < end]
        firsts.append(min((t - begin for t, well in fine if well), default=None))
        late += sum(t > begin + 1 for t, _ in fine)
        good += sum(t > begin + 1 and well for t, well in fine)
    known = sorted(t for t in firsts if t is not None)
    print(f"{tool}: {len(times)} kills; the first stack that is whole and named after "
          f"{known[0]:.2f} s at best, {known[len(known) // 2]:.2f} s mostly, "
          f"{known[-1]:.2f} s at worst; "
          f"of {late} samples later than a second {late - good} are not")
    assert good >= 0.9 * late > 0, (tool, late, good, err)
    assert len(known) >= 0.5 * len(times), (tool, firsts, err)


@pytest.mark.parametrize("count", of_which_check_has([4 * TIMES, 12 * TIMES], [4 * TIMES]))
def test_a_second_after_a_death_stacks_are_whole_and_named_again(tmp_path, spinning, count):
    for tool in TOOLS:
        (tmp_path / tool).mkdir()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for f in [pool.submit(recoveries, tmp_path / tool, spinning, tool, count)
                  for tool in TOOLS]:
            f.result()


def test_a_killed_launcher_ends_all_tools(tmp_path, spinning):
    run = Launched(tmp_path, spinning)
    assert run.begun.wait(60), run.err
    tools = [run.child(t) for t in TOOLS]
    run.hit("prof-symd", signal.SIGKILL)
    run.p.kill()
    assert run.end()[0] == -signal.SIGKILL
    until = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{p}") for p in tools):
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("tool", ["prof-bpf", "prof-export"])
def test_the_loss_at_the_end_is_not_overestimated(tmp_path, spinning, tool):
    """The tool is stopped shortly before the run's own end, and killed after it. The status is 0.
    Neither the samples in between nor those that would have followed count as missing."""
    run = Launched(tmp_path, spinning, "-d", "3")
    assert run.begun.wait(60), run.err
    time.sleep(2.6)
    run.hit(tool, signal.SIGSTOP)
    time.sleep(0.4)
    run.took = cpu_seconds(run.pids) - run.before
    status, err = run.end()
    assert status == 0, err
    s = accounted(run, err)
    expected = 99 * run.took
    known = s["samples"] + s["lost_total"] + s["unsampled_samples"]
    assert known <= 1.1 * expected + 3 * expected ** 0.5, (known, expected, s, err)


DEEP = """
static volatile unsigned long n;
static int deep(int depth)
{
	if (!depth)
		for (;;)
			n++;
	return deep(depth - 1) + 1;
}
int main(void) { return deep(1500); }
"""


def test_ring_losses_count_although_their_reader_dies(tmp_path):
    """prof-bpf is stopped until its ring is full. It then reports the loss to a prof-symd that is
    stopped, and that is killed later."""
    (tmp_path / "a.c").write_text(DEEP)
    subprocess.run(["gcc", "-O0", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    with subprocess.Popen([tmp_path / "a"]) as program:
        run = Launched(tmp_path, [program.pid], hz=499)
        assert run.begun.wait(60), run.err
        before = cpu_s(program.pid)
        time.sleep(1)
        bpf = run.hit("prof-bpf", signal.SIGSTOP)
        time.sleep(1.5)
        symd = run.hit("prof-symd", signal.SIGSTOP)
        os.kill(bpf, signal.SIGCONT)
        time.sleep(0.5)
        os.kill(symd, signal.SIGKILL)
        time.sleep(1)
        ran_s = cpu_s(program.pid) - before
        run.interrupt()
        status, err = run.end()
        program.kill()
    assert status == 0, err
    s = accounted(run, err, ran_s)
    assert s["restarts"] == {"prof-symd": 1} and s["lost"]["restart"] > 0, (s, err)


def test_a_life_too_short_for_a_rate_uses_that_of_the_next(tmp_path, spinning):
    """prof-bpf is killed before it has reported how many samples it takes in a second."""
    run = Launched(tmp_path, spinning)
    assert run.begun.wait(60), run.err
    time.sleep(0.4)
    run.hit("prof-bpf", signal.SIGKILL)
    quiet(run, 3)
    run.interrupt()
    status, err = run.end()
    assert status == 0, err
    s = accounted(run, err)
    # The samples of a starved program, a third of the usual number, give no rate.
    assert s["restarts"]["prof-bpf"] == 1, (s, err)
    assert s["unsampled_samples"] > 0 or s["samples"] < 200, (s, err)


@pytest.mark.parametrize("form", [
    "stream", *(pytest.param(form, marks=pytest.mark.check_all) for form in ("html", "pprof"))])
def test_a_gap_is_in_all_outputs_and_overlaps_no_sample(tmp_path, spinning, form):
    """prof-bpf is killed shortly before its next status word. Its samples arrived, so the gap
    begins with the last of them. Terminal, JSON, page and pprof say the same, also for a
    recording."""
    run = Launched(tmp_path, spinning, "-f", form)
    assert run.begun.wait(60), run.err
    time.sleep(2.8)
    run.hit("prof-bpf", signal.SIGKILL)
    quiet(run, 3)
    run.interrupt()
    status, err = run.end()
    assert status == 0, err
    s = accounted(run, err)
    # Samples that prof-bpf had not sent yet are lost: those of a quarter of a second.
    assert s["restarts"]["prof-bpf"] == 1 and s["lost_total"] <= 0.3 * 2 * run.hz, (s, err)
    assert s["loss"] == ("samples were lost" if s["lost_total"]
                         else "no sample that was taken was lost"), (s, err)
    assert len(s["notes"]) == 2, s["notes"]
    assert s["notes"][0].startswith("started again: prof-bpf 1"), s["notes"]
    assert (s["notes"][1]
            == f"not sampled: {s['unsampled_s']:.3f} s in all while prof-bpf was away, some "
            f"{s['unsampled_samples']} samples")
    loss = "lost:" if s["lost_total"] else s["loss"]
    assert f"\n{loss}\n" in err and f"\n{s['notes'][0]}\n{s['notes'][1]}\n" in err
    page, pprof = run.output, run.output
    if form == "stream":
        times = sorted(at for at, _, _ in moment(run.output))
        gap = max(b - a for a, b in zip(times, times[1:]))
        assert abs(s["unsampled_s"] - gap) < 0.4, (s["unsampled_s"], gap)
        page, pprof = tmp_path / "x.html", tmp_path / "x.pb.gz"
        assert profpipe("report", run.output, "-o", page).returncode == 0
        assert profpipe("report", run.output, "-f", "pprof", "-o", pprof).returncode == 0
    if form != "pprof":
        text = page.read_text()
        header, _ = json.JSONDecoder().raw_decode(text, text.index('"header":{') + len('"header":'))
        assert (header["loss"], header["notes"]) == (s["loss"], s["notes"])
        assert abs(header["durationMs"] / 1000 - s["duration_s"]) < 0.002
        assert ([header[k] for k in ("samples", "processes", "threads", "completeStacks")]
                == [s[k] for k in ("samples", "processes", "threads", "complete")])
    if form != "html":
        comments = subprocess.run(["zcat", pprof], capture_output=True, check=True).stdout
        assert all(word.encode() in comments for word in [s["loss"], *s["notes"]]), comments[-400:]


def test_prof_symd_restarts_when_its_keeper_is_stopped(tmp_path):
    """A stopped keeper does not answer. prof-symd waits for it once, not for each file. It does not
    outlive its prof-symd, nor prof-bpf's helpers their prof-bpf."""
    (tmp_path / "a.c").write_text(
            "int main(void)\n{\n\tfor (volatile unsigned long i = 0;; i++)\n\t\t;\n}\n")
    subprocess.run(["gcc", "-g", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    run = Launched(tmp_path, [])
    assert run.begun.wait(60), run.err
    symd = run.child("prof-symd")
    keeper, = children_of(symd)
    helpers = children_of(run.child("prof-bpf"))  # prof-cpus, prof-bpf-loader, prof-bpf-keeper
    for helper in keeper, *helpers:
        os.kill(helper, signal.SIGSTOP)
    for worker in children_of(keeper):
        os.kill(worker, signal.SIGKILL)
    with subprocess.Popen([tmp_path / "a"]) as program:
        until = time.monotonic() + 60
        while run.child("prof-symd") in (symd, None):
            assert time.monotonic() < until, run.err
            time.sleep(0.05)
        since = quiet(run)
        run.interrupt()
        status, err = run.end()
        program.kill()
    assert status == 0, err
    assert len(helpers) == 3 and not any(map(lives, [keeper, *helpers]))
    s = json.loads(run.summary.read_text())
    late = [stack for t, comm, stack in moment(run.output) if comm == "a" and t > since]
    named = [stack for stack in late if any("main" in f for f in stack)]
    print(f"lost {s['lost']}; restarts {s['restarts']}; {len(named)} of {len(late)} named")
    assert s["restarts"]["prof-symd"] == 1 and not s["cut"], (s, err)
    assert len(named) >= 0.9 * len(late) > 0, (len(late), len(named), err)


def comm_of(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def test_prof_bpf_restarts_when_its_loader_is_killed(tmp_path):
    """Without this process, no interpreter that comes later could be read."""
    run = Launched(tmp_path, [])
    assert run.begun.wait(60), run.err
    bpf = run.child("prof-bpf")
    loader, = (p for p in children_of(bpf) if comm_of(p) == "prof-bpf-loader")
    os.kill(loader, signal.SIGKILL)
    until = time.monotonic() + 60
    while run.child("prof-bpf") in (bpf, None):
        assert time.monotonic() < until, run.err
        time.sleep(0.05)
    quiet(run)
    run.interrupt()
    status, err = run.end()
    assert status == 0, err
    s = json.loads(run.summary.read_text())
    assert s["restarts"]["prof-bpf"] == 1 and not s["cut"], (s, err)


def test_the_workers_of_prof_symd_are_killed_and_others_go_on(tmp_path):
    """Another process kills the parsers repeatedly. Their successors open the files again: nothing
    is lost, and no work starts over."""
    (tmp_path / "a.c").write_text(
            "int main(void)\n{\n\tfor (volatile unsigned long i = 0;; i++)\n\t\t;\n}\n")
    run = Launched(tmp_path, [])
    assert run.begun.wait(60), run.err
    symd = run.child("prof-symd")
    keeper, = children_of(symd)
    killed = 0
    for i in range(8):  # new programs, so that the workers are needed again
        name = tmp_path / f"a{i}"
        subprocess.run(["gcc", "-g", "-o", name, tmp_path / "a.c"], check=True)
        with subprocess.Popen([name]) as program:
            time.sleep(0.5)
            for worker in children_of(keeper):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                killed += 1
            time.sleep(0.2)
            program.kill()
    assert run.child("prof-symd") == symd
    since = quiet(run)
    subprocess.run(["timeout", "1", tmp_path / "a0"], check=False)
    run.interrupt()
    status, err = run.end()
    assert status == 0, err
    assert killed >= 8, killed
    s = json.loads(run.summary.read_text())
    assert not s["restarts"] and not s["cut"] and not s["lost"], (s, err)
    stacks = [st for t, comm, st in moment(run.output) if re.fullmatch("a[0-7]", comm)]
    named = [st for st in stacks if any("main" in f for f in st)]
    print(f"{killed} killed; {len(named)} of {len(stacks)} named since {since}")
    assert len(named) >= 0.9 * len(stacks) > 0, (len(stacks), len(named), err)


def cpus_of(pid):
    """Returns prof-cpus of a prof-bpf, once it is confined; tests of unconfined ones are
    elsewhere."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for child in children_of(pid):
            with contextlib.suppress(OSError), open(f"/proc/{child}/status") as f:
                text = f.read()
                if "Name:\tprof-cpus\n" in text and ("Seccomp:\t2" in text or ASAN):
                    return child
        time.sleep(0.02)
    raise AssertionError("prof-cpus is not there")


def test_a_dead_prof_cpus_is_reaped_and_reported_once(tmp_path):
    """prof-cpus cannot be started again, so prof-bpf warns that it misses cpus that come online
    later."""
    run = Launched(tmp_path, [])
    assert run.begun.wait(60), run.err
    cpus = cpus_of(run.child("prof-bpf"))
    os.kill(cpus, signal.SIGKILL)
    until = time.monotonic() + 20
    while time.monotonic() < until and (os.path.exists(f"/proc/{cpus}")
                                        or not any("prof-cpus" in line for line in run.err)):
        time.sleep(0.05)
    time.sleep(2.5)
    reaped = not os.path.exists(f"/proc/{cpus}")
    run.interrupt()
    status, err = run.end()
    assert status == 0 and reaped, err
    ended = "cpus that come online later are not sampled: signal 9 (Killed) ended prof-cpus"
    assert err.count(ended) == 1, err


@pytest.mark.parametrize("how", ["its own", "a kill"])
def test_prof_cpus_ends_with_a_prof_bpf_by_hand_even_if_it_was_stopped(how, tmp_path):
    with (open(tmp_path / "x.prof", "wb") as out,
          subprocess.Popen([f"{BUILD}/prof-bpf", "-d", "3"], stdout=out) as p):
        cpus = cpus_of(p.pid)
        os.kill(cpus, signal.SIGSTOP)
        if how == "a kill":
            p.kill()
        p.wait(60)
    until = time.monotonic() + 10
    while time.monotonic() < until and lives(cpus):
        time.sleep(0.05)
    left = lives(cpus)
    if left:
        os.kill(cpus, signal.SIGKILL)
    assert not left and p.returncode == (-9 if how == "a kill" else 0)
