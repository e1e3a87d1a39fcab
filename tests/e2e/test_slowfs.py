# SPDX-License-Identifier: Apache-2.0
"""Files whose close takes long: because of a server (FUSE), or of a deleted file whose blocks the
kernel takes seconds to free."""
import contextlib
import os
import shutil
import subprocess
import sys
import time

import pytest

from conftest import record

HOLDS = 8
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
    """A program on a file system that keeps prof-bpf's workers, whenever they close a file of it,
    for this number of seconds."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (tmp_path / "spins.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-o", tmp_path / "spins", tmp_path / "spins.c"], check=True)
    server = os.path.join(os.path.dirname(__file__), "slowfs.py")
    with subprocess.Popen([sys.executable, server, folder, tmp_path / "spins",
                           "prof-bpf-open", str(HOLDS)], stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "mounted\n"
        try:
            yield folder / "prog"
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(3 * HOLDS)
            p.kill()


def test_a_run_does_not_wait_for_a_worker_that_the_kernel_keeps(tmp_path, slow):
    began = time.monotonic()
    got = record(tmp_path, "-F", "199", command=[slow, "1.5"])
    assert got.summary["samples"] >= 10, got.summary
    assert "spins" in got.path.read_text()
    assert "has not ended" not in got.stderr and "no longer waiting" not in got.stderr, got.stderr
    assert time.monotonic() - began < HOLDS


def test_sampling_goes_on_while_a_close_hangs(tmp_path, slow):
    shutil.copy(tmp_path / "spins", tmp_path / "other")
    script = f"{slow} 1.5 & {tmp_path}/other 3"
    got = record(tmp_path, "-F", "199", command=["sh", "-c", script])
    of = {name: sum(n for s, n in got.stacks if name in s[0] and "main" in s and "spins" in s)
          for name in ("prog", "other")}
    assert of["other"] >= 30 and of["prog"] >= 10, (of, got.stderr)
    assert got.summary["complete"] >= 0.95 * got.summary["samples"], got.summary
