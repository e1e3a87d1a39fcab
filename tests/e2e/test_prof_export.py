# SPDX-License-Identifier: Apache-2.0
"""prof-export with streams made by hand: every format, bad input, the deployment, and the page in a
browser."""
import gzip
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import time
import urllib.parse

import pytest

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPORT = f"{BUILD}/prof-export"
FORMATS = ["folded", "pprof", "html", "text", "stream"]

HELLO = ('hello kind=1 producer="prof-bpf 0.1.0" arch="x86_64" kernel="6.1.0-18-amd64" '
         'hostname="build-7" cpus=2 event="cpu-clock" hz=99 period=10101010 unit="nanoseconds" '
         'mono_ns=1000000000 wall_ns=1795256400000000000')
# main calls work, which has inner inlined and makes a system call; a thread without names; and one
# stack that was cut.
BODY = """process id=1 pid=100 start_ns=5 comm="server"
thread id=1 process=1 tid=100 comm="server"
thread id=2 process=1 tid=101 comm="worker 1"
process id=2 pid=200 start_ns=6 comm="a"
thread id=3 process=2 tid=200 comm="a"
file id=1 dev=1 inode=10 path="/usr/bin/server" build_id=00112233445566778899aabbccddeeff00112233
file id=2 dev=1 inode=11 path="/opt/my lib/libx (1).so"
function id=1 name="main" system_name="main" source="/src/main.c" start_line=10
function id=2 name="ns::work(int)" system_name="_ZN2ns4workEi" source="/src/my work.c" start_line=30
function id=3 name="inner" system_name="inner" source="/src/inner.h" start_line=3
function id=4 name="do_syscall_64"
function id=5 name="nft_do_chain" source="nf_tables"
frame id=1 file=1 offset=4196 address=0x401064 functions=[1] lines=[12]
frame id=2 file=1 offset=4352 address=0x401100 functions=[3,2] lines=[5,33]
frame id=3 kind=1 offset=0xffffffff81000100 flags=0 functions=[4] lines=[0]
frame id=4 kind=1 offset=0xffffffffc0000010 flags=1 functions=[5] lines=[0]
frame id=5 file=2 offset=0x2000 flags=1
frame id=6 offset=0x7f0000001000 process=2
frame id=7 kind=1 offset=0xffffffff81999999 flags=1
stack id=1 frames=[4,3,2,1]
stack id=2 frames=[5,6] reason=4 at_file=2
stack id=3 frames=[7]
sample stack=1 thread=1 cpu=0 time_ns=1500000000 value=10101010
sample stack=1 thread=2 cpu=1 time_ns=1600000000 value=10101010
sample stack=1 thread=1 cpu=1 time_ns=1700000000 value=10101010
sample stack=2 thread=3 cpu=1 time_ns=1800001000 value=10101010
sample stack=3 thread=3 cpu=1 time_ns=1900000000 value=10101010
"""
LOST = ('lost reason=0 count=12 cpu=1\nfigure name="bpf_runs" value=5\n'
        'figure name="bpf_ns" value=5000\nfigure name="map_bytes" value=4096\n')
END = "end time_ns=3000000000\n"
WHOLE = HELLO + "\n" + BODY + LOST + END


def stream(lines):
    p = subprocess.run([f"{BUILD}/tests/mkstream"], input=lines.encode(), stdout=subprocess.PIPE,
                       check=True)
    return p.stdout


def export(lines, *args, code=0, raw=False, **kw):
    data = lines if isinstance(lines, bytes) else stream(lines)
    p = subprocess.run([EXPORT, *map(str, args)], input=data, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=120, **kw)
    assert p.returncode == code, (p.returncode, p.stderr)
    p.err = p.stderr.decode(errors="replace")
    p.text = p.stdout if raw else p.stdout.decode()
    return p


def folded(lines, *args, **kw):
    return export(lines, "-f", "folded", *args, **kw).text


# --- folded ---

def test_folded_is_as_the_golden_lines():
    assert folded(WHOLE) == (
        "a;[kernel+0xffffffff81999999]_[k] 1\n"
        "a;[truncated: no-rows];[anon+0x7f0000001000];[libx (1).so+0x2000] 1\n"
        "server;main;ns::work(int);inner;do_syscall_64_[k];nft_do_chain_[k] 3\n")


def test_threads_are_the_second_frame_when_asked_for():
    assert ("server;worker 1;main;ns::work(int);inner;do_syscall_64_[k];nft_do_chain_[k] "
            "1\n" in folded(WHOLE, "--threads"))


def test_every_reason_shows_its_word():
    with open(f"{ROOT}/bpf/errors.def", encoding="utf-8") as f:
        reasons = re.findall(r'^WALK_REASON\((\d+), \w+,\s*"([^"]+)"', f.read(), re.M)
    assert len(reasons) >= 12
    lines = HELLO + '\nprocess id=1 pid=1 comm="p"\nthread id=1 process=1 tid=1\n'
    for number, _ in reasons:
        lines += (f"stack id={int(number) + 1} frames=[] reason={number}\n"
                  f"sample stack={int(number) + 1} thread=1 time_ns=1\n")
    got = folded(lines + END).splitlines()
    assert sorted(got) == sorted("p 1" if n == "0" else f"p;[truncated: {w}] 1" for n, w in reasons)


