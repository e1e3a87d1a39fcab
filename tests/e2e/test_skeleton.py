# SPDX-License-Identifier: Apache-2.0
"""The skeletons of two runtimes (tests/skeleton), in tools of their own: with no more than
HACKING.md asks for, frames of an interpreter are walked, placed and named, and frames of a JIT are
taken over and named."""
import collections
import itertools
import os
import re
import subprocess
import time

import pytest
from conftest import BUILD, few
from toys import WAYS, Walked

TOY = f"{BUILD}/toy"
PROGRAM, JIT, LOOP_JIT = (f"{TOY}/{name}" for name in ("program", "toyjit", "toyjit-loop"))
TREES = [BUILD, pytest.param(os.path.join(os.path.dirname(BUILD), "asan"), marks=pytest.mark.asan)]
# Stacks from main on. A called function runs in the C frame of its caller's loop, or below native
# code.
STACKS = {"main;one.alpha:10;one.beta:20", "main;one.alpha:10;one.beta:21;call_gamma;gamma:30",
          "main;one.alpha:10;one.beta:21;call_gamma;gamma:31", "main;run_brief;brief:40"}

DOWN = "toyjit_enter;" + "down:51;call_down;toyjit_enter;" * 10
INLINED = "gamma:31;tiny:70;least:80"
# The same, up to the innermost frame of code that the JIT made.
JIT_STACKS = {"toyjit_enter;alpha:10;beta:20",
              "toyjit_enter;alpha:10;beta:21;call_gamma;toyjit_enter;gamma:30",
              f"toyjit_enter;alpha:10;beta:21;call_gamma;toyjit_enter;{INLINED}",
              f"{DOWN}gamma:30", f"{DOWN}{INLINED}", "run_brief;toyjit_enter;brief:40"}
# The same if the function that enters it is also taken over.
ENTERED_STACKS = {s.replace("toyjit_enter", "enter:7") for s in JIT_STACKS}
# The line before a function's first one is that of its prologue, which few samples meet.
PROLOGUES = {"alpha:9": "alpha:10", "down:50": "down:51", "brief:39": "brief:40"}


def folded(path):
    """Stacks from main on, without the kernel's frames, and how often."""
    count = collections.Counter()
    for line in path.read_text().splitlines():
        stack, n = line.rsplit(" ", 1)
        frames = [f for f in stack.split(";") if not f.endswith("_[k]")]
        if "main" in frames:
            frames = frames[frames.index("main") + 1:]
        count[";".join(frames)] += int(n)
    return count


@pytest.mark.parametrize("jit, stacks", [(JIT, JIT_STACKS), (LOOP_JIT, ENTERED_STACKS)],
                         ids=["generated", "loop"])
