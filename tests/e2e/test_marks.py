# SPDX-License-Identifier: Apache-2.0
"""Programs whose functions have the names of marks in folded stacks."""
import json
import subprocess
import sys

import pytest
from conftest import profpipe, record
from nodes import NODE

NAMES = ["do_sys_open_[k]", "run_[c2]", "[truncated: no-rows]", "[truncated; no-rows]",
         "[kernel+0x12]", "[unknown]"]

# Each function calls the next; the last one spins for as many rounds as main asks for.
HEAD = """
	.text
	.globl main
	.type main, @function
main:
	.cfi_startproc
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	movq $30, %r8
1:	call "{first}"
	decq %r8
	jnz 1b
	xorl %eax, %eax
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size main, .-main
	.section .note.GNU-stack,"",@progbits
	.text
"""
FUNCTION = """
	.type "{name}", @function
"{name}":
	.cfi_startproc
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	{body}
	addq $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size "{name}", .-"{name}"
"""
SPIN = "movq $60000000, %rcx\n2:	decq %rcx\n	jnz 2b"

PYTHON = """
import time
def spin(until):
    while time.process_time() < until:
        pass
names = dict(co_name="py_[k]")
if hasattr(spin.__code__, "co_qualname"):
    names["co_qualname"] = names["co_name"]
spin.__code__ = spin.__code__.replace(**names)
spin(0.6)
"""


def build(folder, names):
    source = folder / "imitator.s"
    bodies = [f'call "{n}"' for n in names[1:]] + [SPIN]
    source.write_text(HEAD.format(first=names[0])
                      + "".join(FUNCTION.format(name=n, body=b) for n, b in zip(names, bodies)))
    program = folder / "imitator"
    subprocess.run(["gcc", "-o", program, source], check=True)
    return program


def test_functions_called_like_marks_are_shown_as_functions(tmp_path):
    program = build(tmp_path, NAMES)
    got = record(tmp_path, "-F", "199", command=[program])
    mine = [(s, n) for s, n in got.stacks if s[0] == "imitator" and "main" in s]
    total = sum(n for _, n in mine)
    shown = [r"do_sys_open_\[k]", r"run_\[c2]", r"\[truncated: no-rows]",
             r"\[truncated: no-rows]", r"\[kernel+0x12]", r"\[unknown]"]
    whole = sum(n for s, n in mine if list(s[s.index("main") + 1:][:len(shown)]) == shown)
    assert total >= 20 and whole >= 0.9 * total, got.stacks
    for s, _ in mine:
        user = s[s.index("main"):][:1 + len(shown)]
        assert not any(f.endswith("_[k]") or f.startswith(("[truncated:", "[kernel")) for f in user)
    names = {t["name"]: t["kind"] for t in got.summary["top"]}
    assert names[r"\[unknown]"] == "native", names
    assert not any(name.endswith("_[k]") for name in names), names


def test_the_printed_summary_marks_only_the_kernels_functions(tmp_path):
    program = build(tmp_path, ["x" * 112 + "_[k]" + "y" * 60])
    summary = tmp_path / "s.json"
    p = profpipe("record", "-F", "199", "-o", tmp_path / "x.folded", "--summary", summary, "--",
                 program)
    assert p.returncode == 0, p.stderr
    line, = (line for line in p.stderr.splitlines() if "  xxxx" in line)
    assert line.endswith("…"), line
    top = json.loads(summary.read_text())["top"]
    assert next(t for t in top if t["name"].startswith("xxxx"))["kind"] == "native"
    assert all(t["kind"] in ("native", "kernel", "interpreted") for t in top)


def test_python_functions_called_like_marks_are_shown_as_functions(tmp_path):
    program = tmp_path / "[truncated: no-rows].py"
    program.write_text(PYTHON)
    got = record(tmp_path, "-F", "199", command=[sys.executable, program])
    mine = [s for s, _ in got.stacks if any(r"py_\[k]" in f for f in s)]
    assert mine, got.stacks
    for s in mine:
        at = next(i for i, f in enumerate(s) if r"py_\[k]" in f)
        assert s[at].startswith(r"\[truncated: no-rows]") and s[at].endswith(r"py_\[k]"), s
        assert s[at - 1].startswith(r"\[truncated: no-rows]"), s
    assert not any(f.endswith("py_[k]") for s, _ in got.stacks for f in s)


@pytest.mark.check_all
def test_javascript_functions_called_like_placeholders_are_shown_as_functions(tmp_path):
    names = ["[v8: gone]", "[python: memory not read]", "[unknown]", "run_[c2]",
             "[Symbol.iterator]"]
    shown = [r"\[v8: gone]", r"\[python: memory not read]", r"\[unknown]", r"run_\[c2]",
             "[Symbol.iterator]"]
    program = tmp_path / "names.js"
    program.write_text("""
        const spin = ms => {
            for (const end = process.cpuUsage().user + ms * 1000; process.cpuUsage().user < end;);
        };
        for (const name of NAMES)
            ({ [name]: () => { spin(400); } })[name]();
        """.replace("NAMES", json.dumps(names)))
    got = record(tmp_path, "-F", "199", command=[NODE, program])
    seen = {f for s, _ in got.stacks for f in s}
    assert set(shown) <= seen and not set(names[:4]) & seen, seen
