# SPDX-License-Identifier: Apache-2.0
"""Real Java programs: whole stacks in which Java's frames have names."""
import json
import os
import re
import subprocess

import pytest
from conftest import profpipe
from java_stacks import FOLDER, JAVA, JAVAS, Frame, sampled, version

# A class with many kinds of code, for the Java compiler.
CLASS = """package made;
import java.util.*;
import java.util.function.*;
public class C%(n)d<T extends Comparable<T>> {
    enum Kind { ONE, TWO { @Override int value() { return 2; } }; int value() { return 1; } }
    private final Map<String, List<T>> all = new TreeMap<>();
    %(methods)s
}
"""
METHOD = """
    public <R> List<R> m%(i)d(Function<? super T, ? extends R> f, String key) {
        List<R> found = new ArrayList<>();
        for (T x : all.getOrDefault(key + %(i)d, Collections.emptyList())) {
            try {
                switch (Kind.valueOf(key)) {
                case ONE: found.add(f.apply(x)); break;
                default: all.computeIfAbsent(key, k -> new LinkedList<>()).add(x);
                }
            } catch (IllegalArgumentException e) { throw new IllegalStateException("%(i)d", e); }
        }
        return found;
    }
"""


def run_javac(folder):
    methods = "".join(METHOD % {"i": i} for i in range(8))
    for n in range(40):
        (folder / f"C{n}.java").write_text(CLASS % {"n": n, "methods": methods})
    return (["sh", "-c", f"{os.path.dirname(JAVA)}/javac -proc:none -nowarn -d $0/out $0/*.java",
             folder], r"com\.sun\.tools\.javac\.main\.Main\.compile")


def run_server(folder):
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder,
                    f"{FOLDER}/programs/Server.java"], check=True, capture_output=True)
    return [JAVA, "-cp", folder, "Server", "3"], r"Server\.answer"


def run_virtual_server(folder):
    java = next((j for j in JAVAS if int(version(j).split(".")[0]) >= 21), None)
    assert java, "no Java from 21 on is installed"
    command, known = run_server(folder)
    return [java, *command[1:], "virtual"], known


@pytest.mark.parametrize("program", [
    run_javac, pytest.param(run_server, marks=pytest.mark.check_all),
    pytest.param(run_virtual_server, marks=pytest.mark.check_all)])
def test_stacks_of_a_program_are_whole_and_named(program, tmp_path):
    out, summary, folder = tmp_path / "out.txt", tmp_path / "summary.json", tmp_path / "folder"
    folder.mkdir()
    command, known = program(folder)
    p = profpipe("record", "-q", "-F", 199, "--summary", summary, "-o", out, "--", *command)
    assert p.returncode == 0, p.stderr
    said = json.loads(summary.read_text())
    java = [[f.method if isinstance(f, Frame) else f for f in stack]
            for _, stack in sampled(out) if any(isinstance(f, Frame) for f in stack)]
    cut = [stack for stack in java if stack[0].startswith("[truncated")]
    unnamed = [stack for stack in java if any(re.match(r"\[hotspot: ", f) for f in stack)]
    generated = [stack for stack in java if any("[anon" in f for f in stack)]
    share = sum(any(re.match(known, f) for f in stack) for stack in java) / max(1, len(java))
    print(f"{program.__name__[4:]}: {said['samples']} samples, "
          f"{said['complete'] / said['samples']:.2%} complete; {len(java)} of Java: {len(cut)} "
          f"truncated, {len(unnamed)} with a frame that has no name, {len(generated)} with "
          f"generated code that is not Java's; {share:.0%} in {known}",
          *[f"  {k}: {v}" for k, v in said["truncated"].items() if v], sep="\n")
    assert len(java) > 50
    # At the start, native frames lack the rows of their files for some milliseconds. The programs
    # for Java load when its first file is seen, and until then its code is walked as native.
    early = said["truncated"].get("caller-unsure", 0)
    assert early <= 40, said["truncated"]
    assert said["complete"] + early >= 0.97 * said["samples"], said["truncated"]
    # A deferred walk has room for this much of the stack and of the code's descriptions.
    assert len(cut) <= max(4, 0.01 * len(java))
    assert len(unnamed) <= max(4, 0.01 * len(java))
    assert share > 0.1