def test_names_cannot_break_any_line():
    hostile = r'"a;b 9\x0a\x1b[2J\xff</script>"'
    lines = (HELLO + f"\nprocess id=1 pid=1 comm=\"a;b 9\\x0a\"\n"
             f"thread id=1 process=1 tid=1 comm=\"x\\x0ay 1/1\"\n"
             f"function id=1 name={hostile} source=\"a) b\\x0a\"\n"
             "frame id=1 functions=[1] lines=[4]\nstack id=1 frames=[1]\n"
             "sample stack=1 thread=1 time_ns=1\n" + END)
    assert folded(lines) == "a:b 9\\x0a;a:b 9\\x0a\\x1b[2J\\xff</script> 1\n"
    text = export(lines, "-f", "text").text.splitlines()
    assert len(text) == 3 and text[2] == ""
    assert re.fullmatch(r"\S.+ 1/1 \[000\] 0\.000000: 0 cpu-clock:", text[0])
    assert text[1].endswith(r"a;b 9\x0a\x1b[2J\xff</script> ([anon]) a]\x20b\x0a:4")


def test_epoch_in_the_middle_gives_ids_new_meanings():
    other = BODY
    for old, new in (('"server"', '"renamed"'), ("pid=100", "pid=300"),
                     ('name="main"', 'name="other"')):
        other = other.replace(old, new)
    got = folded(HELLO + "\n" + BODY + "epoch 2\n" + other + END)
    assert "server;main;" in got and "renamed;other;" in got
    assert sum(int(line.rsplit(" ", 1)[1]) for line in got.splitlines()) == 10


def test_deep_stacks_are_whole():
    n = 1000
    lines = HELLO + '\nprocess id=1 pid=1 comm="p"\nthread id=1 process=1 tid=1\n'
    for i in range(1, n + 1):
        lines += f'function id={i} name="f{i}"\nframe id={i} offset={i} functions=[{i}] lines=[1]\n'
    frames = ",".join(map(str, range(n, 0, -1)))
    lines += f"stack id=1 frames=[{frames}]\nsample stack=1 thread=1 time_ns=1\n" + END
    assert folded(lines) == "p;" + ";".join(f"f{i}" for i in range(1, n + 1)) + " 1\n"


# --- text ---

def test_text_is_as_the_golden_lines():
    stack = ("\tffffffffc0000010 nft_do_chain ([nf_tables])\n"
             "\tffffffff81000100 do_syscall_64 ([kernel.kallsyms])\n"
             "\t          401100 inner (inlined) /src/inner.h:5\n"
             "\t          401100 ns::work(int) (/usr/bin/server) /src/my\\x20work.c:33\n"
             "\t          401064 main (/usr/bin/server) /src/main.c:12\n\n")
    assert export(WHOLE, "-f", "text").text == (
        "server 100/100 [000] 1.500000: 10101010 cpu-clock:\n" + stack +
        "worker_1 100/101 [001] 1.600000: 10101010 cpu-clock:\n" + stack +
        "server 100/100 [001] 1.700000: 10101010 cpu-clock:\n" + stack +
        "a  200/200 [001] 1.800001: 10101010 cpu-clock:\n"
        "\t            2000 [libx (1).so+0x2000] (/opt/my\\x20lib/libx\\x20(1).so)\n"
        "\t    7f0000001000 [anon+0x7f0000001000] ([anon])\n"
        "\t               0 [truncated: no-rows] (/opt/my\\x20lib/libx\\x20(1).so)\n\n"
        "a  200/200 [001] 1.900000: 10101010 cpu-clock:\n"
        "\tffffffff81999999 [kernel+0xffffffff81999999] ([kernel.kallsyms])\n\n")


def test_text_is_read_by_the_grammar_of_its_importers():
    """The patterns by which stackcollapse-perf.pl and speedscope parse perf's text."""
    head, frame = re.compile(r"^(\S.+?)\s+(\d+)/*(\d+)*\s+"), re.compile(
            r"^\s*(\w+)\s*(.+) \((\S*)\)")
    comms, frames = [], []
    for line in export(WHOLE, "-f", "text").text.splitlines():
        if not line:
            continue
        if line.startswith("\t"):
            m = frame.match(line)
            frames.append((m[2], m[3]))
        else:
            m = head.match(line)
            comms.append((m[1].strip(), m[2], m[3]))
            assert re.search(r":\s*(\d+)*\s+(\S+):\s*$", line)[2] == "cpu-clock"
    assert comms == [("server", "100", "100"), ("worker_1", "100", "101"), ("server", "100", "100"),
                     ("a", "200", "200"), ("a", "200", "200")]
    assert ("inner", "inlined") in frames and ("ns::work(int)", "/usr/bin/server") in frames
    assert ("[truncated: no-rows]", "/opt/my\\x20lib/libx\\x20(1).so") in frames


# --- pprof ---

