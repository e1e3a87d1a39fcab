# SPDX-License-Identifier: Apache-2.0
"""Virtual threads that pause and resume while they are sampled (tests/e2e/java/programs/Pauses)."""
import re

import pytest
from conftest import profpipe
from java_stacks import JAVAS, Frame, built, sampled, version

# The methods of Pauses in each stack of its virtual threads, root first, up to where it is.
CHAIN = ["run", *["deeper"] * 200, *[f"m{i}" for i in range(10)], "pause"]
# What runs while a thread pauses or resumes.
INSIDE = re.compile(r"\[StubRoutines \(continuation ?stubs\)\]|.*\b(freeze|thaw|prepare_thaw|"
                    r"freeze_internal)\b.*|.*(FreezeBase|ThawBase|Freeze<|Thaw<).*|"
                    r"jdk\.internal\.vm\.Continuation\.doYield")
# Without these, some frames at the root would be interpreted, and those above would be inlined.
COMPILED = ["-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:-Inline"]
STUB = re.compile(r"\[StubRoutines \(continuation ?stubs\)\]")


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    return built(tmp_path_factory.mktemp("classes"))


def judge(stack, stays):
    """What a stack is: "other": no virtual thread's; "carrier": the thread has no frame on it;
    "marked": it is truncated; "whole", or "wrong"."""
    names = [f.method if isinstance(f, Frame) else f for f in stack]
    methods = [f.method for f in stack if isinstance(f, Frame)]
    mine = [m[len("Pauses."):] for m in methods if m.startswith("Pauses.")]
    if names[0].startswith("[truncated: "):
        return "marked"
    if "main" in mine or not any("VirtualThread.runContinuation" in m for m in methods):
        return "other"
    roots = [methods.count(m) for m in ("jdk.internal.vm.Continuation.run",
                                        "java.lang.VirtualThread.run", "Pauses.run")]
    if not mine:
        # The thread begins and ends in methods that are not its own.
        return "carrier" if roots[0] <= 1 and roots[1] <= 1 else "wrong"
    least = len(CHAIN) - 1 if stays else 1
    whole = roots == [1, 1, 1] and mine == CHAIN[:len(mine)] and len(mine) >= least
    return "whole" if whole else "wrong"


def paused(java, classes, tmp_path, how, where, *flags, prefix=()):
    """Records the program. Returns its stacks by judgement: only those of which a part belongs to
    pausing and resuming."""
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 999, "-o", out, "--", *prefix, java, *flags,
                 "-Djdk.virtualThreadScheduler.parallelism=2", "-cp", classes, "Pauses", how, where,
                 "5")
    assert p.returncode == 0, p.stderr
    found = {"whole": [], "carrier": [], "marked": [], "wrong": [], "other": []}
    for _, stack in sampled(out):
        names = [f.method if isinstance(f, Frame) else f for f in stack]
        if any(INSIDE.fullmatch(n) for n in names):
            found[judge(stack, where == "stays")].append(names)
    print(f"Java {version(java, *prefix)}, {how}, {where}:",
          {k: len(v) for k, v in found.items()})
    for names in found["wrong"][:3]:
        print("  wrong:", ";".join(names))
    return found


def check_pauses(java, classes, tmp_path, how, where, *flags, **kw):
    found = paused(java, classes, tmp_path, how, where, *flags, **kw)
    inside = sum(map(len, found.values()))
    assert len(found["whole"]) > 20
    assert len(found["wrong"]) <= 0.005 * inside + 1
    if where == "returns":
        assert len(found["marked"]) <= 0.1 * inside + 5
        # The frames that a thread still has in the heap are its stack while more of them resume.
        resumes = [names for names in found["whole"] if any(STUB.fullmatch(n) for n in names)]
        assert len(resumes) > len(found["carrier"])


WITH_THREADS = [j for j in JAVAS if int(version(j).split(".")[0]) >= 21]

# Debian 12 itself has no Java with virtual threads.
if WITH_THREADS:
    @pytest.mark.parametrize("java", WITH_THREADS)
    @pytest.mark.parametrize("how, where", [
        ("yield", "returns"), ("park", "stays"),
        *(pytest.param(*two, marks=pytest.mark.check_all)
          for two in [("yield", "stays"), ("park", "returns")])])
    def test_stacks_of_pausing_threads_have_each_frame_once(java, how, where, classes, tmp_path):
        check_pauses(java, classes, tmp_path, how, where, *COMPILED)
