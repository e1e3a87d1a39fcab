# SPDX-License-Identifier: Apache-2.0
"""What the whole-tool tests share: running profpipe, and programs of known shape."""
import json
import os
import re
import subprocess
import time
from types import SimpleNamespace

import pytest

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))


def profpipe(*args, timeout=120, **kw):
    return subprocess.run([f"{BUILD}/profpipe", *map(str, args)], capture_output=True, text=True, errors="replace", timeout=timeout, **kw)


def record(tmp_path, *args, command=None, ending=".folded", timeout=120):
    """Runs `profpipe record` and hands back its output, parsed where it is folded, its summary, and what it said."""
    out, summary = tmp_path / f"out{ending}", tmp_path / "summary.json"
    argv = ["record", "-o", out, "--summary", summary, *args]
    if command:
        argv += ["--", *command]
    p = profpipe(*argv, timeout=timeout)
    assert p.returncode == 0, p.stderr
    stacks = []
    if ending == ".folded":
        for line in out.read_text(errors="replace").splitlines():
            stack, count = line.rsplit(" ", 1)
            stacks.append((stack.split(";"), int(count)))
    return SimpleNamespace(path=out, stacks=stacks, summary=json.loads(summary.read_text()), stderr=p.stderr)


def walked_live(argv, after=0.2):
    """Samples that the kernel's walker took of a program in a second, and how many of them were complete; without the rest of the pipeline. after: seconds, until its mappings are there."""
    with subprocess.Popen(argv) as program:
        try:
            time.sleep(after)
            p = subprocess.run([f"{BUILD}/tests/walk-live", str(program.pid), "1", "199"], capture_output=True, text=True, timeout=60)
        finally:
            program.kill()
    assert p.returncode == 0, p.stderr
    return int(re.search(r"samples (\d+)", p.stdout)[1]), int(re.search(r"^complete (\d+)", p.stdout, re.M)[1]), p.stdout


def symbolized(path, addresses):
    """What prof-symd -e says: a list of [(function, file:line), ...] per address, innermost first."""
    p = subprocess.run([f"{BUILD}/prof-symd", "-e", path], input="\n".join(f"{a:x}" for a in addresses), capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    answers = []
    for line in p.stdout.splitlines():
        inlined = line.startswith(" (inlined by) ")
        line = line[len(" (inlined by) "):] if inlined else line
        call = ("??", "??:0") if line == "?? ??:0" else tuple(line.rsplit(" at ", 1))
        if inlined:
            answers[-1].append(call)
        else:
            answers.append([call])
    assert len(answers) == len(addresses)
    return answers


CHAIN_HEAD = """
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#define BURN(n) for (long i = 0; i < (n); i++) __asm__ volatile("" ::: "memory")
static long burn;
"""
CHAIN_TAIL = """
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline, noclone)) int descend(double until) { int s = 0; for (int t = 1; now() < until; t = t % %(n)d + 1) s += f1(t); return s; }
static void *thread(void *until) { return (void *)(long)descend(*(double *)until); }
int main(int argc, char **argv)
{
	double until = now() + atof(argv[1]);
	pthread_t p;
	burn = 40000;
	if (argc > 2 && pthread_create(&p, NULL, thread, &until) == 0) { pthread_join(p, NULL); return 0; }
	return descend(until) & 1;
}
"""


@pytest.fixture(scope="session")
def chain(tmp_path_factory):
    """A function that builds a chain of n nested functions without frame pointers, stripped of all but .eh_frame, with its names in a debug file."""
    folder = tmp_path_factory.mktemp("chain")

    def build(n):
        name = folder / f"chain{n}"
        if name.exists():
            return str(name)
        source = [CHAIN_HEAD]
        for i in range(n, 0, -1):
            call = f"if (t > {i}) {{ int r = f{i + 1}(t); __asm__ volatile(\"\" : \"+r\"(r)); return r + 1; }}" if i < n else ""
            source.append(f"__attribute__((noinline, noclone)) int f{i}(int t) {{ {call} BURN(burn); return t; }}")
        source.append(CHAIN_TAIL.replace("%(n)d", str(n)))
        c = folder / f"chain{n}.c"
        c.write_text("\n".join(source))
        subprocess.run(["gcc", "-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", name, c], check=True)
        (folder / ".debug").mkdir(exist_ok=True)
        debug = folder / ".debug" / f"chain{n}.debug"
        subprocess.run(["objcopy", "--only-keep-debug", name, debug], check=True)
        subprocess.run(["strip", "--strip-all", "--remove-section=.comment", name], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", name], check=True)
        return str(name)

    return build
