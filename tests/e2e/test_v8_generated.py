# SPDX-License-Identifier: Apache-2.0
"""Stacks of generated programs with hundreds of functions, in all kinds of V8's code."""
import pytest
from conftest import few, of_which_check_has, profpipe
from nodes import NODE, from_npm
from v8_generated import Program

# One without Maglev, and the last versions with it.
VERSIONS = [None, "20.20.2", "22.23.3", "24.21.0", "26.12.1"]


@pytest.mark.parametrize("number", of_which_check_has(VERSIONS, [None]))
@pytest.mark.parametrize("flags", of_which_check_has(
    ["", "--no-maglev", "--no-opt", "--always-sparkplug"], [""]))
def test_each_function_calls_the_next_one_in_the_line_that_is_shown(number, flags, tmp_path):
    program, path, out = Program(1), tmp_path / "made.js", tmp_path / "out.txt"
    program.write(path)
    node = from_npm(number) if number else NODE
    p = profpipe("record", "-q", "-F", "499", "-o", out, "--", node, *flags.split(), path, 5)
    assert p.returncode == 0, p.stderr
    total, wrong = program.compare(path, out)
    print(*wrong[:9], f"{len(wrong)} of {total} are wrong", sep="\n")
    assert total > 300 and len(wrong) <= few(total)