def decode(path_or_bytes):
    """The profile as protoc, which knows nothing of our writer, decodes it: nested dicts of
    lists."""
    p = subprocess.run(["protoc", f"--proto_path={ROOT}/tools/prof-export/output",
                        "--decode=perftools.profiles.Profile", "pprof.proto"],
                       input=gzip.decompress(path_or_bytes), stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, check=True)
    assert not p.stderr, p.stderr
    stack = [{}]
    for line in p.stdout.decode().splitlines():
        line = line.strip()
        if line.endswith("{"):
            child = {}
            stack[-1].setdefault(line[:-2], []).append(child)
            stack.append(child)
        elif line == "}":
            stack.pop()
        else:
            key, value = line.split(": ", 1)
            if value.startswith('"'):
                text = value[1:-1].encode().decode("unicode_escape")
                value = text.encode("latin-1").decode()
            else:
                value = int(value) if value.lstrip("-").isdigit() else value == "true"
            stack[-1].setdefault(key, []).append(value)
    return stack[0]


def one(message, key, default=0):
    return message.get(key, [default])[0]


def test_pprof_holds_what_the_stream_said():
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
    it is at least not the kernel's."""
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


@pytest.mark.parametrize("report", ["-top", "-traces", "-tree", "-raw"])
def test_go_tool_pprof_reads_it_without_a_warning(tmp_path, report):
    out = tmp_path / "p.pb.gz"
    export(WHOLE, "-o", out)
    p = subprocess.run(["go", "tool", "pprof", report, str(out)], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, check=True,
                       env={**os.environ, "PPROF_TMPDIR": str(tmp_path)})
    assert not p.stderr, p.stderr
    for name in ("nft_do_chain", "inner", "[libx (1).so+0x2000]",
                 "[truncated: no-rows]" if report in ("-traces", "-raw") else "main"):
        assert name in p.stdout


# --- recordings ---

def test_recording_says_the_same_again():
    again = export(WHOLE, "-f", "stream", raw=True).stdout
    assert folded(again) == folded(WHOLE)
    assert export(again, "-f", "text").text == export(WHOLE, "-f", "text").text
    assert export(again, "-f", "stream", raw=True).stdout == again


def test_recording_over_epochs_and_gaps_keeps_all():
    lines = (HELLO + "\n" + BODY + "epoch 7\n" + BODY + "gap 4\n" + BODY.splitlines()[-1] + "\n"
             + END)
    again = export(lines, "-f", "stream", raw=True).stdout
    assert folded(again) == folded(lines)
    assert "lost sequence: 4 " in export(again, "-f", "folded", "-s").err


# --- losses and bad input ---

def test_gaps_are_counted_as_lost():
    p = export(HELLO + "\n" + BODY + "gap 7\n" + "sample stack=99 thread=1 time_ns=1\n" + END, "-f",
               "folded", "--summary")
    assert ("lost sequence: 8 " in p.err and "5 samples of 2 processes and 3 threads" in p.err
            and "samples were lost" in p.err)


@pytest.mark.parametrize("fmt", FORMATS)
def test_stream_that_was_cut_is_written_and_exits_3(fmt, tmp_path):
    out = tmp_path / "out"
    p = export(HELLO + "\n" + BODY, "-f", fmt, "-o", out, code=3)
    assert (p.err == f"prof-export: error: standard input: was cut short; {out} holds what came "
            "until then\n")
    if fmt == "folded":
        assert out.read_text() == folded(WHOLE)
    elif fmt == "stream":
        assert "was cut short" in export(out.read_bytes(), "-f", "folded", code=3).err
    elif fmt == "pprof":
        assert b"the stream was cut short" in gzip.decompress(out.read_bytes())
    else:
        assert out.stat().st_size > 500


@pytest.mark.parametrize("reason,code", [(0, 0), (1, 0), (2, 3), (3, 3)])
def test_end_says_whether_it_was_the_end(reason, code):
    folded(HELLO + "\n" + BODY + f"end reason={reason}\n", code=code)


def test_damage_ends_the_stream_and_keeps_what_came_before():
    p = export(HELLO + "\n" + BODY + "bytes c1c1c1\n", "-f", "folded", code=3)
    assert p.text == folded(WHOLE) and "is damaged" in p.err


@pytest.mark.parametrize("data,says",
                         [(b"", "is empty"),
                          (b"hello world, this is no stream", "is no profpipe stream"),
                          (stream(HELLO.replace("kind", "schema=5 kind") + "\n")
                           if os.path.exists(f"{BUILD}/tests/mkstream") else b"", "schema"),
                          (b"\x92", "cut short")])
def test_what_is_no_stream_is_refused_and_leaves_no_file(data, says, tmp_path):
    out = tmp_path / "x.folded"
    p = export(data, "-o", out, code=1)
    assert says in p.err and p.err.count("\n") == 1 and not out.exists()


def test_what_is_no_stream_leaves_an_older_file_alone(tmp_path):
    out = tmp_path / "x.folded"
    out.write_text("precious")
    export(b"rubbish, and more of it", "-o", out, code=1)
    assert out.read_text() == "precious"
    export(WHOLE, "-o", out)
    assert out.read_text() == folded(WHOLE)


@pytest.mark.parametrize("fmt", FORMATS)
def test_full_disk_is_one_clear_line(fmt):
    p = export(WHOLE, "-f", fmt, "-o", "/dev/full", code=1)
    assert (p.err == "prof-export: error: /dev/full: No space left on device; the output is "
            "incomplete: make room, or name another one with -o\n")


