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


# A chain of methods: each sample has 250 of the 10,000.
CHAIN = """public class D%(n)d {
    static long m250(long x) {
        long end = System.nanoTime() + 20000000L;
        while (System.nanoTime() < end)
            x += x >> 3;
        return x;
    }
%(methods)s}
"""
LINK = "    static long m%(i)d(long x) { return m%(next)d(x + %(i)d) + 1; }\n"
CHAINS = """public class Many {
    public static void main(String[] args) {
        long x = 1;
        for (int round = 0; round < 8; round++) {
%(calls)s        }
        System.out.println(x);
    }
}
"""


def test_ten_thousand_methods_keep_their_names_and_lines(tmp_path):
    out, summary = tmp_path / "out.txt", tmp_path / "summary.json"
    methods = "".join(LINK % {"i": i, "next": i + 1} for i in range(250))
    for n in range(40):
        (tmp_path / f"D{n}.java").write_text(CHAIN % {"n": n, "methods": methods})
    calls = "".join(f"            x += D{n}.m0(x);\n" for n in range(40))
    (tmp_path / "Many.java").write_text(CHAINS % {"calls": calls})
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", tmp_path,
                    *tmp_path.glob("*.java")], check=True, capture_output=True)
    p = profpipe("record", "-q", "-F", 199, "--summary", summary, "-o", out, "--",
                 JAVA, "-cp", tmp_path, "Many")
    assert p.returncode == 0, p.stderr
    stacks = [[f for f in stack if isinstance(f, Frame)] for _, stack in sampled(out)]
    frames = [f for stack in stacks for f in stack]
    known = {f.method for f in frames if re.fullmatch(r"D\d+\.m\d+", f.method)}
    gone = sum("[hotspot: gone]" in stack for _, stack in sampled(out))
    print(f"{len(known)} methods in {len(frames)} frames, {gone} samples with one that is gone")
    assert len(known) > 9000
    lineless = [f for f in frames if f.method in known and not f.line]
    # Of the first methods, the lines may not come in time on a busy host.
    assert len(lineless) <= 0.02 * len(frames), lineless[:5]
    assert gone <= 0.01 * len(stacks)
