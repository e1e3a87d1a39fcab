# SPDX-License-Identifier: Apache-2.0
"""The pprof that prof-export writes, as others read it."""
import os
import subprocess

import pytest

from conftest import GO_CACHE
from streams import WHOLE, decode, export, one


def test_the_period_of_cycles_is_the_average_of_its_samples():
    lines = WHOLE.replace("period=10101010", "period=0").replace("value=10101010", "value=500")
    assert one(decode(export(lines, "-f", "pprof", raw=True).text), "period") == 500


def test_pprof_holds_the_contents_of_the_stream():
    p = decode(export(WHOLE, "-f", "pprof", raw=True).stdout)
    s = p["string_table"]
    assert s[0] == ""
    assert [(s[one(t, "type")], s[one(t, "unit")])
            for t in p["sample_type"]] == [("samples", "count"), ("cpu", "nanoseconds")]
    assert one(p, "period") == 10101010
    assert one(p, "time_nanos") == 1795256400000000000 and one(p, "duration_nanos") == 2000000000
    functions = {one(f, "id"): f for f in p["function"]}
    locations = {one(x, "id"): x for x in p["location"]}
    mappings = {one(m, "id"): m for m in p["mapping"]}
    assert 0 not in functions and 0 not in locations and 0 not in mappings
    got = {}
    for sample in p["sample"]:
        names = tuple(s[one(functions[one(line, "function_id")], "name")]
                      for loc in sample["location_id"] for line in locations[loc]["line"])
        labels = {s[one(x, "key")]: s[one(x, "str")] if "str" in x else one(x, "num")
                  for x in sample["label"]}
        got[names, labels["tid"]] = (sample["value"], labels)
    stack = ("nft_do_chain", "do_syscall_64", "inner", "ns::work(int)", "main")
    assert got[stack, 100] == ([2, 20202020],
                               {"process": "server", "pid": 100, "tid": 100, "thread": "server"})
    assert got[stack, 101][1]["thread"] == "worker 1"
    stack = ("[libx (1).so+0x2000]", "[anon+0x7f0000001000]", "[truncated: no-rows]")
    assert got[stack, 200][0] == [1, 10101010]
    work = next(f for f in p["function"] if s[one(f, "name")] == "ns::work(int)")
    assert s[one(work, "system_name")] == "_ZN2ns4workEi"
    assert s[one(work, "filename")] == "/src/my work.c" and one(work, "start_line") == 30
    # Mappings: one a file, and each address leads back to its offset in the file (one less for a
    # caller).
    files = {s[one(m, "filename")]: m for m in p["mapping"]}
    assert sorted(files) == ["/opt/my lib/libx (1).so", "/usr/bin/server", "[kernel.kallsyms]"]
    server = files["/usr/bin/server"]
    assert s[one(server, "build_id")] == "00112233445566778899aabbccddeeff00112233"
    offsets = set()
    for loc in p["location"]:
        if one(loc, "mapping_id"):
            m = mappings[one(loc, "mapping_id")]
            assert one(m, "memory_start") <= one(loc, "address") < one(m, "memory_limit")
            if m is server:
                offsets.add(one(loc, "address") - one(m, "memory_start") + one(m, "file_offset"))
    assert offsets == {4196 - 1, 4352 - 1}
    comments = [s[c] for c in p["comment"]]
    assert ("lost ring-full: 12" in comments and "truncated no-rows: 1" in comments
            and "prof-bpf 0.1.0" in comments)


def test_the_first_mapping_is_the_programs_that_ran_most():
    """pprof takes the first mapping for the main binary. If the stream does not name the programs,
    the first one is at least not the kernel's."""
    def files(lines):
        p = decode(export(lines, "-f", "pprof", raw=True).stdout)
        return [p["string_table"][one(m, "filename")] for m in p["mapping"]]
    assert files(WHOLE) == ["/usr/bin/server", "/opt/my lib/libx (1).so", "[kernel.kallsyms]"]
    exe = 'file id=2 dev=1 inode=11 path="/opt/my lib/libx (1).so"\n'
    first = WHOLE.replace(exe, "").replace('process id=1 pid=100 start_ns=5 comm="server"',
                                           exe
                                           + 'process id=1 pid=100 start_ns=5 comm="server" exe=2')
    assert files(first) == ["/opt/my lib/libx (1).so", "/usr/bin/server", "[kernel.kallsyms]"]


def test_pprof_of_another_event_says_its_unit():
    p = decode(export(WHOLE.replace('"cpu-clock"', '"cycles"').replace('"nanoseconds"', '"cycles"'),
                      "-f", "pprof", raw=True).stdout)
    s = p["string_table"]
    second = p["sample_type"][1]
    assert (s[one(second, "type")], s[one(second, "unit")]) == ("cycles", "cycles")


# From 1.25 on, Go compiles its pprof when it is called first: half a minute of cpu.
READY = os.path.exists(subprocess.run(["go", "env", "GOTOOLDIR"], capture_output=True, text=True,
                                      check=True).stdout.strip() + "/pprof")


@pytest.mark.parametrize("report", [
    pytest.param(r, marks=[] if READY else pytest.mark.check_all)
    for r in ("-top", "-traces", "-tree", "-raw")])
def test_go_tool_pprof_reads_it_without_a_warning(tmp_path, report):
    out = tmp_path / "p.pb.gz"
    export(WHOLE, "-o", out)
    p = subprocess.run(["go", "tool", "pprof", report, str(out)], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, check=True,
                       env={**os.environ, "PPROF_TMPDIR": str(tmp_path), "GOCACHE": GO_CACHE})
    assert not p.stderr, p.stderr
    for name in ("nft_do_chain", "inner", "[libx (1).so+0x2000]",
                 "[truncated: no-rows]" if report in ("-traces", "-raw") else "main"):
        assert name in p.stdout
