# SPDX-License-Identifier: Apache-2.0
"""Code without symbols is named by its function: compared with readelf and nm of the same program
before it was stripped."""
import gzip
import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import record

BUILD = Path(os.environ.get("PROFPIPE_BUILD", "build/release")).resolve()
PEER = BUILD / "tests/symd-peer"

C = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static __attribute__((noinline)) int work(int n)
{
	int *v = malloc(n * 4), r;
	for (int i = 0; i < n; i++) v[i] = rand();
	qsort(v, n, 4, cmp);
	r = v[n / 2];
	free(v);
	return r;
}
int main(int argc, char **argv)
{
	long s = 0;
	for (int i = 0; i < argc * 20; i++) s += work(1000);
	printf("%ld %f\n", s, sin(s));
	return 0;
}
"""


def run(*args, stdin=None):
    p = subprocess.run([str(a) for a in args], input=stdin, capture_output=True)
    assert p.returncode == 0, p.stderr.decode()
    return p.stdout


def segments(path):
    for line in run("readelf", "-lW", path).decode().splitlines():
        words = line.split()
        if words and words[0] == "LOAD":
            yield int(words[1], 16), int(words[2], 16), int(words[4], 16)


def offset_of(path, address):
    for offset, start, size in segments(path):
        if start <= address < start + size:
            return address - start + offset
    raise AssertionError


def functions(path):
    """Start to (size, name), of symbols that have a size."""
    found = {}
    for line in run("nm", "-S", "--defined-only", path).decode().splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwWi" and int(words[1], 16):
            found[int(words[0], 16)] = (int(words[1], 16), words[3])
    return found


def stream(path, addresses):
    """A raw stream with a leaf at each address of a file."""
    return run(PEER, "raw", *[f"{path}:{offset_of(path, a):x}" for a in addresses])


def starts(path, addresses):
    """Returns for each address what prof-symd prints: the start of its function, a name, or 0."""
    text = run(PEER, "print",
               stdin=run(BUILD / "prof-symd", stdin=stream(path, addresses))).decode()
    names = dict(re.findall(r'^function id=(\d+) name="([^"]*)"', text, re.M))
    found = {}
    for line in text.splitlines():
        f = dict(re.findall(r"(\w+)=(\S*)", line)) if line.startswith("frame ") else {}
        if f.get("kind") == "0":
            calls = f["functions"].strip("[]").split(",")
            found[int(f["address"], 0)] = names[calls[-1]] if calls[0] else int(f["start"], 0)
    return [found[a] for a in addresses]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    where = tmp_path_factory.mktemp("starts")
    (where / "p.c").write_text(C)

    def make(name, *command):
        run(*command, "-O2", where / "p.c", "-o", where / name, "-lm")
        run("strip", "-o", where / f"{name}.stripped", where / name)
        return where / name, where / f"{name}.stripped"

    return make


def wrong(full, stripped):
    known = functions(full)
    asked = {start + into: start
             for start, (size, _) in known.items() for into in (0, size // 2, size - 1)}
    addresses = sorted(asked)
    said = [s for i in range(0, len(addresses), 400)
            for s in starts(stripped, addresses[i:i + 400])]
    bad = [(known[asked[a]][1], hex(a), s) for a, s in zip(addresses, said) if s != asked[a]]
    return bad, len(addresses)


@pytest.mark.parametrize("options",
                         [[], pytest.param(["-static"], marks=pytest.mark.check_all),
                          ["-Wl,--no-eh-frame-hdr"], ["-no-pie"], ["-mcmodel=large"]])
def test_call_frame_information_tells_where_functions_begin(made, options):
    bad, n = wrong(*made("cfi" + "".join(options).replace("/", "-"), "gcc", *options))
    # Assembly in libc.a, whose entry begins before its symbol.
    assert n > 10 and [b for b in bad if not b[0].startswith("_dl_tlsdesc")] == []


def test_a_file_without_section_headers_has_its_starts(made):
    full, stripped = made("bare", "gcc")
    data = bytearray(stripped.read_bytes())
    data[0x28:0x30] = struct.pack("<Q", 0)
    data[0x3c:0x40] = struct.pack("<HH", 0, 0)
    stripped.write_bytes(data)
    known = functions(full)
    addresses = [a for a, (_, name) in known.items() if name in ("cmp", "main")]
    assert starts(stripped, addresses) == addresses


@pytest.mark.parametrize("options",
                         [[], ["-static-pie", "-fPIE"], ["-Os", "-fno-asynchronous-unwind-tables"]])
def test_code_without_call_frame_information_is_split_by_calls_and_ends(made, options):
    bad, n = wrong(*made("musl" + "".join(options), "musl-gcc", "-static", *options))
    assert n > 200 and len(bad) <= n // 20, bad[:20]


def test_all_addresses_of_a_function_are_one_in_outputs(made):
    full, stripped = made("outputs", "gcc")
    (start, (size, _)), = [f for f in functions(full).items() if f[1][1].startswith("work")]
    addresses = [start, start + 3, start + size - 1]
    named = run(BUILD / "prof-symd", stdin=stream(stripped, addresses))
    label = f"[outputs.stripped+{start:#x}]"

    def export(*options):
        return run(BUILD / "prof-export", *options, stdin=named)

    folded = [line for line in export("-f", "folded").decode().splitlines() if "outputs" in line]
    assert len(folded) == 1 and f";{label};" in folded[0] and folded[0].endswith(" 3")
    text = export("-f", "text").decode()
    for a in addresses:
        assert re.search(rf"^\t\s*{a:x} {re.escape(label)} \(", text, re.M), text
    pprof = gzip.decompress(export("-f", "pprof"))
    assert pprof.count(label.encode()) == 1
    page = export("-f", "html").decode()
    assert f"from {addresses[0]:#x} to {addresses[-1]:#x}" in page and page.count(label) == 1


def test_a_stripped_gzip_has_no_more_hot_functions_than_it_has(tmp_path):
    (tmp_path / "in").write_bytes(
            b"".join(Path(p).read_bytes() for p in ("/usr/bin/gdb", "/usr/bin/git"))[:24 << 20])
    r = record(tmp_path, "-F", "499", command=["sh", "-c", f"gzip -9 <{tmp_path}/in >/dev/null"])
    hot = {}
    for stack, count in r.stacks:
        if stack[-1].startswith("[gzip+"):
            hot[stack[-1]] = hot.get(stack[-1], 0) + count
    assert sum(hot.values()) > 500 and len(hot) <= 14, hot
    assert max(hot.values()) > sum(hot.values()) * 0.7, hot
    assert max(hot, key=hot.get) in r.stderr
