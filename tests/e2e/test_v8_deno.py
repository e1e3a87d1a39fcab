# SPDX-License-Identifier: Apache-2.0
"""Deno's JavaScript. Its V8 tells its version only as text, describes nothing to debuggers, and
writes no positions for optimized code."""
import json
import os
import shutil
import subprocess

import pytest
from conftest import profpipe
from nodes import ROOT, from_npm
from v8_stacks import Score, interpreted, samples

JAVASCRIPT = os.path.join(ROOT, "tests", "e2e", "javascript")
# The last release of each version of V8 that profpipe knows (12.9, 13.0, 13.5, 13.7, 14.0, 14.5,
# 14.7, 14.9, 15.0).
VERSIONS = ["2.0.6", "2.1.14", "2.2.15", "2.4.4", "2.5.7", "2.6.8", "2.7.14", "2.8.3", "2.9.6"]
PROGRAM = """
function leaf(a, b) { let s = a; for (let i = 0; i < 50; i++) s = (s * 31 + b) | 0; return s; }
function tiny(n) { return n < 2 ? leaf(n, 3) : tiny(n - 1) + tiny(n - 2); }
class Runs { all(n) { return [1, 2, 3].map(function each(x) { return tiny(n + x); }); } }
for (const end = Date.now() + 1500, r = new Runs(); Date.now() < end;) r.all(10);
"""


def deno(number):
    return from_npm(number, "deno", "@deno/linux-x64-glibc", "package/deno")


@pytest.mark.check_all
@pytest.mark.parametrize("number", VERSIONS)
def test_functions_of_deno_have_names(number, tmp_path):
    out, script = tmp_path / "out.txt", tmp_path / "program.js"
    script.write_text(PROGRAM)
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", deno(number), "run", script)
    assert p.returncode == 0, p.stderr
    chains = [[name for name, *_ in frames] for _, frames in samples(out)]
    # V8 may inline all of them in the outermost one.
    inside = [c for c in chains if {"all", "tiny", "leaf"} & set(c)]
    # Deno 2.9 has no unwind tables, so its root is not proved.
    lost = "[v8: " if number > "2.9" else ("[v8: ", "[truncated")
    whole = [c for c in inside if not any(n.startswith(lost) for n in c)]
    unnamed = sum(any(n.startswith("[anon") for n in c) for c in inside)
    print(f"{len(whole)} of {len(inside)} whole, {unnamed} with code without a name; "
          f"{len(chains)} in all")
    assert len(inside) > 200 and len(whole) >= 0.99 * len(inside)
    assert unnamed <= 0.01 * len(inside)


@pytest.mark.check_all
@pytest.mark.parametrize("number", VERSIONS[5:])
def test_stacks_of_deno_are_those_of_its_tracebacks(number, tmp_path):
    """Without optimized code. A computed name is missing, and a name in WebAssembly. Releases
    before 2.6 end in the middle of the scenes."""
    folder, said = tmp_path / "scenes", tmp_path / "scenes.json"
    shutil.copytree(JAVASCRIPT, folder)
    (folder / "package.json").write_text('{"type": "commonjs"}')
    command = [deno(number), "run", "-A", "--v8-flags=--no-opt,--no-maglev",
               "--unstable-detect-cjs", "deno.js", "./scenes.js", tmp_path]
    environment = {**os.environ, "NO_COLOR": "1"}
    subprocess.run([*map(str, command), "0", said], cwd=folder, check=True, timeout=120,
                   env={**environment, "SCENES_WARM_MS": "0"})
    p = profpipe("record", "-q", "-F", 499, "-o", tmp_path / "out.txt", "--", *command, "0.02",
                 cwd=folder, env=environment)
    assert p.returncode == 0, p.stderr
    score = Score(json.loads(said.read_text()), interpreted(tmp_path / "out.txt"), False)
    print(score.table(f"Deno {number}"))
    assert score.total() >= 0.94 and sum(score.all.values()) > 500
