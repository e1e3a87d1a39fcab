# SPDX-License-Identifier: Apache-2.0
"""Files and lines of DWARF, at each place of a program, are those of libdw."""

import re
import subprocess

import pytest

from conftest import BUILD

pytestmark = pytest.mark.pure

PROGRAM = """
#include <algorithm>
#include <map>
#include <string>
int main(int argc, char **argv)
{
	std::map<std::string, int> all;
	for (int i = 0; i < argc; i++)
		all[argv[i]]++;
	std::string longest;
	for (auto &each : all)
		longest = std::max(longest, each.first);
	return (int)longest.size();
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_lines_are_those_of_libdw(tmp_path, compiler, version):
    (tmp_path / "a.cc").write_text(PROGRAM)
    subprocess.run([compiler, "-O2", f"-gdwarf-{version}", "-o", "a", "a.cc"], cwd=tmp_path,
                   check=True)
    p = subprocess.run([f"{BUILD}/tests/libdw-lines", tmp_path / "a"], capture_output=True,
                       text=True)
    places, differences, left_out = map(int, re.findall(r"\d+", p.stdout.splitlines()[-1]))
    assert p.returncode == 0 and not differences and not left_out, p.stdout
    assert places > 500


def test_lines_of_profpipe_are_those_of_libdw():
    p = subprocess.run([f"{BUILD}/tests/libdw-lines", f"{BUILD}/prof-symd"], capture_output=True,
                       text=True)
    assert p.returncode == 0, p.stdout
    assert int(p.stdout.split()[0]) > 10000, p.stdout
