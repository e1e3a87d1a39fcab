# SPDX-License-Identifier: Apache-2.0
"""Debug information that lies in a file beside the program (dwz -m): inlined calls in record as in prof-symd -e."""
import subprocess

import pytest

from conftest import record

C = r"""
#include <stdlib.h>
#include <time.h>
static inline __attribute__((always_inline)) long inner(long n) { long s = n; for (long i = 0; i < 100000; i++) __asm__ volatile("" : "+r"(s)); return s; }
static inline __attribute__((always_inline)) long middle(long n) { return inner(n) + 1; }
__attribute__((noinline)) long outer(long n) { return middle(n) * 3; }
int main(void) { time_t end = time(NULL) + 2; long s = 0; while (time(NULL) < end) s += outer(s); return s == 1; }
"""


@pytest.mark.parametrize("absolute", [False, True])
def test_inlined_calls_of_a_file_that_dwz_shares_with_another_are_recorded(tmp_path, absolute):
    (tmp_path / "p.c").write_text(C)
    tmp_path.chmod(0o755)
    for name in ("a", "b"):
        subprocess.run(["gcc", "-O2", "-g", "-gdwarf-4", tmp_path / "p.c", "-o", tmp_path / name], check=True)
    shared = str(tmp_path / "common.debug") if absolute else "common.debug"
    subprocess.run(["dwz", "-m", "common.debug", "-M", shared, "a", "b"], cwd=tmp_path, check=True)
    assert b"common.debug" in subprocess.run(["readelf", "-p", ".gnu_debugaltlink", tmp_path / "a"], capture_output=True).stdout
    r = record(tmp_path, "-F", "199", command=[tmp_path / "a"])
    hot = sum(n for stack, n in r.stacks if stack[-3:] == ["outer", "middle", "inner"])
    assert hot > sum(n for _, n in r.stacks) * 0.8, r.stacks
