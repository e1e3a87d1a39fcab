# SPDX-License-Identifier: Apache-2.0
"""Java is recognized before its first generated code is sampled. The libjvm.so of JDK 21 and later
has more than 24 MiB, which prof-symd treats differently (common/names/program/program.c)."""
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from conftest import profpipe
from java_stacks import FOLDER, JAVA, Frame, sampled


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    """A copy of Java whose libjvm.so is large."""
    home, of = tmp_path_factory.mktemp("home"), Path(JAVA).parent.parent
    copied = ("bin/java", "lib/libjli.so", "lib/server/libjvm.so")
    (home / "bin").mkdir()
    (home / "lib/server").mkdir(parents=True)
    for folder, skipped in (("", {"bin", "lib"}), ("lib", {"libjli.so", "server"})):
        for path in (of / folder).iterdir():
            if path.name not in skipped:
                (home / folder / path.name).symlink_to(path.resolve())
    for name in copied:
        shutil.copy(of / name, home / name)
    libjvm = home / copied[-1]
    os.truncate(libjvm, max(libjvm.stat().st_size, 25 << 20))
    return home / "bin/java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder,
                    f"{FOLDER}/programs/Thrown.java"], check=True, capture_output=True)
    return folder


def test_sampling_of_a_process_does_not_wait_for_a_large_libjvm(java, classes, tmp_path):
    out = tmp_path / "out.txt"
    with subprocess.Popen([java, "-cp", classes, "Thrown", "catch", "60000"]) as program:
        try:
            time.sleep(1)
            p = profpipe("record", "-v", "-F", 199, "-d", 0.5, "-o", out, "-p", program.pid)
        finally:
            program.kill()
    assert p.returncode == 0, p.stderr
    waited = float(re.search(r"sampling has begun, after ([\d.]+) s", p.stderr)[1])
    stacks = [s for _, s in sampled(out)]
    named = [s for s in stacks if any(isinstance(f, Frame) for f in s)]
    print(f"began after {waited} s, {len(named)} of {len(stacks)} samples have Java frames")
    assert waited < 4
    assert len(named) >= 0.8 * len(stacks) > 5


def test_first_generated_code_has_names(java, classes, tmp_path):
    out, unnamed = tmp_path / "out.txt", []
    for _ in range(3):  # a busy machine may delay one
        p = profpipe("record", "-q", "-F", 999, "-o", out, "--", java, "-cp", classes, "Thrown",
                     "catch", "300")
        assert p.returncode == 0, p.stderr
        unnamed.append(sum("[anon+" in s for s in out.read_text().split("\n\n")))
        if unnamed[-1] < 20:
            break
    print("samples of generated code without a name:", *unnamed)
    assert min(unnamed) < 20
