# SPDX-License-Identifier: Apache-2.0
"""Java programs that attack their profiler (tests/e2e/java/hostile): only their own profile
suffers."""
import collections
import json
import os
import shlex
import subprocess
import time

import pytest
from conftest import profpipe
from java_stacks import FOLDER, JAVA, Frame, Score, built, reported, sampled

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SOURCES = os.path.join(FOLDER, "hostile")
NEIGHBOURS = ["static_call", "recursion", "lambda", "stream", "handler", "alone", "interface_call"]


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    return built(tmp_path_factory.mktemp("classes"), f"{SOURCES}/hostile.c")


def attack_of(how, classes):
    """The command of an attack."""
    if how.startswith("forged "):
        program = classes / "forged"
        subprocess.run(["gcc", "-O2", "-rdynamic", f"-I{ROOT}", "-o", program,
                        f"{SOURCES}/forged.c", "-lpthread"], check=True)
        return [program, how.split()[1], "9"]
    return [JAVA, *(["-Xint"] if how != "heap" else []), "-XX:-CreateCoredumpOnCrash",
            "-XX:ErrorFile=/dev/null", f"-Djava.library.path={classes}", "-cp", classes,
            "Hostile", how, "9"]


HOW = ["pit", "circle", "far", "heap", "forged pit", "forged wild"]


@pytest.mark.parametrize("attacks", [
    pytest.param(HOW, id="all"),
    *(pytest.param([how], marks=pytest.mark.check_all) for how in HOW)])
def test_forged_frames_and_code_cost_no_frame_of_others(attacks, classes, tmp_path):
    out, said, summary = (tmp_path / n for n in ("out.txt", "stacks", "summary.json"))
    scenes = [JAVA, "-cp", classes, "scenes.Main", "0.15", said, *NEIGHBOURS]
    # The attackers yield to the scenes, which then take seconds.
    began = [f"nice {shlex.join(map(str, attack_of(how, classes)))} >/dev/null 2>&1 & "
             f'attackers="$attackers $!"' for how in attacks]
    script = "\n".join([*began, f"{shlex.join(map(str, scenes))}; status=$?",
                        "kill -9 $attackers", "exit $status"])
    started = time.monotonic()
    p = profpipe("record", "-q", "-F", 199, "-o", out, "--summary", summary, "--", "sh", "-c",
                 script, timeout=90)
    assert p.returncode == 0, p.stderr
    assert "died" not in p.stderr and "gave up" not in p.stderr, p.stderr
    stacks = sampled(out)
    score = Score(reported(said), stacks)
    score.print_table(", ".join(attacks))
    attackers = collections.Counter(c.split(" ")[0] for c, s in stacks if is_of_attacker(c, s))
    print(f"samples of attackers: {dict(attackers)}; {time.monotonic() - started:.1f} s",
          {k: v for k, v in json.loads(summary.read_text())["truncated"].items() if v})
    assert sum(attackers.values()) > 50
    assert score.share() >= 0.97 and len(score.all_of) >= 12


def is_of_attacker(command, stack):
    names = [f.method if isinstance(f, Frame) else f for f in stack]
    return command.startswith(("forged ", "busy ")) or any("ostile" in name for name in names)