def test_reader_that_went_away_is_one_clear_line():
    r, w = os.pipe()
    os.close(r)
    p = subprocess.run([EXPORT, "-f", "text"], input=stream(WHOLE), stdout=w,
                       stderr=subprocess.PIPE)
    os.close(w)
    assert (p.returncode == 1
            and p.stderr
            == b"prof-export: error: standard output: Broken pipe; its reader went away "
            b"before the end\n")


def test_closed_standard_output_is_one_clear_line():
    p = subprocess.run(f"{EXPORT} -f folded >&-", shell=True, input=stream(WHOLE),
                       stderr=subprocess.PIPE)
    assert (p.returncode == 1 and p.stderr.count(b"\n") == 1
            and p.stderr.startswith(b"prof-export: error: standard output: is closed; "))


@pytest.mark.parametrize("args",
                         [["-f", "svg"], [], ["-o", "x.svg"], ["-f", "folded", "-m", "0"],
                          ["-f", "folded", "-m", "-3M"], ["-f", "folded", "extra"],
                          ["--frobnicate"], ["-f", "folded", "--run-dir", "/tmp"],
                          ["-f", "text", "--output-fd", "1"]])
def test_bad_usage_exits_2_and_says_why_in_one_line(args, tmp_path):
    p = export(WHOLE, *args, code=2, cwd=tmp_path)
    assert not p.text and p.err.count("\n") == 1 and not os.listdir(tmp_path)


def test_output_that_cannot_be_opened_exits_1():
    p = export(WHOLE, "-f", "folded", "-o", "/nonexistent/x", code=1)
    assert not p.text
    assert p.err.startswith(
        "prof-export: error: /nonexistent/x: No such file or directory; ")


def test_output_over_its_own_input_is_refused(tmp_path):
    path = tmp_path / "x.prof"
    data = stream(WHOLE)
    path.write_bytes(data)
    with open(path, "rb") as f:
        p = subprocess.run([EXPORT, "-o", str(path)], stdin=f, stderr=subprocess.PIPE)
    assert p.returncode == 1 and b"is the stream itself" in p.stderr and path.read_bytes() == data


def test_ceiling_loses_samples_and_still_writes():
    lines = [HELLO, 'process id=1 pid=1 comm="p"', "thread id=1 process=1 tid=1"]
    for i in range(1, 40001):
        lines += [f"frame id={i} offset={i}", f"stack id={i} frames=[{i}]",
                  f"sample stack={i} thread=1 time_ns=1"]
    data = stream("\n".join(lines) + "\n" + END)
    p = export(data, "-f", "folded", "-m", "2M", "-s")
    kept = len(p.text.splitlines())
    assert 1000 < kept < 39000
    assert (f"lost limit: {40000 - kept} " in p.err
            and f"{40000 - kept} samples did not fit into 2 MiB" in p.err)
    assert len(folded(data).splitlines()) == 40000


@pytest.mark.parametrize("fmt", ["text", "stream"])
def test_streaming_formats_take_no_memory_for_samples(fmt, tmp_path):
    sample = "sample stack=1 thread=1 cpu=0 time_ns=1500000000 value=10101010\n"

    def peak(n):
        data = stream(HELLO + "\n" + BODY + sample * n + END)
        with open(tmp_path / "in", "wb") as f:
            f.write(data)
        # ru_maxrss of children is the largest so far, so each measurement runs in a shell of its
        # own.
        script = (f"import resource,subprocess;subprocess.run(['{EXPORT}','-f','{fmt}'],"
                  f"stdin=open('{tmp_path}/in'),stdout=subprocess.DEVNULL,check=True);"
                  f"print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        return int(subprocess.run(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE,
                                  check=True, text=True).stdout)

    assert peak(200000) < peak(1000) + 1500


