# SPDX-License-Identifier: Apache-2.0
"""The skeleton of a runtime (tests/skeleton), in tools of its own: with no more than HACKING.md
asks for, its frames are walked, placed and named."""
import collections
import re
import subprocess
import time

from conftest import BUILD

TOY = f"{BUILD}/toy"
PROGRAM = f"{TOY}/program"
# Stacks from main on. A called function runs in the C frame of its caller's loop, or below native
# code.
STACKS = {"main;alpha:10;beta:20", "main;alpha:10;beta:21;call_gamma;gamma:30",
          "main;alpha:10;beta:21;call_gamma;gamma:31", "main;run_brief;brief:40"}


def test_a_runtime_made_by_the_list_is_walked_and_named(tmp_path):
    out = tmp_path / "out.folded"
    p = subprocess.run([f"{TOY}/profpipe", "record", "-q", "-F", "499", "--lines", "-o", out, "--",
                        PROGRAM, "3"], capture_output=True, text=True, timeout=60)
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
    # Functions that were freed as soon as they ran have their names from what was copied with the
    # sample.
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
            for f in stack if f[0] in ("alpha", "beta", "call_gamma", "gamma")][1:] == [
            ("call_gamma", ""), ("beta", "/toy/one.toy:21"), ("alpha", "/toy/one.toy:10")]


def test_a_runtime_is_described_and_the_product_has_none_of_tests():
    p = subprocess.run([f"{TOY}/prof-symd", "--describe", PROGRAM], capture_output=True, text=True)
    assert (p.returncode == 0
            and p.stdout.startswith("Toy 1.0.0\nruntime 15 version 1.0.0 by_loop 0\nloop 0x")
            and "\ntop 0x" in p.stdout), p.stdout
    p = subprocess.run([f"{BUILD}/prof-symd", "--describe", PROGRAM], capture_output=True,
                       text=True)
    assert p.returncode != 0 and "contains no known interpreter" in p.stderr
