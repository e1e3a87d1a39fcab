# SPDX-License-Identifier: Apache-2.0
"""Samples whose walk waits until the rows of their files have come."""
import contextlib
import os
import signal
import subprocess
import time

from conftest import BUILD

# Its stack has more than 100 KiB, and no frame pointers.
DEEP = """
static volatile unsigned long n;
static int deep(int depth)
{
	volatile char room[1000];

	room[0] = 0;
	for (unsigned i = 0; !depth && i < %d; i++)
		n++;
	return depth ? deep(depth - 1) + 1 + room[0] : 0;
}
int main(void)
{
	for (;;)
		deep(100);
}
"""


def child(pid, name):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        for of in f.read().split():
            with contextlib.suppress(OSError), open(f"/proc/{of}/comm") as comm:
                if comm.read().strip() == name:
                    return int(of)
    raise AssertionError(name)


def test_large_stacks_that_come_at_once_are_whole(tmp_path):
    """A program starts on all cpus while prof-deltas makes no rows. Its copied stacks fill the
    kernel's ring several times between two ticks of prof-bpf's timer."""
    (tmp_path / "deep.c").write_text(DEEP % 20000000)
    subprocess.run(["gcc", "-O1", "-fomit-frame-pointer", "-o", tmp_path / "deep",
                    tmp_path / "deep.c"], check=True, timeout=60)
    out = tmp_path / "out.folded"
    with contextlib.ExitStack() as started:
        run = started.enter_context(subprocess.Popen(
            [f"{BUILD}/profpipe", "record", "-v", "-d", "4", "-o", out],
            stderr=subprocess.PIPE, text=True))
        said = iter(run.stderr.readline, "")
        assert any("sampling has begun" in line for line in said)
        deltas = child(run.pid, "prof-deltas")
        os.kill(deltas, signal.SIGSTOP)
        try:
            for _ in range(os.cpu_count()):
                p = started.enter_context(subprocess.Popen([tmp_path / "deep"]))
                started.callback(p.kill)
            time.sleep(0.4)
        finally:
            os.kill(deltas, signal.SIGCONT)
        rest = "".join(said)
        assert run.wait(60) == 0, rest
    # While the kernel executes it, a program has no frames yet.
    stacks = [line.rsplit(" ", 1) for line in out.read_text().splitlines()
              if line.startswith("deep;") and "execve" not in line]
    count = sum(int(n) for _, n in stacks)
    bad = [stack for stack, _ in stacks if "[truncated" in stack]
    assert count > 100 and not bad, (count, bad[:5], rest)
