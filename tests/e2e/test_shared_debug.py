# SPDX-License-Identifier: Apache-2.0
"""Debug information that lies in a file beside the program (dwz -m): inlined calls in record as in
prof-symd -e."""
import re
import subprocess

import pytest

from conftest import record, symbolized

C = r"""
#include <stdlib.h>
#include <time.h>
static inline __attribute__((always_inline)) long inner(long n)
{
	long s = n;
	for (long i = 0; i < 100000; i++)
		__asm__ volatile("" : "+r"(s));
	return s;
}
static inline __attribute__((always_inline)) long middle(long n) { return inner(n) + 1; }
__attribute__((noinline)) long outer(long n) { return middle(n) * 3; }
int main(void)
{
	time_t end = time(NULL) + 2;
	long s = 0;
	while (time(NULL) < end)
		s += outer(s);
	return s == 1;
}
"""


@pytest.mark.parametrize("absolute", [False, True])
def test_inlined_calls_in_a_file_shared_by_dwz_are_recorded(tmp_path, absolute):
    (tmp_path / "p.c").write_text(C)
    for folder in (tmp_path, *tmp_path.parents):  # debug files are opened as any user could
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    for name in ("a", "b"):
        subprocess.run(["gcc", "-O2", "-g", "-gdwarf-4", tmp_path / "p.c", "-o", tmp_path / name],
                       check=True)
    shared = str(tmp_path / "common.debug") if absolute else "common.debug"
    subprocess.run(["dwz", "-m", "common.debug", "-M", shared, "a", "b"], cwd=tmp_path, check=True)
    assert b"common.debug" in subprocess.run(["readelf", "-p", ".gnu_debugaltlink", tmp_path / "a"],
                                             capture_output=True).stdout
    r = record(tmp_path, "-F", "199", command=[tmp_path / "a"])
    hot = sum(n for stack, n in r.stacks if stack[-3:] == ["outer", "middle", "inner"])
    assert hot > sum(n for _, n in r.stacks) * 0.8, r.stacks


CC = r"""
namespace scope {
struct pair { long a, b; };
template <typename T> static inline __attribute__((always_inline)) T inner(T n)
{
	T s = n;
	for (long i = 0; i < 1000; i++)
		__asm__ volatile("" : "+r"(s));
	return s;
}
static inline __attribute__((always_inline)) long middle(pair p) { return inner(p.a) + inner(p.b); }
static __attribute__((noinline)) long outer(long n) { pair p = { n, n + 1 }; return middle(p) * 3; }
}
int main(int argc, char **) { return scope::outer(argc) == 1; }
"""


@pytest.mark.parametrize("version", [4, 5])
def test_functions_of_a_file_that_dwz_shares_keep_their_namespaces(tmp_path, version):
    (tmp_path / "p.cpp").write_text(CC)
    for name in ("a", "b"):
        subprocess.run(["g++", "-O2", "-g", f"-gdwarf-{version}", tmp_path / "p.cpp", "-o",
                        tmp_path / name], check=True)
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", tmp_path / "a"],
                          capture_output=True, text=True, check=True).stdout
    asked = [int(a, 16) for a in re.findall("^ +([0-9a-f]+):", text, re.M)]
    whole = symbolized(tmp_path / "a", asked)
    subprocess.run(["dwz", "-m", "common.debug", "-M", "common.debug", "a", "b"], cwd=tmp_path,
                   check=True)
    assert any("scope::inner<" in calls[0][0] for calls in whole)
    assert any("scope::middle" in calls[-1][0] or "scope::outer" in calls[-1][0]
               for calls in whole)
    assert symbolized(tmp_path / "a", asked) == whole
