# SPDX-License-Identifier: Apache-2.0
"""A tool that gets no memory for a while drops its current work and counts it; the run goes on."""
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, of_which_check_has

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "world")
TOOLS = ("profpipe", "prof-bpf", "prof-deltas", "prof-symd", "prof-export")

# New functions and stacks all the time, so that every tool that keeps them needs memory.
BUSY = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
i = 0
while time.monotonic() < end:
    i += 1
    name = f"function_{i}_" + "x" * 200
    names = {}
    source = f"def {name}(n):\\n for i in range(15000): pass\\n return {name}(n - 1) if n else 0"
    exec(compile(source, f"/tmp/file{i}.py", "exec"), names)
    names[name](i % 20)
    time.sleep(0.005)
def last_of_all():
    for i in range(8000000): pass
last_of_all()
print(time.process_time())
"""


@pytest.fixture(scope="module")
def starve(tmp_path_factory):
    """Makes a copy of the tools in which one tool gets no memory for a while: FROM:TO:EACH, of
    starve.c."""
    folder = tmp_path_factory.mktemp("starve")
    folder.chmod(0o755)
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o",
                    folder / "starve.so", f"{HERE}/starve.c"], check=True)

    def make(tool, when):
        tools = folder / f"{tool}.{when}"
        if tools.exists():
            return tools
        # It keeps its name, by which its peers recognize it.
        (tools / "real").mkdir(parents=True)
        for t in TOOLS:
            shutil.copy(f"{BUILD}/{t}", tools / "real" / t if t == tool else tools / t)
        (tools / tool).write_text(f'#!/bin/sh\nSTARVE={when} LD_PRELOAD={folder}/starve.so exec '
                                  f'{tools}/real/{tool} "$@"\n')
        (tools / tool).chmod(0o755)
        return tools

    return make


# No memory for two seconds; no memory in one call of three for three seconds; none at the end of an
# output, which needs memory as well; with each output format.
@pytest.mark.parametrize("tool,when,output", of_which_check_has(
    [(tool, when, "out.folded") for tool in ("prof-bpf", "prof-deltas", "prof-symd", "prof-export")
     for when in ("2000:4000:1", "2000:5000:3", "5000:9000:2")] +
    [("prof-export", "2000:5000:3", "out.prof"), ("prof-export", "2000:5000:3", "out.txt"),
     ("prof-export", "5000:9000:2", "out.pb.gz"), ("prof-export", "5000:9000:2", "out.html")],
    [("prof-bpf", "5000:9000:2", "out.folded"), ("prof-deltas", "2000:4000:1", "out.folded"),
     ("prof-symd", "2000:5000:3", "out.folded"), ("prof-export", "5000:9000:2", "out.folded"),
     ("prof-export", "2000:5000:3", "out.prof")]))
def test_want_of_memory_does_not_end_the_run(starve, tmp_path, tool, when, output):
    out, summary = tmp_path / output, tmp_path / "summary.json"
    p = subprocess.run([starve(tool, when) / "profpipe", "record", "-F", "499", "-o", out,
                        "--summary", summary, "--", sys.executable, "-S", "-c", BUSY, "5"],
                       capture_output=True, text=True, errors="replace", timeout=120)
    assert p.returncode == 0, p.stderr
    s = json.loads(summary.read_text())
    assert not s["restarts"], p.stderr
    # 499 samples a second of the program's cpu time, minus those counted as lost; in its first
    # moments it was not yet called python, and whether it runs at a tick is a matter of chance.
    lost, ran = s["lost_total"], float(p.stdout)
    assert out.stat().st_size > 1000 and s["samples"] > lost / 4, p.stderr
    expected = 499 * ran
    assert s["samples"] + lost >= 0.95 * expected - 3 * expected ** 0.5 - 10, (
        s["samples"], lost, ran, p.stderr)
    assert (lost > 0) == ("lost:" in p.stderr), p.stderr
    # Samples taken after memory was available again are whole.
    if output in ("out.folded", "out.txt") and not when.startswith("5000"):
        late = [line for line in out.read_text(errors="replace").splitlines()
                if "last_of_all" in line]
        assert late, p.stderr
