# SPDX-License-Identifier: Apache-2.0
"""Exceptions that leave frames of C2, and stacks that are deeper than a sample
(tests/e2e/java/programs/Thrown.java)."""
import re
import subprocess

import pytest
from conftest import profpipe
from java_stacks import FOLDER, JAVA, JAVAS, Frame, sampled, version

# What hands an exception on to the frame's caller. Its name depends on the version.
HANDS_ON = re.compile(r"\[(C2 Runtime rethrow|_rethrow_Java|ExceptionBlob)")


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thrown")
    subprocess.run(["javac", "-nowarn", "-Xlint:-options", "--release", "8", "-d", folder,
                    f"{FOLDER}/programs/Thrown.java"], check=True, capture_output=True)
    folder.chmod(0o755)
    return folder


def recorded(classes, tmp_path, java, hz, what, ms):
    """Returns the stacks, root first."""
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", hz, "-o", out, "--", java, "-cp", classes, "Thrown", what,
                 ms)
    assert p.returncode == 0, p.stderr
    return [stack for _, stack in sampled(out)]


def is_right(stack):
    return not str(stack[0]).startswith("[truncated") and any(
        isinstance(f, Frame) and f.method == "Thrown.main" for f in stack)


@pytest.mark.parametrize("java", JAVAS)
def test_stubs_that_hand_exceptions_on_have_callers(java, classes, tmp_path):
    leaves = [s for s in recorded(classes, tmp_path, java, 1999, "catch", 2500)
              if s and HANDS_ON.match(str(s[-1]))]
    wrong = [s for s in leaves if not is_right(s)]
    print(f"Java {version(java)}: {len(leaves) - len(wrong)} of {len(leaves)} right")
    assert len(leaves) > 10
    assert len(wrong) <= 0.02 * len(leaves) + 1, wrong[0]


def test_stacks_cut_by_depth_end_in_a_frame_with_a_name(classes, tmp_path):
    cut = [s for s in recorded(classes, tmp_path, JAVA, 499, "deep", 1000)
           if s and str(s[0]).startswith("[truncated: depth")]
    assert len(cut) > 10
    assert all(isinstance(s[1], Frame) for s in cut), {str(s[1]) for s in cut}
