# SPDX-License-Identifier: Apache-2.0
"""Traced programs: a uretprobe replaces the program's return address with one of the kernel's."""
import os
import subprocess

import pytest

from conftest import record

SOURCE = r"""
#include <stdlib.h>
#include <time.h>
#define NOINLINE __attribute__((noinline, noclone))
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
NOINLINE int inner(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
NOINLINE int probed(int n) { int r = inner(n); __asm__ volatile("" : "+r"(r)); return r + 1; }
NOINLINE int outer(int n) { int r = probed(n); __asm__ volatile("" : "+r"(r)); return r + 2; }
int main(int argc, char **argv)
{
	double end = now() + atof(argv[1]);
	int s = 0;
	while (now() < end)
		s += outer(200000);
	return 0 * s;
}
"""


@pytest.fixture
def uprobes(tmp_path):
    """A function that sets uretprobes; all are taken away at the end."""
    at = tmp_path / "tracing"
    at.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "nodev", at], check=True)
    group = f"profpipe{tmp_path.name[-12:]}".replace("-", "_")
    names = []

    def command(line):
        fd = os.open(at / "uprobe_events", os.O_WRONLY | os.O_APPEND)
        os.write(fd, line.encode())
        os.close(fd)

    def add(program, function):
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        offset = next(line.split()[0]
                      for line in symbols.splitlines() if line.endswith(f" {function}"))
        command(f"r:{group}/{function} {program}:0x{offset}\n")
        names.append(function)
        (at / "events" / group / function / "enable").write_text("1")
    yield add
    for name in names:
        (at / "events" / group / name / "enable").write_text("0")
        command(f"-:{group}/{name}\n")
    subprocess.run(["umount", at], check=True)


def test_stacks_go_on_behind_the_kernels_return_address(tmp_path, uprobes):
    (tmp_path / "p.c").write_text(SOURCE)
    program = tmp_path / "p"
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-o", program, tmp_path / "p.c"],
                   check=True)
    for function in ("probed", "outer"):
        uprobes(program, function)
    got = record(tmp_path, "-F", "499", command=[program, "0.5"])
    inside = [(s, n) for s, n in got.stacks if "inner" in s]
    whole = sum(n for s, n in inside if "_start" in s
                and s[s.index("inner") - 3:s.index("inner")] == ["main", "outer", "probed"])
    assert inside and whole >= 0.95 * sum(n for _, n in inside), inside
    assert whole >= 0.5 * got.summary["samples"], got.stacks
