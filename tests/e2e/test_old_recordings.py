# SPDX-License-Identifier: Apache-2.0
"""Recordings of other versions: of older ones, kept in tests/data/recordings, and of later ones,
which have messages and fields that this one does not know."""
import gzip
import re
import subprocess

import pytest

from recordings import messages, of_the_future
from streams import BUILD, EXPORT, ROOT, export

DATA = f"{ROOT}/tests/data/recordings"
NEWS = (7, (b"a string",), b"\xc1\xff", [1, 2, 1 << 40])


def recording(name):
    with open(f"{DATA}/{name}.prof", "rb") as f:
        return f.read()


def expected(name, fmt):
    with gzip.open(f"{DATA}/{name}.{fmt}.gz", "rt", encoding="utf-8", errors="replace") as f:
        return f.read()


def exported(data, fmt):
    return subprocess.run([EXPORT, "-f", fmt], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)


@pytest.mark.parametrize("name", ["host", "python"])
@pytest.mark.parametrize("fmt", ["text", "folded"])
def test_an_old_recording_gives_the_same_output_as_then(name, fmt):
    p = exported(recording(name), fmt)
    assert (p.returncode, p.stderr) == (0, b"")
    assert p.stdout.decode(errors="replace") == expected(name, fmt)


def test_an_old_recording_is_recorded_again_without_a_change():
    p = exported(recording("python"), "stream")
    assert (p.returncode, p.stderr) == (0, b"")
    assert exported(p.stdout, "text").stdout.decode(errors="replace") == expected("python", "text")


def test_an_old_raw_stream_is_named():
    raw = recording("raw")
    named = subprocess.run([f"{BUILD}/prof-symd"], input=raw, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60)
    assert named.returncode == 0
    samples = [m for m in messages(raw) if m[0] == 11]
    assert samples
    text = exported(named.stdout, "text").stdout.decode()
    assert len(re.findall(r"cpu-clock:$", text, re.M)) == len(samples)


@pytest.mark.parametrize("fields", [(), NEWS])
@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize("name", ["host", "python"])
def test_additions_of_a_later_version_are_skipped_and_counted(name, every, fields):
    data, unknown, more = of_the_future(recording(name), fields, every)
    p = exported(data, "folded")
    assert p.returncode == 0
    assert p.stdout.decode(errors="replace") == expected(name, "folded")
    said = p.stderr.decode().splitlines()
    # Heads of batches also count.
    assert len(said) == (1 if unknown or more else 0)
    text = exported(data, "text").stdout.decode(errors="replace")
    note = (f"# made by a newer version: {unknown} messages and {more} fields are unknown to this "
            "one, and were skipped\n")
    assert text == expected(name, "text") + (note if said else "")
    if said:
        assert f" {unknown} messages and {more} fields " in said[0]


def test_outputs_and_recordings_count_skipped_fields():
    data, unknown, more = of_the_future(recording("python"), NEWS, 5)
    words = f"{unknown} messages and {more} fields"
    again = exported(data, "stream").stdout
    for stream in (data, again):
        assert words.encode() in exported(stream, "html").stdout
        assert words.encode() in gzip.decompress(exported(stream, "pprof").stdout)
    p = subprocess.run([EXPORT, "-f", "folded", "-s"], input=again, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=60)
    assert words.encode() in p.stderr


def test_prof_symd_reports_skipped_fields_and_passes_them_on():
    data, unknown, more = of_the_future(recording("raw"), NEWS, 4)
    named = subprocess.run([f"{BUILD}/prof-symd"], input=data, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60)
    assert named.returncode == 0
    said = [line for line in named.stderr.decode().splitlines() if "newer version" in line]
    assert len(said) == 1 and f" {unknown} messages and {more} fields " in said[0]
    text = exported(named.stdout, "text").stdout.decode()
    assert f"{unknown} messages and {more} fields" in text


def test_a_schema_that_means_something_else_is_refused():
    data = b"".join(of_the_future(recording("python"))[0:1])
    at = data.index(bytes.fromhex("cf12631516b92365e8"))
    p = export(data[:at] + b"\xcf" + b"\0" * 7 + b"\x02" + data[at + 9:], "-f", "text", code=1)
    assert "another schema" in p.err and p.text == ""
