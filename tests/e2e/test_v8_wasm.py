# SPDX-License-Identifier: Apache-2.0
"""Names of WebAssembly's functions, and frames of regular expressions. tests/e2e/test_v8.py
compares whole stacks."""
import collections
import os

import pytest
from conftest import profpipe
from nodes import NODE, from_npm
from v8_stacks import samples

MANY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "javascript", "many.js")
NUMBERS = [2, 300, 19999]
# The second of these finds a function's number in its code, or in a table of wider jumps.
VERSIONS = [None, pytest.param("24.21.0", marks=pytest.mark.check_all)]


def leaves(tmp_path, *command):
    """How many samples ended in which function, not counting the kernel's frames."""
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", "199", "-o", out, "--", *map(str, command))
    assert p.returncode == 0, p.stderr
    found = collections.Counter()
    for _, frames in samples(out):
        user = [f for f in frames if f[1] != "[kernel]"]
        if user:
            found[(user[-1][0], user[-1][2])] += 1
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("named", ["names", ""])
def test_functions_of_wasm_have_names_or_numbers(tmp_path, named, version):
    node = from_npm(version) if version else NODE
    found = leaves(tmp_path, node, MANY, 20000, named, *NUMBERS)
    for n in NUMBERS:
        name = f"müller_{n}" if named else f"wasm-function[{n}]"
        # V8 compiles it meanwhile, and a name late in a list takes some samples to be found.
        assert found[(name, "[wasm]")] > 40, found.most_common(9)
    others = [f for f in found if f[1] == "[wasm]" and not any(str(n) in f[0] for n in NUMBERS)]
    # V8 may replace a function's code while it runs, which then has no number.
    assert found.pop(("wasm-function", "[wasm]"), 0) < 6, found.most_common(9)
    assert set(others) <= {("wasm-function", "[wasm]")}, found.most_common(9)


def test_regular_expressions_are_shown(tmp_path):
    program = ("for (const end = Date.now() + 1000; Date.now() < end;) "
               "/^(a+)+$/.test('a'.repeat(17) + 'b')")
    found = leaves(tmp_path, NODE, "-e", program)
    assert found[("(regexp)", "")] > 0.4 * sum(found.values()), found.most_common(5)
