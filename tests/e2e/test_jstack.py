# SPDX-License-Identifier: Apache-2.0
"""A resting JVM: `profpipe dump --all-threads` compared with jstack."""
import os
import re
import subprocess

import pytest

from conftest import profpipe
from java_stacks import FOLDER, JAVA, JAVAS

WAITING = {"interpreted", "compiled", "asleep", "locked out", "reads", "accepts", "takes", "main"}


def jstacks(java, pid):
    """By thread id: (name, [(method, file and line)]). Where there is no line, the text is
    empty."""
    p = subprocess.run([os.path.join(os.path.dirname(java), "jstack"), str(pid)],
                       capture_output=True, text=True, check=True, timeout=60)
    threads, frames = {}, None
    for line in p.stdout.splitlines():
        if m := re.match(r'"(.*?)".* nid=(0x[0-9a-f]+|\d+) ', line):
            frames = []
            threads[int(m[2], 0)] = m[1], frames
        # "java.base@17.0.15/Object.java:338", "Native Method", "Unknown Source"
        elif m := re.match(r"\tat (?:[\w.]+(?:@[^/]*)?//?)?([^(]+)\((?:[\w.]+@[^/]*/)?(.*)\)$",
                           line):
            where = m[2] if re.fullmatch(r"\w+\.java:\d+", m[2]) else ""
            frames.append((re.sub(r"/0x[0-9a-f]+", "", m[1]), where))
    return threads


def dumped(pid):
    """The frames of Java's methods by thread id, in the same form. A method without parentheses is
    not Java's."""
    p = profpipe("dump", "--all-threads", pid)
    assert p.returncode == 0, p.stderr
    threads, frames = {}, None
    for line in p.stdout.splitlines():
        if m := re.match(r"thread (\d+)", line):
            frames = threads[int(m[1])] = []
        elif m := re.match(r"\d+ 0x[0-9a-f]+ ([\w.$]+)\([^)]*\)(?: (\w+\.java)(:\d+)?)?$", line):
            if "." in m[1]:
                frames.append((m[1], m[2] + m[3] if m[3] else ""))
    return threads


@pytest.mark.parametrize("java", [
    pytest.param(java, marks=[] if java == JAVA else pytest.mark.check_all) for java in JAVAS
    if os.path.exists(os.path.join(os.path.dirname(java), "jstack"))])
def test_a_dump_of_all_threads_equals_jstack(java, tmp_path):
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", tmp_path,
                    f"{FOLDER}/programs/Resting.java"], check=True, capture_output=True)
    with subprocess.Popen([java, "-cp", tmp_path, "Resting"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as resting:
        try:
            assert resting.stdout.readline().startswith(b"resting")
            expected, found = jstacks(java, resting.pid), dumped(resting.pid)
        finally:
            resting.kill()
    assert WAITING <= {name for name, _ in expected.values()}
    print(f"{len(expected)} threads, {sum(len(frames) for _, frames in expected.values())} frames")
    for thread, (name, frames) in expected.items():
        assert found[thread] == frames, name
