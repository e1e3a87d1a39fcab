# SPDX-License-Identifier: Apache-2.0
"""A program of one compile unit that is as large as an amalgamation: 220,000 rows in its table of
lines, and as many in a sequence. It keeps lines and inlined calls at the default limit."""
import os
import random
import re
import subprocess

import pytest
from conftest import record, symbolized

FUNCTIONS, LINES = 1500, 150


def adds(first, count):
    """Lines of a source, beginning with line `first`: an instruction a line, in the table of lines.
    For gcc it is one statement, which saves a quarter of a minute."""
    yield "\t__asm__ volatile("
    yield from (f'"\t.loc 1 {n}\\n\tadd $1, %0\\n"' for n in range(first + 1, first + count - 1))
    yield '\t: "+r"(s));'


def source():
    yield "#include <time.h>"
    for i in range(FUNCTIONS):
        yield f"static inline __attribute__((always_inline)) long in{i}(long s)\n{{"
        yield from adds(160 * i + 4, 8)
        yield '\tfor (long k = 0; k < 1000; k++)\n\t\t__asm__ volatile("" : "+r"(s));'
        yield f"\treturn s;\n}}\n__attribute__((noinline)) long f{i}(long s)\n{{"
        yield from adds(160 * i + 18, LINES - 8)
        yield f"\treturn in{i}(s) + 1;\n}}"
    yield "int main(void)\n{\n\tlong s = 0;\n\twhile (clock() < CLOCKS_PER_SEC) {"
    yield from (f"\t\ts += f{i}(s);" for i in range(FUNCTIONS))
    yield "\t}\n\treturn s == 1;\n}\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unit")
    folder.chmod(0o755)
    (folder / "big.c").write_text("\n".join(source()))
    subprocess.run(["gcc", "-O1", "-g", "-fno-var-tracking", "-fno-var-tracking-assignments", "-o",
                    "big", "big.c"], cwd=folder, check=True,
                   env={**os.environ, "CCACHE_DISABLE": "1"})
    rows = subprocess.run(["llvm-dwarfdump", "--debug-line", folder / "big"], capture_output=True,
                          text=True, check=True).stdout
    assert len(re.findall("^0x0000", rows, re.M)) > 220000
    return folder / "big"


def test_its_lines_and_inlined_calls_are_those_of_llvm(program):
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    starts = sorted(int(a, 16) for a in re.findall(r"^([0-9a-f]+) T f\d+$", symbols, re.M))
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text",
                           f"--start-address={starts[0]:#x}", f"--stop-address={starts[-1]:#x}",
                           program], capture_output=True, text=True, check=True).stdout
    asked = random.Random(1).sample([int(a, 16) for a in re.findall("^ +([0-9a-f]+):", text, re.M)],
                                    2000)
    out = subprocess.run(["llvm-symbolizer", f"--obj={program}"],
                         input="".join(f"{a:#x}\n" for a in asked), capture_output=True, text=True,
                         check=True).stdout
    theirs = []
    for block in out.strip().split("\n\n"):
        lines = block.splitlines()
        theirs.append([(name, at.rsplit(":", 1)[0]) for name, at in zip(lines[::2], lines[1::2])])
    assert [[tuple(call) for call in calls] for calls in symbolized(program, asked)] == theirs
    assert sum(len(calls) > 1 for calls in theirs) > 100


def test_record_has_its_inlined_calls_and_lines(program, tmp_path):
    r = record(tmp_path, "-F", "199", "-f", "text", command=[program], ending=".txt")
    assert "debug information" not in r.stderr
    # The loop is in lines 12 and 13 of a function's 160, the call in the last.
    found = re.findall(r"^\t +[0-9a-f]+ in(\d+) \(inlined\) .*/big\.c:(\d+)\n"
                       r"\t +[0-9a-f]+ f(\d+) .*/big\.c:(\d+)$", r.path.read_text(), re.M)
    assert all(i == f and 0 < int(at) - int(i) * 160 < 160 and int(call) == (int(i) + 1) * 160
               for i, at, f, call in found), found
    assert len(found) > 0.7 * r.summary["samples"] > 20, (len(found), r.summary)
