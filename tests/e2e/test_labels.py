# SPDX-License-Identifier: Apache-2.0
"""Labels of files in the named stream, compared with the results of other readers: the hash, Go's
build id and the executable segments."""
import hashlib
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, GO_CACHE, of_which_check_has

PEER, SYMD = f"{BUILD}/tests/symd-peer", f"{BUILD}/prof-symd"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"


def run(*argv, **kw):
    return subprocess.run([*map(str, argv)], stdout=subprocess.PIPE, check=True, timeout=120, **kw)


def file_of(path):
    """The last definition of a file in the named stream of a sample in it, field by field."""
    raw = run(PEER, "raw", f"{path}:1000").stdout
    named = run(SYMD, input=raw).stdout
    lines = [line for line in run(PEER, "print", input=named).stdout.decode().splitlines()
             if line.startswith("file ") and f'path="{path}"' in line]
    return dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', lines[-1]))


def htlhash(path):
    data = Path(path).read_bytes()
    covered = data[:4096] + data[-4096:] + struct.pack(">Q", len(data))
    return hashlib.sha256(covered).hexdigest()[:32]


def code(path):
    """Offset, size and address of the executable segments, as readelf reads them."""
    found = []
    for line in run("readelf", "-lW", path).stdout.decode().splitlines():
        m = re.match(r" +LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ [R ][W ]E", line)
        if m:
            found += [int(m[1], 16), int(m[3], 16), int(m[2], 16)]
    return found


def numbers(text):
    return [int(n, 0) for n in text.strip("[]").split(",") if n]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """C programs, and Go programs that both linkers made."""
    tmp = tmp_path_factory.mktemp("labels")
    source = tmp / "p.c"
    source.write_text("int main(void) { return 0; }\n")
    run("gcc", "-o", tmp / "c", source)
    run("gcc", "-static", "-o", tmp / "static", source)
    (tmp / "p.go").write_text("package main\n\nfunc main() { println(1) }\n")
    env = {**os.environ, "GOCACHE": GO_CACHE, "GO111MODULE": "off"}
    run("go", "build", "-o", tmp / "go", tmp / "p.go", env=env)
    run("go", "build", "-ldflags", "-linkmode=external", "-o", tmp / "go-external", tmp / "p.go",
        env=env)
    shutil.copy(tmp / "go-external", tmp / "go-stripped")
    run("strip", tmp / "go-stripped")
    return tmp


@pytest.mark.parametrize("name", ["c", "static", "go", "go-external", LIBC])
def test_the_hash_and_the_segments_are_those_of_other_readers(programs, name):
    path = programs / name
    f = file_of(path)
    assert f["htlhash"] == htlhash(path)
    assert numbers(f["segments"]) == code(path) != []


def go_build_id(path):
    """As readelf reads it."""
    notes = run("readelf", "-n", path).stdout.decode()
    text = re.search(r"GO BUILDID\n +description data: ([0-9a-f ]+)", notes)[1]
    return bytes.fromhex(text).decode()


# Newer Go compiles its own reader first.
@pytest.mark.parametrize("by_go", of_which_check_has([False, True], [False]),
                         ids=["readelf", "go"])
@pytest.mark.parametrize("name", ["go", "go-external", "go-stripped"])
def test_gos_build_id_is_the_one_that_others_read(programs, name, by_go):
    path = programs / name
    expected = (run("go", "tool", "buildid", path).stdout.decode().strip() if by_go
                else go_build_id(path))
    assert file_of(path)["go_build_id"] == f'"{expected}"' != '""'


def test_only_a_go_program_has_gos_build_id(programs):
    assert file_of(programs / "c")["go_build_id"] == '""'


def test_a_script_has_no_labels(programs):
    path = programs / "text"
    path.write_bytes(b"#!/bin/sh\n" * 1000)
    f = file_of(path)
    assert (f["htlhash"], f["go_build_id"], f["segments"]) == ("", '""', "[]")
