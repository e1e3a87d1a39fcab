# SPDX-License-Identifier: Apache-2.0
"""Java code that lowers RSP further than its frame (tests/e2e/java/programs/Lowered.java): its
callers are neither missing nor wrong."""
import collections
import re
import subprocess

import pytest
from conftest import profpipe
from java_stacks import FOLDER, JAVAS, Frame, sampled, version


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lowered")
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder,
                    f"{FOLDER}/programs/Lowered.java"], check=True, capture_output=True)
    folder.chmod(0o755)
    return folder


def recorded(classes, tmp_path, *command):
    """Yields the name of the thread and the stack, root first, of each sample."""
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 499, "-o", out, "--", command[0], "-cp", classes,
                 *command[1:])
    assert p.returncode == 0, p.stderr
    for head, stack in sampled(out):
        yield re.match(r"(.*?) +\d+/\d+ \[", head)[1], stack


def is_whole(stack):
    return isinstance(stack[0], str) and not stack[0].startswith("[truncated")


@pytest.mark.parametrize("java", JAVAS)
def test_code_that_pushes_has_callers(java, classes, tmp_path):
    names = ("compare", "index", "merge", "convert", "sine")
    all_of, whole = collections.Counter(), collections.Counter()
    for name, stack in recorded(classes, tmp_path, java, "Lowered", "500"):
        # The thread also runs native code before and after that method.
        if name in names and any(isinstance(f, Frame) for f in stack):
            all_of[name] += 1
            whole[name] += is_whole(stack) and any(
                isinstance(f, Frame) and f.method == "Lowered.run" or "lambda$run" in str(f)
                for f in stack)
    print(f"Java {version(java)}:", *[f"{n}: {whole[n]} of {all_of[n]}" for n in names])
    assert min(all_of[name] for name in names) > 4, all_of
    for name in names:
        assert whole[name] >= 0.98 * all_of[name] - 1, (name, whole[name], all_of[name])


# Who may call a method.
CALLERS = {"Lowered.store": ["Lowered.stores"], "Lowered.stores": ["Lowered.lambda$main"],
           "Lowered.puts": ["Lowered.lambda$main"],
           "java.util.concurrent.ConcurrentHashMap.put": ["Lowered.puts"],
           "java.util.concurrent.ConcurrentHashMap.putVal": [
               "java.util.concurrent.ConcurrentHashMap.put"],
           "java.lang.System.currentTimeMillis": ["Lowered.lambda$run"]}


@pytest.mark.parametrize("java", JAVAS)
def test_slow_paths_of_barriers_have_the_right_callers(java, classes, tmp_path):
    flags = "-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC"
    if subprocess.run([java, *flags, "-version"], capture_output=True, check=False).returncode:
        pytest.skip("this Java has no ZGC")
    barriers = java_stacks = cut = 0
    wrong = collections.Counter()
    for name, stack in recorded(classes, tmp_path, java, *flags, "-Xmx120m", "Lowered", "3000",
                                "barriers"):
        if name != "barriers" or not any(isinstance(f, Frame) for f in stack):
            continue
        java_stacks += 1
        barriers += any(re.search("ZBarrier|load_barrier|store_barrier", f) for f in stack
                        if isinstance(f, str))
        cut += not is_whole(stack)
        for caller, callee in zip(stack, stack[1:]):
            if not isinstance(callee, Frame) or not isinstance(caller, Frame):
                continue
            allowed = CALLERS.get(callee.method)
            if allowed and not any(caller.method.startswith(a) for a in allowed):
                wrong[caller.method, callee.method] += 1
    print(f"Java {version(java)}: {java_stacks} samples, {barriers} of them in barriers, {cut} "
          f"truncated; impossible callers: {dict(wrong)}")
    assert barriers > 20
    assert cut <= 1 + 0.01 * java_stacks
    assert not wrong
