# SPDX-License-Identifier: Apache-2.0
"""Recordings, and the reports of them."""
import random
import re
import subprocess
import time

import pytest

from conftest import BUILD, profpipe
from running import burn, nothing_is_left_behind


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    out = tmp_path_factory.mktemp("recording") / "run.prof"
    p = profpipe("record", "-F", "499", "-o", out, "--", *burn(1))
    assert p.returncode == 0, p.stderr
    return out


@pytest.mark.parametrize("fmt,head",
                         [("folded", b"python3"), ("html", b"<!"), ("pprof", b"\x1f\x8b"),
                          ("text", b""), ("stream", b""), ("otlp", b"\x00")])
def test_a_recording_is_replayed_in_every_format(tmp_path, recording, fmt, head):
    out = tmp_path / "out"
    p = profpipe("report", recording, "-f", fmt, "-o", out)
    assert p.returncode == 0 and p.stderr == "", p.stderr
    assert out.read_bytes().startswith(head) and out.stat().st_size > 100


def test_a_report_goes_to_standard_output(recording):
    p = profpipe("report", recording)
    assert p.returncode == 0 and p.stdout.startswith("python3") and p.stderr == ""


def test_a_truncated_recording_is_reported_and_its_start_written(tmp_path, recording):
    cut = tmp_path / "cut.prof"
    data = recording.read_bytes()
    cut.write_bytes(data[: len(data) * 3 // 4])
    p = profpipe("report", cut, "-f", "folded")
    assert p.returncode == 1
    assert len(p.stderr.splitlines()) == 1 and str(cut) in p.stderr and "cut" in p.stderr
    assert "python3" in p.stdout


@pytest.mark.parametrize("content",
                         [b"", b"not a recording\n" * 100, b"\x92\x01\x9f" + b"\xff" * 200,
                          random.Random(1).randbytes(5000)],
                         ids=["empty", "text", "array", "noise"])
def test_a_foreign_file_is_refused_in_one_line(tmp_path, content):
    bad, out = tmp_path / "bad.prof", tmp_path / "out.folded"
    bad.write_bytes(content)
    out.write_text("precious")
    p = profpipe("report", bad, "-o", out)
    assert p.returncode == 1 and len(p.stderr.splitlines()) == 1 and str(bad) in p.stderr
    assert out.read_text() == "precious"


def test_a_report_is_never_written_over_its_recording(recording):
    before = recording.read_bytes()
    p = profpipe("report", recording, "-f", "stream", "-o", recording)
    assert p.returncode == 1 and recording.read_bytes() == before


def test_a_recording_says_when_a_process_began_by_the_wall_clock(tmp_path):
    """The start uses the clock that continues while the host is suspended; samples use one that
    does not. The stream has both."""
    before = time.time()
    p = subprocess.Popen(burn(20))
    after = time.time()
    try:
        out = tmp_path / "out.prof"
        assert profpipe("record", "-d", "1", "-p", p.pid, "-o", out).returncode == 0
    finally:
        p.kill()
        p.wait()
    with open(out, "rb") as f:
        text = subprocess.run([f"{BUILD}/tests/symd-peer", "print"], stdin=f, capture_output=True,
                              text=True, check=True).stdout
    clocks = re.search(r"^hello .*wall_ns=(\d+) boot_ns=(\d+)", text, re.M)
    start = re.search(rf"^process .*\bpid={p.pid} .*start_ns=(\d+)", text, re.M)
    began = (int(clocks[1]) - (int(clocks[2]) - int(start[1]))) / 1e9
    assert before - 0.05 < began < after + 0.05, (before, began, after)
