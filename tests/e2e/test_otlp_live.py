# SPDX-License-Identifier: Apache-2.0
"""OTLP of live programs: the same samples as in text, and the data that a backend needs to name the
rest."""
import gzip
import hashlib
import os
import re
import struct
import subprocess

import pytest

from conftest import GO_CACHE, profpipe
from otlp_rules import assert_same, clocks, lookup, lost, profiles, requests, split
from running import burn
from test_labels import go_build_id

# All of these run for a given cpu time, not wall time, so that they have samples on a busy machine.
NATIVE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile uint64_t x;
__attribute__((noinline)) void spin(void) { for (int i = 0; i < 1000000; i++) x += i; }
__attribute__((noinline)) void ask(void) { for (int i = 0; i < 2000; i++) (void)!access("/", 0); }
int main(void) { while (clock() < CLOCKS_PER_SEC) { spin(); ask(); } }
"""
GO = "package main\nvar x int\nfunc main() {\nfor i := 0; i < 1000000000; i++ { x += i }\n}\n"
PYTHON = "/usr/bin/python3 -c 'import time\nwhile time.process_time() < 1: pass'"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    (folder / "native.c").write_text(NATIVE)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", folder / "native",
                    folder / "native.c"], check=True)
    (folder / "goes.go").write_text(GO)
    subprocess.run(["go", "build", "-o", folder / "goes", folder / "goes.go"], check=True,
                   cwd=folder,
                   env={**os.environ, "GOCACHE": GO_CACHE, "GOFLAGS": "-buildvcs=false"})
    return folder


@pytest.fixture(scope="module")
def recording(programs):
    out = programs / "run.prof"
    load = f"{programs}/native & {programs}/goes & {PYTHON}; wait"
    p = profpipe("record", "-F", "299", "-o", out, "--", "sh", "-c", load)
    assert p.returncode == 0, p.stderr
    return out


def report(recording, fmt, *args):
    out = recording.with_suffix("." + fmt)
    p = profpipe("report", recording, "-f", fmt, "-o", out, *args)
    assert p.returncode == 0 and not p.stderr, p.stderr
    return out.read_bytes()


def test_a_recording_is_the_same_as_text(recording):
    data = report(recording, "otlp")
    n, frames = assert_same(requests(data), report(recording, "text").decode(errors="replace"),
                            clocks(recording.read_bytes()), exact=True)
    size = sum(len(gzip.compress(x)) for x in split(data))
    print(f"{n} samples, {frames} frames, {size / n:.1f} bytes a sample")
    assert n > 300 and size / n < 40
    names = {d.string_table[f.name_strindex] for d, _, _ in profiles(requests(data))
             for f in d.function_table}
    kinds = {lookup(d, x.attribute_indices)["profile.frame.type"]
             for d, _, _ in profiles(requests(data)) for x in d.location_table[1:]}
    wanted = {"spin", "ask", "main.main", "<string>.<module>"}
    assert wanted <= names, wanted - names
    assert {"native", "kernel", "cpython", "go"} <= kinds


def mappings(data, path):
    """The addresses and the build ids of the file's mappings."""
    for d, _, _ in profiles(requests(data)):
        for m in d.mapping_table:
            if d.string_table[m.filename_strindex] == str(path):
                yield ((m.memory_start, m.memory_limit, m.file_offset),
                       lookup(d, m.attribute_indices))


def htlhash(path):
    data = path.read_bytes()
    return hashlib.sha256(data[:4096] + data[-4096:]
                          + struct.pack(">Q", len(data))).hexdigest()[:32]


def test_a_backend_can_find_the_file_and_the_address(recording, programs):
    data = report(recording, "otlp")
    for name in "native", "goes":
        path = programs / name
        segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                                  check=True).stdout
        wanted = {(int(v, 16), int(v, 16) + int(n, 16), int(o, 16)) for o, v, n in re.findall(
            r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ R E", segments)}
        found = list(mappings(data, path))
        assert found and {place for place, _ in found} <= wanted
        for _, ids in found:
            assert ids["process.executable.build_id.htlhash"] == htlhash(path)
            if name == "native":
                notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True,
                                       check=True).stdout
                gnu = re.search(r"Build ID: (\w+)", notes)[1]
                assert ids["process.executable.build_id.gnu"] == gnu
            else:
                assert ids["process.executable.build_id.go"] == go_build_id(path)


def test_without_names_addresses_stay(programs):
    """prof-symd reads no symbols then, and still gives addresses and build ids."""
    out = programs / "names.otlp"
    p = profpipe("record", "-F", "299", "--names", "interpreted", "-o", out, "--", "sh", "-c",
                 f"{programs}/native & {PYTHON}; wait")
    assert p.returncode == 0, p.stderr
    data = out.read_bytes()
    names = {d.string_table[f.name_strindex] for d, _, _ in profiles(requests(data))
             for f in d.function_table}
    assert "<string>.<module>" in names and not {"spin", "ask", "main"} & names
    symbols = subprocess.run(["nm", "-S", programs / "native"], capture_output=True, text=True,
                             check=True).stdout
    start, size = re.search(r"^(\w+) (\w+) T spin$", symbols, re.M).groups()
    spin = range(int(start, 16), int(start, 16) + int(size, 16))
    inside = 0
    for d, _, p in profiles(requests(data)):
        for s in p.samples:
            leaf = d.location_table[d.stack_table[s.stack_index].location_indices[0]]
            path = d.string_table[d.mapping_table[leaf.mapping_index].filename_strindex]
            if path == str(programs / "native") and leaf.address in spin:
                inside += len(s.timestamps_unix_nano)
    assert inside > 20


def test_a_live_run_reports_in_windows(tmp_path):
    out = tmp_path / "live.otlp"
    p = profpipe("record", "-F", "199", "--window", "0.5", "--window-jitter", "0", "-o", out, "--",
                 *burn(2))
    assert p.returncode == 0, p.stderr
    rs = requests(out.read_bytes())
    spans = sorted({(p.time_unix_nano, p.duration_nano) for _, _, p in profiles(rs)})
    assert len(spans) >= 4 and not lost(rs)
    assert all(d <= 5 * 10**8 + 10**8 for _, d in spans)