def test_format_follows_the_ending(tmp_path):
    for name, begins in [("a.folded", b"a;"), ("a.pb.gz", b"\x1f\x8b"), ("a.pprof", b"\x1f\x8b"),
                         ("a.html", b"<!DOCTYPE html>"), ("a.txt", b"server 100/100"),
                         ("a.prof", b"\x92\x02")]:
        export(WHOLE, "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_help_and_version():
    assert "usage: prof-export" in export(b"", "--help").text
    assert re.fullmatch(r"prof-export \d+\.\d+\.\d+\n", export(b"", "--version").text)


# --- the deployment ---

STATUS = struct.Struct("=II9Q Q 32Q 32Q QQ".replace(" ", ""))
TOP = struct.Struct("=Q120s")


def deployed(tmp_path, lines, fmt="folded", last=False):
    run = tmp_path / "run"
    (run / "export").mkdir(parents=True)
    out = tmp_path / "out"
    status_r, status_w = os.pipe()
    life_r, life_w = os.pipe()
    fd = os.open(out, os.O_WRONLY | os.O_CREAT, 0o600)
    sender = subprocess.Popen([f"{BUILD}/tests/mkstream", str(run)], stdin=subprocess.PIPE)
    p = subprocess.Popen([EXPORT, "--run-dir", str(run), "--output-fd", str(fd), "--status-fd",
                          str(status_w), "--life-fd", str(life_r), "-f", fmt],
                         pass_fds=(fd, status_w, life_r), stderr=subprocess.PIPE)
    for x in (fd, status_w, life_r):
        os.close(x)
    sender.stdin.write(lines.encode())
    sender.stdin.close()
    if last:
        # The launcher reports that no other one will come.
        assert sender.wait(30) == 0
        os.write(life_w, struct.pack("7Q", 1, *bytes(6)))
    words = b""
    while chunk := os.read(status_r, 65536):
        words += chunk
    code = p.wait(30)
    assert sender.wait(30) == 0
    os.close(status_r)
    os.close(life_w)
    behind = 24 + 3 * 16 * 8 + 8 * 8  # the event: figures of others, of runtimes, and of the run
    size = STATUS.size + 10 * TOP.size + 32 + behind
    assert len(words) % size == 0
    states = []
    for at in range(0, len(words), size):
        v = STATUS.unpack_from(words, at)
        assert v[0] == 0x70667374
        top = [TOP.unpack_from(words, at + STATUS.size + i * TOP.size) for i in range(10)]
        event = words[at + size - behind - 32:at + size - behind].rstrip(b"\0").decode()
        states.append({"phase": v[1], "samples": v[2], "user": v[3], "complete": v[4],
                       "processes": v[5], "threads": v[6], "bytes": v[7], "bpf_runs": v[8],
                       "bpf_ns": v[9], "map_bytes": v[10], "first": v[11], "truncated": v[12:44],
                       "lost": v[44:76], "cut": v[76], "event": event,
                       "top": [(n, name.rstrip(b"\0").decode()) for n, name in top if n]})
    return code, out.read_bytes(), states, p.stderr.read().decode()


def test_deployment_writes_to_its_descriptor_and_reports(tmp_path):
    code, out, states, err = deployed(tmp_path, WHOLE)
    assert code == 0, err
    assert out.decode() == folded(WHOLE)
    assert states[0]["phase"] == 1 and states[-1]["phase"] == 3
    last = states[-1]
    assert (last["samples"], last["user"], last["complete"], last["processes"],
            last["threads"]) == (5, 4, 4, 2, 3)
    assert last["truncated"][4] == 1 and sum(last["truncated"]) == 1
    assert last["lost"][0] == 12 and sum(last["lost"]) == 12
    assert ([last[k] for k in ("bpf_runs", "bpf_ns", "map_bytes", "first")]
            == [5, 5000, 4096, 1500000000])
    assert last["bytes"] == len(out) and last["cut"] == 0 and last["event"] == "cpu-clock"
    assert last["top"] == [(3, "nft_do_chain_[k]"), (1, "[kernel+0xffffffff81999999]_[k]"),
                           (1, "[libx (1).so+0x2000]")]


@pytest.mark.parametrize("fmt", ["stream", "text", "pprof", "html"])
def test_deployment_writes_every_format(tmp_path, fmt):
    code, out, states, err = deployed(tmp_path, WHOLE, fmt)
    assert code == 0 and states[-1]["bytes"] == len(out), err
    assert out == export(WHOLE, "-f", fmt, raw=True).stdout


def test_sender_that_goes_early_leaves_what_came(tmp_path):
    code, out, states, err = deployed(tmp_path, HELLO + "\n" + BODY + "drop\n", last=True)
    assert code == 3 and out.decode() == folded(WHOLE)
    assert states[-1]["cut"] == 1 and states[-1]["phase"] == 3
    assert "prof-export: warning: the stream of prof-symd: has no end" in err


# --- the page ---

def test_what_is_missed_is_told_apart_from_samples_that_are_lost():
    data = HELLO + "\n" + BODY + LOST + "lost reason=8 count=7447 cpu=1\n" + END
    page = export(data, "-f", "html").text
    lost, missed = (json.loads(re.search(rf'"{key}":(\[\[.*?\]\])', page)[1])
                    for key in ("lost", "missed"))
    assert [(word, n) for word, _, n in lost] == [("ring-full", 12)]
    assert [(word, n) for word, _, n in missed] == [("untracked", 7447)]
    comments = gzip.decompress(export(data, "-f", "pprof", raw=True).stdout)
    assert (b"lost ring-full: 12" in comments and b"missed untracked: 7447" in comments
            and b"lost untracked" not in comments)


def test_page_asks_no_network_and_runs_only_its_own_scripts(tmp_path):
    page = export(WHOLE, "-f", "html").text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    assert (policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy
            and "http" not in policy)
    assert not re.search(r"<(?:link|img|iframe|object|embed)\b|<script[^>]+src=|@import|url\(",
                         page)
    with open(f"{ROOT}/tools/prof-export/page/flame.js", encoding="utf-8") as f:
        assert not re.search(
                r"innerHTML|outerHTML|insertAdjacent|document\.write|\.html\(|eval\(|new "
                r"Function", f.read())


def test_names_cannot_leave_the_data(tmp_path):
    name = r"</script><script>document.title='owned'</script><!-- \x22\x5c\xe2\x80\xa8"
    lines = WHOLE.replace('name="main"', f'name="{name}"')
    lines = lines.replace('comm="server"', r'comm="</script>&"')
    page = export(lines, "-f", "html").text
    data = re.search(r'<script id="profile" type="application/json">(.*?)</script>', page, re.S)[1]
    assert "<" not in data and "\u2028" not in data
    strings = json.loads(data)["strings"]
    assert "</script>&" in strings
    assert ("</script><script>document.title='owned'</script><!-- \"\\\\xe2\\x80\\xa8"
            in strings)


class Browser:
    """Chromium over its debugging pipe: JSON, each message ended by a zero byte."""

    def __init__(self, folder, width=1400, height=900):
        to_r, self.to = os.pipe()
        self.back, back_w = os.pipe()
        def plumb():
            a, b = os.dup2(to_r, 103), os.dup2(back_w, 104)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                                         "--disable-quic", "--no-first-run",
                                         "--disable-background-networking",
                                         "--disable-component-update", "--disable-sync",
                                         f"--user-data-dir={folder}",
                                         f"--window-size={width},{height}",
                                         "--remote-debugging-pipe", "about:blank"],
                                        preexec_fn=plumb, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_r)
        os.close(back_w)
        self.next, self.pending, self.events = 0, b"", []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"]
                      == "page")
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def call(self, method, **params):
        self.next += 1
        message = {"id": self.next, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.next:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def read(self):
        while b"\0" not in self.pending:
            chunk = os.read(self.back, 1 << 20)
            assert chunk, "chromium is gone"
            self.pending += chunk
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                      awaitPromise=True)
        assert "exceptionDetails" not in r, r
        return r["result"].get("value")

    def open(self, url, seconds=30):
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'true'", seconds)

    def wait(self, condition, seconds=10):
        end = time.time() + seconds
        while not self.js(condition):
            assert time.time() < end, f"{condition} does not come true; {self.problems()}"
            time.sleep(0.05)

    def key(self, key, text=""):
        codes = {"Enter": 13, "Escape": 27, "Backspace": 8, "ArrowUp": 38, "ArrowDown": 40}
        code = codes.get(key, ord(key[0]))
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                  button="left" if kind != "mouseMoved" else "none", clickCount=1)

    def click(self, x, y):
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def problems(self):
        return [e for e in self.events
                if e.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded")]

    def requests(self):
        return [e["params"]["request"]["url"]
                for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def close(self):
        os.close(self.to)
        self.process.kill()
        self.process.wait()
        os.close(self.back)


@pytest.fixture(scope="module")
def browser():
    folder = tempfile.mkdtemp(prefix="prof-export-")
    b = Browser(folder)
    yield b
    b.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "x.html"
    export(WHOLE, "-o", path)
    return f"file://{path}"


def fragment(**state):
    return "#" + urllib.parse.urlencode(state, quote_via=urllib.parse.quote)


DATA = "document.documentElement.dataset."


def row_position(browser, d):
    """Where the row of depth d is on the screen, in the flame graph with its root at the bottom."""
    box = browser.js("(() => { const b = "
                     "document.getElementById('canvas').getBoundingClientRect(); return [b.left, "
                     "b.top, b.width, b.height]; })()")
    return box[0] + box[2] * 0.1, box[1] + box[3] - 18 * d - 9


def test_page_opens_from_a_file_without_a_complaint(browser, page):
    browser.open(page)
    assert set(browser.requests()) - {"about:blank"} == {page} and not browser.problems()
    text = browser.js("document.querySelector('header').innerText").replace("\n", " ")
    for what in ("build-7", "6.1.0-18-amd64 x86_64", "2.00 s", "cpu-clock at 99 Hz on 2 cpus",
                 "samples 5", "processes 2", "threads 3", "complete 4 (80.00 %)", "lost 12"):
        assert what in text
    assert browser.js(DATA + "samples") == "5"
    # all, process, main, work, inner, syscall, chain
    assert browser.js(DATA + "levels") == "7"


def test_page_searches_by_the_address(browser, page):
    browser.open(page + fragment(search="work|chain"))
    matched = browser.js("document.getElementById('matched').textContent")
    assert matched == "60.00 % matched (3 samples)"
    browser.open(page + fragment(search="["))
    assert browser.js("document.getElementById('search').getAttribute('aria-invalid')") == "true"
    # as it stands
    matched = browser.js("document.getElementById('matched').textContent")
    assert matched == "100.00 % matched (5 samples)"


def test_page_shows_one_process_or_thread(browser, page):
    for state, samples in [({"process": "server"}, "3"), ({"process": "200"}, "2"),
                           ({"process": "server", "thread": "worker 1"}, "1"),
                           ({"thread": "101"}, "1"), ({"process": "nobody"}, "0")]:
        browser.open(page + fragment(**state))
        assert browser.js(DATA + "samples") == samples, state
    assert (browser.js("document.getElementById('nothing').textContent")
            == "No samples of this process and thread.")


def test_page_zooms_by_name_click_key_and_back(browser, page):
    browser.open(page + fragment(zoom="ns::work(int)"))
    assert browser.js(DATA + "zoomed") == "ns::work(int)"
    browser.open(page)
    x, y = row_position(browser, 2)
    browser.mouse("mouseMoved", x, y)
    assert browser.js("document.getElementById('tip').innerText").split("\n") == [
        "main", "3 samples, 60.00 %", "/src/main.c:10", "/usr/bin/server"]
    browser.click(x, y)
    browser.wait(DATA + "zoomed === 'main'")
    assert "node=" in browser.js("location.hash")
    assert browser.js("[...document.querySelectorAll('#trail button')].map(b => "
                      "b.textContent).join('>')") == "all>server>main"
    browser.js("document.querySelectorAll('#trail button')[1].click()")
    browser.wait(DATA + "zoomed === 'server'")
    browser.js("history.back()")
    browser.wait(DATA + "zoomed === 'main'")
    browser.js("document.getElementById('graph').focus()")
    browser.key("Escape")
    browser.wait(DATA + "zoomed === 'all'")
    # Arrows choose, Enter zooms.
    for _ in range(3):
        browser.key("ArrowUp")
    browser.key("Enter")
    browser.wait(DATA + "zoomed === 'main'")
    assert not browser.problems()


def test_page_searches_by_keys(browser, page):
    browser.open(page)
    browser.key("/", "/")
    assert browser.js("document.activeElement.id") == "search"
    browser.type("INNER")
    browser.wait("document.getElementById('matched').textContent.startsWith('0.00 %')")
    browser.js("document.getElementById('search').select()")
    browser.type("inner")
    browser.wait("document.getElementById('matched').textContent === '60.00 % matched (3 samples)'")
    browser.key("Enter")
    browser.wait(DATA + "zoomed === 'inner'")
    browser.key("Escape")
    browser.wait("document.getElementById('matched').textContent === ''")
    browser.key("Escape")
    browser.wait(DATA + "zoomed === 'all'")


def test_page_lists_the_hottest_functions(browser, page):
    rows = ("[...document.querySelectorAll('#table tbody tr')].map(r => "
            "[...r.cells].map(c => c.textContent.replace(/\\s+/g, ' ').trim()))")
    browser.open(page + fragment(view="table"))
    got = browser.js(rows)
    assert got[0] == ["3 60.00 %", "3 60.00 %", "nft_do_chain_[k]", "[nf_tables]", ""]
    assert ["0 0.00 %", "3 60.00 %", "main", "server", "main.c:10"] in got
    assert ["0 0.00 %", "1 20.00 %", "[truncated: no-rows]", "libx (1).so", ""] in got
    browser.open(page + fragment(view="table", search="main"))
    assert [r[2] for r in browser.js(rows)] == ["main"]
    browser.js("document.querySelector('#table [data-sort=name]').click()")
    browser.wait("location.hash.includes('sort=name')")
    browser.js("document.querySelector('#table tbody tr').click()")
    browser.wait("location.hash.includes('search=%5Emain%24') && "
                 "!document.getElementById('graph').hidden")


def test_recursion_counts_once_in_total(browser, tmp_path):
    path = tmp_path / "x.html"
    lines = WHOLE.replace("frames=[4,3,2,1]", "frames=[1,2,1,2,1]")
    export(lines, "-o", path)
    browser.open(f"file://{path}" + fragment(view="table", search="^(main|inner)$"))
    rows = browser.js("[...document.querySelectorAll('#table tbody tr')].map(r => "
                      "[...r.cells].slice(0, 3).map(c => c.textContent.replace(/\\s+/g, ' "
                      "').trim()))")
    assert rows == [["3 60.00 %", "3 60.00 %", "main"], ["0 0.00 %", "3 60.00 %", "inner"]]


def namesakes():
    """Two functions of one name, one of them on two lines, and who calls both."""
    lines = HELLO + '\nprocess id=1 pid=1 comm="p"\nthread id=1 process=1 tid=1\n'
    lines += ('function id=3 name="m.main" source="/x/m.py" start_line=1\n'
              'frame id=4 kind=2 functions=[3] lines=[2]\n')
    for i, (folder, line) in enumerate((("a", 5), ("a", 6), ("b", 5)), 1):
        lines += (f'function id={10 + i} name="util.f" source="/x/{folder}/util.py" start_line=4\n'
                  f'frame id={i} kind=2 offset={i} functions=[{10 + i}] lines=[{line}]\n')
        lines += f"stack id={i} frames=[{i},4]\n" + i * f"sample stack={i} thread=1 time_ns=1\n"
    return lines + END


def test_interpreted_functions_of_one_name_are_two():
    assert folded(namesakes()) == (
        "p;m.main;util.f (a/util.py:4) 3\np;m.main;util.f (b/util.py:4) 3\n")
    assert (folded(namesakes(), "--lines")
            == "p;m.main:2;util.f (a/util.py:4):5 1\np;m.main:2;util.f (a/util.py:4):6 2\n"
            "p;m.main:2;util.f (b/util.py:4):5 3\n")
    text = export(namesakes(), "-f", "text").text
    assert [text.count(f"util.f ([interpreted]) /x/{at}\n")
            for at in ("a/util.py:5", "a/util.py:6", "b/util.py:5")] == [1, 2, 3]
    p = decode(export(namesakes(), "-f", "pprof", raw=True).stdout)
    s = p["string_table"]
    functions = {one(f, "id"): (s[one(f, "name")], s[one(f, "filename")], one(f, "start_line"))
                 for f in p["function"]}
    assert sorted(functions.values()) == [("m.main", "/x/m.py", 1), ("util.f", "/x/a/util.py", 4),
                                          ("util.f", "/x/b/util.py", 4)]
    lines = {one(at, "id"): (*functions[one(one(at, "line"), "function_id")],
                             one(one(at, "line"), "line")) for at in p["location"]}
    assert sorted(lines.values()) == [("m.main", "/x/m.py", 1, 2), ("util.f", "/x/a/util.py", 4, 5),
                                      ("util.f", "/x/a/util.py", 4, 6),
                                      ("util.f", "/x/b/util.py", 4, 5)]
    # The hottest functions are counted by function, even where the stream has lines.
    for fmt in "text", "folded", "pprof":
        assert "util.f:" not in export(namesakes(), "-f", fmt, "-s", "--lines",
                                       raw=True).stderr.decode()


def test_page_tells_functions_of_one_name_apart_and_shows_lines(browser, tmp_path):
    path = tmp_path / "x.html"
    rows = ("[...document.querySelectorAll('#table tbody tr')].map(r => "
            "[...r.cells].map(c => c.textContent.replace(/\\s+/g, ' ').trim()))")
    for options, drawn, zoomed in (([], 5, "util.f (a/util.py:4)"),
                                   (["--lines"], 6, "util.f (a/util.py:4):6")):
        export(namesakes(), "-o", path, *options)
        browser.open(f"file://{path}" + fragment(view="table", search="util"))
        assert sorted(browser.js(rows)) == [["3 50.00 %", "3 50.00 %", f"util.f ({f}/util.py:4)",
                                             "[interpreted]", "util.py:4"] for f in "ab"]
        browser.open(f"file://{path}" + fragment(search=r"^util\.f \(a/util\.py:4\)$", zoom=zoomed))
        assert browser.js(DATA + "zoomed") == zoomed
        matched = browser.js("document.getElementById('matched').textContent")
        assert matched == "50.00 % matched (3 samples)"
        browser.open(f"file://{path}")
        assert browser.js(DATA + "drawn") == str(drawn)


def test_hostile_names_are_only_text(browser, tmp_path):
    path = tmp_path / "x.html"
    name = r"</script><img src=x onerror=document.title='owned'>"
    lines = WHOLE.replace('name="main"', f'name="{name}"')
    export(lines.replace('comm="server"', 'comm="<b>__proto__"'), "-o", path)
    for view in ("flame", "icicle", "table"):
        browser.open(f"file://{path}" + fragment(view=view, search="img", process="<b>__proto__"))
        assert browser.js("document.title") == "build-7: profpipe"
        assert browser.js(DATA + "samples") == "3"
        assert browser.js("document.querySelectorAll('img, b').length") == 0
        assert not browser.problems()
    assert (browser.js("document.querySelector('#table tbody button').textContent")
            == "</script><img src=x onerror=document.title='owned'>")


def test_deep_stacks_scroll_both_ways(browser, tmp_path):
    path, n = tmp_path / "x.html", 1000
    lines = HELLO + '\nprocess id=1 pid=1 comm="p"\nthread id=1 process=1 tid=1\n'
    for i in range(1, n + 1):
        lines += f'function id={i} name="f{i}"\nframe id={i} offset={i} functions=[{i}] lines=[1]\n'
    frames = ",".join(map(str, range(n, 0, -1)))
    lines += f"stack id=1 frames=[{frames}]\nsample stack=1 thread=1 time_ns=1\n" + END
    export(lines, "-o", path)
    for view, at_root in (("flame", "g.scrollTop + g.clientHeight >= g.scrollHeight - 2"),
                          ("icicle", "g.scrollTop === 0")):
        browser.open(f"file://{path}" + fragment(view=view))
        assert browser.js("document.getElementById('graph').scrollHeight") >= 1002 * 18
        assert browser.js(f"(g => {at_root})(document.getElementById('graph'))"), view
        # The root row, and after zooming to the leaf that row, are in sight.
        browser.open(f"file://{path}" + fragment(view=view, zoom="f1000"))
        top = "(g => %s - g.scrollTop)(document.getElementById('graph'))" % (
                "g.scrollHeight - 1002 * 18" if view == "flame" else "1001 * 18")
        assert 0 <= browser.js(top) < 700


def test_page_without_samples_says_so(browser, tmp_path):
    path = tmp_path / "x.html"
    export(HELLO + "\n" + END, "-o", path)
    browser.open(f"file://{path}")
    assert (browser.js("document.getElementById('nothing').textContent")
            == "This profile has no samples." and not browser.problems())
    assert browser.js("document.getElementById('fact-complete').textContent") == "0 (0.00 %)"


def test_large_profile_opens_in_seconds(browser, tmp_path):
    """200,000 distinct stacks."""
    path, lines = tmp_path / "x.html", [HELLO, 'process id=1 pid=1 comm="p"',
                                        "thread id=1 process=1 tid=1"]
    for i in range(1, 301):
        lines += [f'function id={i} name="function_{i}"',
                  f"frame id={i} offset={i} functions=[{i}] lines=[1]"]
    for i in range(200000):
        digits = [1 + (i // 300 ** k) % 300 for k in range(3)]
        stack = digits + [1 + (i * k) % 7 for k in range(2, 14)]
        lines += [f"stack id={i + 1} frames={str(stack).replace(' ', '')}",
                  f"sample stack={i + 1} thread=1 time_ns=1"]
    export("\n".join(lines) + "\n" + END, "-o", path)
    began = time.time()
    browser.open(f"file://{path}")
    assert time.time() - began < 10 and browser.js(DATA + "samples") == "200000"
    began = time.time()
    browser.open(f"file://{path}" + fragment(view="table", search="function_2"))
    assert time.time() - began < 10
