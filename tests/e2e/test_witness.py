# SPDX-License-Identifier: Apache-2.0
"""A prof-symd that was taken over falsifies what it sends to prof-export (tests/hostile/falsify.c).
prof-bpf tells prof-export itself what it sent, so the run and its output say so."""
import json
import os
import shutil
import subprocess

import pytest
from conftest import BUILD

TOOLS = ["profpipe", "prof-bpf", "prof-deltas", "prof-export"]
MARK = "do not trust this profile"
# Two processes, so that samples can be moved from one to the other. They end by themselves.
SPIN = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
COMMAND = ["sh", "-c", f"sh -c '{SPIN}' & {SPIN}; wait"]


def falsified(tmp_path, act, form="html"):
    folder = tmp_path / act
    folder.mkdir()
    for tool in TOOLS:
        shutil.copy(f"{BUILD}/{tool}", folder)
    shutil.copy(f"{BUILD}/tests/false-symd", folder / "prof-symd")
    out, summary = tmp_path / f"{act}.{form}", tmp_path / f"{act}.json"
    done = subprocess.run([folder / "profpipe", "record", "-F", "199", "-f", form, "-o", out,
                           "--summary", summary, "--", *COMMAND],
                          capture_output=True, text=True, timeout=60)
    return done, json.loads(summary.read_text()), out


def test_an_honest_prof_symd_agrees(tmp_path):
    done, summary, _ = falsified(tmp_path, "honest")
    assert done.returncode == 0, done.stderr
    assert summary["samples"] > 20, summary
    assert summary["witness"] == {"more": 0, "fewer": 0, "losses": 0}


@pytest.mark.parametrize("act,what", [
    ("two-stacks", "more"), ("move", "more"), ("late", "more"), ("heavy", "more"),
    ("labelled", "more"), ("double", "more"),
    ("threadless", "more"), ("early", "more"), ("gone", "more"), ("drop", "fewer"),
    ("restart", "fewer"), ("losses", "losses")])
def test_a_prof_symd_taken_over_is_noticed(tmp_path, act, what):
    done, summary, out = falsified(tmp_path, act)
    assert done.returncode == 1, done.stderr
    assert "the samples differ from those that prof-bpf sent" in done.stderr
    assert MARK in done.stderr
    assert summary["loss"] == "the samples differ from those that prof-bpf sent"
    assert summary["witness"][what] > 0, summary["witness"]
    assert any(MARK in note for note in summary["notes"]), summary["notes"]
    assert MARK in out.read_text(errors="replace")


@pytest.mark.parametrize("form", ["folded", "pprof", "text", "stream"])
def test_each_output_reports_the_disagreement(tmp_path, form):
    done, _, out = falsified(tmp_path, "double", form)
    assert done.returncode == 1, done.stderr
    if form == "stream":
        again = tmp_path / "again.html"
        subprocess.run([f"{BUILD}/profpipe", "report", "-f", "html", "-o", again, out],
                       check=False, capture_output=True, timeout=60)
        assert MARK in again.read_text(errors="replace")
    elif form == "pprof":
        raw = subprocess.run(["gzip", "-dc", out], capture_output=True, check=True).stdout
        assert MARK.encode() in raw
    else:
        assert MARK in out.read_text(errors="replace")


def test_the_stream_cannot_set_the_launchers_figures(tmp_path):
    done, summary, _ = falsified(tmp_path, "figures")
    assert done.returncode == 0, done.stderr
    assert summary["lost_total"] == 0 and summary["restarts"] == {}, summary