def test_frames_of_a_jit_are_taken_over(jit, stacks, tmp_path):
    """Without frame pointers, with frames of any size, and while the code's descriptions move."""
    out = tmp_path / "out.folded"
    p = subprocess.run([f"{TOY}/profpipe", "record", "-q", "-F", "499", "--lines", "-o", out, "--",
                        jit, "3"], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    count = folded(out)
    right = 0
    for stack, n in count.items():
        # Native code may have been called by the innermost frame.
        code = max((stack.rfind(f";{name}:") for name in ("alpha", "beta", "gamma", "least", "down",
                                                         "brief")), default=-1)
        if code < 0:
            continue
        end = stack.find(";", code + 1)
        inner = stack[:end] if end >= 0 else stack
        caller, _, last = inner.rpartition(";")
        inner = f"{caller};{PROLOGUES.get(last, last)}"
        assert any(s.startswith(inner) for s in stacks), f"{stack} {count}"
        right += n
    # The first ones come before the process is known.
    assert right > 0.95 * sum(count.values()), count
    assert stacks <= set(count), count


LATE = """
#include <time.h>
void late(void)
{
	struct timespec begin, now;
	volatile long n = %d;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	do {
		for (int i = 0; i < 100000; i++)
			n = n + 1;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 80000000);
}
"""


def test_frames_of_a_jit_are_taken_over_in_walks_that_were_put_off(tmp_path):
    """Where the leaf's library is new, its rows come only later. By then the code of the JIT, which
    called it, may be gone."""
    libraries = []
    for i in range(12):
        source, library = tmp_path / f"late{i}.c", tmp_path / f"late{i}.so"
        source.write_text(LATE % i)
        subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-shared", "-fPIC", "-o", library,
                        source], check=True, timeout=60)
        libraries.append(library)
    out = tmp_path / "out.folded"
    p = subprocess.run([f"{TOY}/profpipe", "record", "-q", "-F", "499", "--lines", "-o", out, "--",
                        JIT, "1", "1000", *libraries], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    count = {s: n for s, n in folded(out).items() if "late" in s.split(";")[-1] or "no-" in s}
    right = sum(n for s, n in count.items() if s.startswith("run_late;toyjit_enter;caller:60;late"))
    total = sum(count.values())
    assert right > 200 and total - right <= few(total), count


@pytest.mark.parametrize("tree", TREES, ids=["release", "asan"])
@pytest.mark.parametrize("jit", ["toyjit", "toyjit-loop"])
def test_each_instruction_of_a_jit_has_its_exact_stack(jit, tree):
    p = subprocess.run([f"{tree}/toy/step", "-t", "60", "-m", "80000", "-r", f"{tree}/toy/{jit}",
                        "0", "3"], capture_output=True, text=True, timeout=120)
    said = dict(re.findall(r"(\w+) (\d+)", p.stdout.split("steps ")[-1].splitlines()[0]))
    assert p.returncode == 0 and int(said["checked"]) > 20000, p.stdout + p.stderr
    assert said["checked"] == said["equal"], p.stdout


@pytest.mark.parametrize("tree", TREES, ids=["release", "asan"])
def test_stacks_are_exact_in_the_kernel_and_in_deferred_walks(tree):
    """Each sample without exception, apart from activity of the programs outside their own code.
    Walks that reach libc are deferred, because the kernel does not hear of its mapping."""
    programs = [f"{TOY}/{name}" for name in WAYS]
    # Short enough that 30 samples see every activity of a program, also on a slow machine.
    commands = "".join(f" -- {program} 60 50000" for program in programs)[len(" -- "):]
    p = subprocess.run([f"{tree}/toy/live", "-f", "199", "-n", "30", "-d", "libc.so",
                        *commands.split()],
                       capture_output=True, text=True, timeout=120)
    assert p.returncode == 0, p.stderr
    for n, (program, deferred) in enumerate(itertools.product(programs, (False, True))):
        got = Walked(p.stdout, n, program)
        print(program, got.figures)
        got.check(30)
        assert got.figures["deferred"] == (got.samples if deferred else 0), got.figures


HOSTILE = {"hostile": ("circle", "pages", "unmapped"),
           "toyjit-hostile": ("stack", "turns", "words", "wild")}


def test_walks_of_hostile_memory_are_bounded_and_marked_as_cut():
    """In the kernel and deferred, beside a program whose stacks stay exact."""
    kinds = [(name, kind) for name, some in HOSTILE.items() for kind in some]
    commands = " -- ".join([*(f"{TOY}/{name} {kind} 60" for name, kind in kinds),
                            f"{PROGRAM} 60"])
    p = subprocess.run([f"{TOY}/live", "-f", "199", "-n", "20", "-d", "libc.so",
                        *commands.split()], capture_output=True, text=True, timeout=120)
    assert p.returncode == 0, p.stderr
    for n, (name, kind) in enumerate(kind for kind in kinds for _ in range(2)):
        said = collections.Counter(re.findall(rf"^{n} (\S+) [^ ]*$", p.stdout, re.M))
        frames, items = map(int, re.search(rf"^{n} samples \d+ deferred \d+ frames (\d+) "
                                           r"items (\d+)$", p.stdout, re.M).groups())
        print(name, kind, dict(said), frames, items)
        # A frame that a runtime took over is three words (bpf/sample.h).
        assert sum(said.values()) >= 20 and frames <= 3840 and items <= 1088
        # The toy does not falsify native frames. The JIT's stacks are never called complete. A
        # sample may come before the program has prepared the misleading data.
        assert said["complete"] <= few(sum(said.values())), said
        if name == "hostile":
            assert said["complete,stopped"] == sum(said.values()) - said["complete"], said
        else:
            whole = re.findall(rf"^{n} complete ([^ ]*)$", p.stdout, re.M)
            assert not any("@" in frames for frames in whole), whole
    for n in range(2 * len(kinds), 2 * len(kinds) + 2):
        Walked(p.stdout, n, PROGRAM).check(20)
    took = float(re.search(r"^us_per_sample ([\d.]+)", p.stdout, re.M)[1])
    print(f"{took} us a sample")
    assert took < 5000


@pytest.mark.parametrize("program", ["shared", "ruled"])
def test_code_with_one_layout_is_walked_by_one_rule(program, tmp_path):
    """Without frame pointers: at each instruction, and in samples."""
    p = subprocess.run([f"{TOY}/step", "-t", "60", "-m", "40000", "-r", f"{TOY}/{program}", "0",
                        "3"], capture_output=True, text=True, timeout=120)
    said = dict(re.findall(r"(\w+) (\d+)", p.stdout.split("steps ")[-1].splitlines()[0]))
    assert p.returncode == 0 and int(said["checked"]) > 20000, p.stdout + p.stderr
    assert said["checked"] == said["equal"], p.stdout
    out = tmp_path / "out.folded"
    p = subprocess.run([f"{TOY}/profpipe", "record", "-q", "-F", "499", "-o", out, "--",
                        f"{TOY}/{program}", "2"], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    count = collections.Counter()
    for stack, n in folded(out).items():
        count[stack.startswith("[anon+0x") and "truncated" not in stack] += n
    # The first ones come before the program's rows.
    assert count[True] > 0.9 * sum(count.values()), folded(out)


def test_frames_of_a_jit_are_dumped():
    with subprocess.Popen([JIT, "20"]) as program:
        try:
            time.sleep(0.1)
            seen = set()
            for _ in range(60):
                p = subprocess.run([f"{TOY}/prof-dump", str(program.pid)], capture_output=True,
                                   text=True, timeout=60)
                assert p.returncode == 0 and "truncated" not in p.stdout, p.stdout + p.stderr
                frames = re.findall(r"^\d+ 0x[0-9a-f]+ (\S+)(?: (/toy/\S+))?", p.stdout, re.M)
                seen.add(";".join(f"{name}:{source.split(':')[-1]}" if source else name
                                  for name, source in reversed(frames)))
                if len(seen) > 4:
                    break
        finally:
            program.kill()
    assert len(seen) > 1, seen
    for stack in seen:
        assert (any(stack.endswith("main;" + s) for s in JIT_STACKS)
                # Between two calls of the chain.
                or (stack.endswith(";call_down")
                    and any(s.startswith(stack.split("main;")[-1]) for s in JIT_STACKS))
                or re.search(";(move|drop)(;|$)", stack)), seen  # it makes and frees its code


@pytest.mark.parametrize("program", [PROGRAM, f"{TOY}/chains"], ids=["addresses", "chains"])
def test_a_runtime_made_by_the_list_is_walked_and_named(program, tmp_path):
    out = tmp_path / "out.folded"
    p = subprocess.run([f"{TOY}/profpipe", "record", "-q", "-F", "499", "--lines", "-o", out, "--",
                        program, "3"], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    count = collections.Counter()
    for line in out.read_text().splitlines():
        stack, n = line.rsplit(" ", 1)
        frames = [f for f in stack.split(";") if not f.endswith("_[k]")]
        if "main" in frames:
            count[";".join(frames[frames.index("main"):])] += int(n)
    # The first ones come before the file is known, and some while the program links a frame.
    assert sum(n for s, n in count.items() if s in STACKS) > 0.8 * sum(count.values()), count
    assert STACKS <= set(count), count
    # Functions that were freed right after they ran have their names from data that was copied with
    # the sample.
    toys = sum(n for s, n in count.items() if "[toy: " in s)
    assert toys < 0.2 * count["main;run_brief;brief:40"], count


def test_a_runtime_made_by_the_list_is_dumped():
    def functions():
        with subprocess.Popen([PROGRAM, "20"]) as program:
            try:
                time.sleep(0.1)
                while True:
                    p = subprocess.run([f"{TOY}/prof-dump", str(program.pid)], capture_output=True,
                                       text=True, timeout=60)
                    assert p.returncode == 0, p.stderr
                    yield re.findall(r"^\d+ 0x[0-9a-f]+ (\S+)(?: (/toy/\S+))?", p.stdout, re.M)
            finally:
                program.kill()

    tries = 0
    for stack in functions():
        tries += 1
        if ("gamma", "/toy/two.toy:30") in stack or ("gamma", "/toy/two.toy:31") in stack:
            break
        assert tries < 100, stack
    assert [f
            for f in stack if f[0] in ("one.alpha", "one.beta", "call_gamma", "gamma")][1:] == [
            ("call_gamma", ""), ("one.beta", "/toy/one.toy:21"),
            ("one.alpha", "/toy/one.toy:10")]


def test_a_runtime_is_described_and_the_product_has_none_of_tests():
    p = subprocess.run([f"{TOY}/prof-symd", "--describe", PROGRAM], capture_output=True, text=True)
    assert (p.returncode == 0
            and p.stdout.startswith("Toy 1.0.0\nruntime 15 version 1.0.0 by_loop 0\nloop 0x")
            and "\ntop 0x" in p.stdout), p.stdout
    p = subprocess.run([f"{BUILD}/prof-symd", "--describe", PROGRAM], capture_output=True,
                       text=True)
    assert p.returncode != 0 and "contains no known interpreter" in p.stderr
