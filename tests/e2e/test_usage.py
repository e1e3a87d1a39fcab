# SPDX-License-Identifier: Apache-2.0
"""Wrong command lines give status 2 and one line. test_record.py, test_prof_deltas.py and
test_prof_export.py have those of the other tools. Each --help has the options of the manual
page."""
import os
import pty
import re
import subprocess

import pytest

from conftest import BUILD
from streams import ROOT

REFUSED = [
    ("prof-bpf", ["--cpus", "x"], "--cpus: x: "),
    ("prof-bpf", ["--cpus", "cyclesx"], "--cpus: cyclesx: "),
    ("prof-bpf", ["--status-fd", "2"], "--status-fd: needs --run-dir; "),
    ("prof-bpf", ["--life-fd", "2"], "--life-fd: needs --run-dir; "),
    ("prof-bpf", ["-o", "a.prof", "-o", "b.prof"], "--output: b.prof: "),
    ("prof-bpf", ["-p", "1"] * 1025, "--pid: 1: too many processes; give 1024 at most"),
    ("prof-bpf", ["--follow", "1", "-p", "1"], "--follow: not together with --pid; "),
    ("prof-bpf", ["--host-id", "x" * 65], f"--host-id: {'x' * 65}: too long; "),
    ("prof-bpf", ["--env", "A=1"], "--env: A=1: no name of a variable; "),
    ("prof-bpf", ["--env", ""], '--env: "": no name of a variable; '),
    ("prof-bpf", ["--env", "A", "--env", "A"], "--env: A: named twice; "),
    ("prof-bpf", [a for i in range(17) for a in ("--env", f"A{i}")],
     "--env: A16: too many variables; give 16 at most"),
    ("prof-symd", ["-a"], "--addresses: needs -e FILE"),
    ("prof-symd", ["-s"], "--basenames: needs -e FILE"),
    ("prof-symd", ["1234"], "1234: not an option; "),
    ("prof-symd", ["-e", "/bin/sh", "zz"], "zz: not an address; "),
    ("prof-symd", ["-e", "/no/file", "12", "0x"], "0x: not an address; "),
    ("prof-symd", ["-e", "/bin/sh", "--describe", "/bin/sh"], "--describe: not together with "),
    ("prof-symd", ["-e", "/bin/sh", "-e", "/bin/ls"], "--exe: /bin/ls: "),
    ("prof-symd", ["-e", "/bin/sh", "--run-dir", "/run"], "--exe: not together with --run-dir; "),
    ("prof-symd", ["--describe", "/bin/sh", "1"], "1: not an option; "),
    ("prof-symd", ["--ids", "1:2:3:4:5"], "--ids: needs --run-dir; "),
    ("prof-symd", ["--memory-limit", "64M"], "--memory-limit: needs --run-dir, "),
    ("prof-symd", ["--run-dir", "/run", "-m", "64M"], "--memory: not together with --run-dir; "),
    ("prof-symd", ["--describe", "/bin/sh", "-m", "64M"], "--memory: not together with --desc"),
    ("prof-deltas", ["--memory-limit", "64M", "/bin/sh"], "--memory-limit: needs --run-dir, "),
    ("prof-export", ["-f", "folded", "--memory-limit", "64M"], "--memory-limit: needs --run-dir, "),
    ("prof-export", ["-f", "folded", "--run-dir", "/run", "--output-fd", "1", "-m", "64M"],
     "--memory: not together with --run-dir; "),
    ("prof-dump", ["--sysroot", "/a", "--sysroot", "/b", "core"], "--sysroot: /b: "),
    ("prof-dump", ["--sysroot", "/a", "1"], "--sysroot: /a: is for core files; "),
    ("prof-dump", ["-n", "--no-inlines", "1"], "--no-inlines: not together with --no-names, "),
]


@pytest.mark.parametrize("tool,args,line", REFUSED,
                         ids=[f"{r[0]} {' '.join(r[1])}"[:60] for r in REFUSED])
def test_a_wrong_command_line_is_refused_in_one_line(tmp_path, tool, args, line):
    p = subprocess.run([f"{BUILD}/{tool}", *args], capture_output=True, text=True, timeout=20,
                       cwd=tmp_path, stdin=subprocess.DEVNULL, check=False)
    assert (p.returncode, p.stdout, p.stderr.count("\n")) == (2, "", 1), p.stderr
    assert p.stderr.startswith(f"{tool}: error: {line}"), p.stderr
    assert not any(tmp_path.iterdir())


BINARY = [
    ("prof-bpf", []),
    ("prof-symd", []),
    ("prof-export", ["-f", "pprof"]),
]


@pytest.mark.parametrize("tool,args", BINARY, ids=[b[0] for b in BINARY])
def test_a_terminal_is_no_place_for_a_stream(tmp_path, tool, args):
    ours, its = pty.openpty()
    try:
        p = subprocess.run([f"{BUILD}/{tool}", *args], stdin=subprocess.DEVNULL, stdout=its,
                           stderr=subprocess.PIPE, text=True, timeout=20, cwd=tmp_path,
                           check=False)
    finally:
        os.close(ours)
        os.close(its)
    assert (p.returncode, p.stderr.count("\n")) == (2, 1), p.stderr
    assert p.stderr.startswith(f"{tool}: error: standard output: is a terminal"), p.stderr


TOOLS = ("profpipe", "prof-bpf", "prof-deltas", "prof-symd", "prof-export", "prof-send",
         "prof-metrics", "prof-dump")
# The manual has these names of addr2line's options; --help has only their letters.
ONLY_IN_MANUAL = {"functions", "inlines", "demangle", "pretty-print"}


@pytest.mark.parametrize("tool", TOOLS)
def test_help_and_manual_page_have_the_same_options(tool):
    usage = subprocess.run([f"{BUILD}/{tool}", "--help"], capture_output=True, text=True,
                           timeout=20, check=True).stdout
    with open(f"{ROOT}/docs/{tool}.1", encoding="utf-8") as f:
        page = f.read()
    helped = set(re.findall(r"(?<![\w-])--([a-z](?:[a-z-]*[a-z])?)(?![a-z]|-[A-Z])",
                            re.sub("`[^`]*`", "", usage)))
    named = r"(?<=[ ,])\\-([a-z]+(?:\\-[a-z]+)*)"
    listed = set(re.findall(named, "\n".join(re.findall(r"^\.It Fl (?:.*\\\n)*.*", page, re.M))))
    assert helped <= {o.replace("\\-", "-") for o in re.findall(named, page)}
    assert {o.replace("\\-", "-") for o in listed} - ONLY_IN_MANUAL <= helped
