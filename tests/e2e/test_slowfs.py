# SPDX-License-Identifier: Apache-2.0
"""Files whose close takes long: because of a server (FUSE), or of a deleted file whose blocks the
kernel takes seconds to free."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from conftest import BUILD, record

HOLDS = 5
SOURCE = r"""
#include <stdlib.h>
#include <time.h>
static volatile unsigned long turns;
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) void spins(void) { for (int i = 0; i < 100000; i++) turns++; }
int main(int argc, char **argv)
{
	for (double end = now() + atof(argv[1]); now() < end;)
		spins();
	return 0;
}
"""


@pytest.fixture
def slow(tmp_path):
    """A program on a file system that keeps prof-bpf, whenever it closes a file of it, for so many
    seconds."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (tmp_path / "spins.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-o", tmp_path / "spins", tmp_path / "spins.c"], check=True)
    server = os.path.join(os.path.dirname(__file__), "slowfs.py")
    with subprocess.Popen([sys.executable, server, folder, tmp_path / "spins", "prof-bpf",
                           str(HOLDS)], stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "mounted\n"
        try:
            yield folder / "prog"
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(3 * HOLDS)
            p.kill()


def test_a_tool_that_the_kernel_keeps_is_no_failure(tmp_path, slow):
    began = time.monotonic()
    got = record(tmp_path, "-F", "199", command=[slow, "1.5"])
    assert got.summary["samples"] >= 10, got.summary
    assert re.search(r"prof-bpf \(pid \d+\) was killed, but the kernel has not ended it yet",
                     got.stderr), got.stderr
    assert "left behind;" not in got.stderr and "error" not in got.stderr, got.stderr
    # The run waited for it, and that time does not count as sampled.
    assert time.monotonic() - began > HOLDS
    assert got.summary["duration_s"] < 4, got.summary


def test_who_interrupts_does_not_wait_for_the_kernel(tmp_path, slow):
    out = tmp_path / "x.folded"
    with subprocess.Popen([f"{BUILD}/profpipe", "record", "-o", out, "--", slow, "1"],
                          stderr=subprocess.PIPE, text=True) as p:
        said = ""
        for line in p.stderr:
            said += line
            if "the kernel has not ended it yet" in line:
                p.terminate()
                break
        said += p.stderr.read()
        assert p.wait(HOLDS) == 0, said
    assert "is left behind; it ends when the kernel lets it" in said and "written:" in said, said
    assert "spins" in out.read_text()


def test_sampling_goes_on_while_a_close_hangs(tmp_path, slow):
    shutil.copy(tmp_path / "spins", tmp_path / "other")
    script = f"{slow} 1.5 & {tmp_path}/other 3"
    got = record(tmp_path, "-F", "199", command=["sh", "-c", script])
    of = {name: sum(n for s, n in got.stacks if name in s[0] and "main" in s and "spins" in s)
          for name in ("prog", "other")}
    assert of["other"] >= 50 and of["prog"] >= 10, (of, got.stderr)
    assert got.summary["complete"] >= 0.95 * got.summary["samples"], got.summary
