# SPDX-License-Identifier: Apache-2.0
"""prof-export with streams made by hand: the formats of text, bad input and the deployment."""
import gzip
import json
import os
import re
import struct
import subprocess

import pytest

from streams import (BODY, BUILD, END, EXPORT, FORMATS, HELLO, ROOT, WHOLE, decode, export, folded,
                     namesakes, one, stream)

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


IMITATORS = HELLO + r"""
process id=1 pid=1 comm="[truncated: a]"
thread id=1 process=1 tid=1 comm="swapper_[k]"
file id=1 dev=1 inode=10 path="/srv/truncated: no-rows"
file id=2 dev=1 inode=11 path="/srv/kernel"
function id=1 name="do_sys_open_[k]" system_name="do_sys_open_[k]" source="/src/a_[k]"
function id=2 name="[truncated; no-rows]"
function id=3 name="[truncated: no-rows]"
function id=4 name="[kernel+0x12]"
function id=5 name="[python: gone]"
function id=6 name="do_sys_open"
frame id=1 file=1 offset=1 address=1 functions=[1] lines=[0]
frame id=2 file=1 offset=2 address=2 functions=[2] lines=[0]
frame id=3 file=1 offset=3 address=3 functions=[3] lines=[0]
frame id=4 file=1 offset=4 address=4 functions=[4] lines=[0]
frame id=5 file=1 offset=5 address=5 functions=[5] lines=[0]
frame id=6 kind=1 offset=6 functions=[6] lines=[0]
frame id=7 file=1 offset=7 address=7
frame id=8 file=2 offset=8 address=8
frame id=9 kind=2 functions=[5] lines=[3]
frame id=10 kind=2 functions=[1] lines=[3]
stack id=1 frames=[6,9,10,8,7,5,4,3,2,1]
stack id=2 frames=[1]
stack id=3 frames=[1] reason=4
sample stack=1 thread=1 time_ns=1
sample stack=2 thread=1 time_ns=2
sample stack=2 thread=1 time_ns=3
sample stack=3 thread=1 time_ns=4
""" + END


def test_no_name_imitates_a_mark():
    """Kinds and cuts are marks in folded stacks, and fields where a format has some."""
    lines = [line.rsplit(" ", 1)[0].split(";")
             for line in folded(IMITATORS, "--threads").splitlines()]
    assert all(s[:2] == [r"\[truncated: a]", r"swapper_\[k]"] for s in lines)
    assert sorted(s[2:] for s in lines) == sorted([
        [r"do_sys_open_\[k]"], ["[truncated: no-rows]", r"do_sys_open_\[k]"],
        [r"do_sys_open_\[k]", r"\[truncated: no-rows]", r"\[truncated: no-rows]",
         r"\[kernel+0x12]", r"\[python: gone]", r"[\truncated: no-rows+0x7]", r"[\kernel+0x8]",
         r"do_sys_open_\[k]", "[python: gone]", "do_sys_open_[k]"]])
    text = export(IMITATORS, "-f", "text").text
    assert (len(re.findall(r"^\s+0 \[truncated: ", text, re.M)) == 1
            and text.count(" [truncated: ") == 1)
    kernel = [line for line in text.splitlines() if "kernel.kallsyms" in line]
    assert len(kernel) == 1 and kernel[0].split()[1] == "do_sys_open"
    page = export(IMITATORS, "-f", "html").text
    data = json.loads(re.search(
        r'<script id="profile" type="application/json">(.*?)</script>', page, re.S)[1])
    frames, strings = data["frames"], data["strings"]
    kinds = {}
    for name, kind in zip(frames["name"], frames["kind"]):
        kinds.setdefault(strings[name], set()).add(kind)
    assert kinds["do_sys_open_[k]"] == {1} and kinds[r"do_sys_open_\[k]"] == {0, 6}
    assert kinds["[truncated: no-rows]"] == {2} and kinds[r"\[truncated: no-rows]"] == {0}
    pprof = gzip.decompress(export(IMITATORS, "-f", "pprof", raw=True).stdout)
    assert pprof.count(b"[truncated: no-rows]") == 2
    assert pprof.count(rb"\[truncated: no-rows]") == 1


def test_the_summary_shows_kinds_and_takes_no_name_for_a_mark(tmp_path):
    p = export(IMITATORS, "-f", "folded", "-s")
    assert r"do_sys_open_\[k]" in p.err and "  do_sys_open_[k]\n" in p.err
    # A name that would be truncated right after text that resembles a mark.
    for n in range(110, 120):
        name = "n" * n + "_[k]" + "rest" * 20
        body = IMITATORS.replace('name="do_sys_open_[k]"', f'name="{name}"')
        shown = [line for line in export(body, "-f", "folded", "-s").err.splitlines()
                 if "  nnn" in line]
        assert shown and all(line.endswith("…") for line in shown), shown


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


SOURCES = f"""{HELLO}
process id=1 pid=1 comm="prog"
thread id=1 process=1 tid=1 comm="prog"
function id=1 name="f"
frame id=1 functions=[1] lines=[0]
stack id=1 frames=[1]
source id=1 kind=4 event="alloc" unit="bytes" period=512
source id=2 event="a b" unit="c d"
label id=1 key="k" number=1
labels id=1 list=[1]
labels id=2 list=[1,9]
sample stack=1 thread=1 time_ns=2000000000 value=10101010 labels=1
sample stack=1 thread=1 time_ns=2000000000 value=1024 source=1
sample stack=1 thread=1 time_ns=2000000000 value=7 source=2
"""
UNDEFINED = "".join(f"sample stack=1 thread=1 time_ns=2000000000 {it}\n"
                    for it in ("source=9", "labels=9", "labels=2", "link=9"))


@pytest.mark.parametrize("fmt", FORMATS)
def test_samples_of_other_sources_are_named_or_left_out(fmt, tmp_path):
    p = export(SOURCES + UNDEFINED + END, "-f", fmt, "-s", "-o", tmp_path / "out")
    out = (tmp_path / "out").read_bytes()
    assert "lost malformed: 4 " in p.err
    assert ("4 samples or messages are malformed: they name undefined threads, stacks or the like, "
            f"or cannot be decoded; {tmp_path}/out lacks them\n") in p.err
    shown = fmt in ("text", "stream", "otlp")
    assert ("other sources" in p.err) != shown
    if not shown:
        assert (f"2 samples are of other sources than the recording's event; {tmp_path}/out leaves "
                "them out; use -f text or -f otlp to see them\n") in p.err
        assert "1 sample of 1 process " in p.err
    if fmt == "folded":
        assert out == b"prog;f 1\n"
    if fmt == "html":
        assert b'"samples":[1]}' in out and b'"notes":["left out: 2 samples of ' in out
    if fmt == "pprof":
        assert [s["value"] for s in decode(out)["sample"]] == [[1, 10101010]]
    if fmt == "text":
        assert re.findall(r"2\.000000: (.*):\n", out.decode()) == [
            "10101010 cpu-clock", "1024 alloc/bytes/", r"7 a\x20b/c\x20d/"]


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("kind", [0, 1])
def test_samples_without_a_stack_or_a_thread_are_not_dropped_in_silence(kind, fmt, tmp_path):
    lines = SOURCES.replace("kind=1", f"kind={kind}", 1).split("sample")[0]
    data = stream(lines + "sample stack=9 thread=1 time_ns=1\n"
                          "sample stack=1 thread=9 time_ns=1\n" + END)
    named = subprocess.run([f"{BUILD}/prof-symd"], input=data, capture_output=True, check=True)
    p = export(named.stdout, "-f", fmt, "-o", tmp_path / "out")
    assert p.err.count("\n") == 1 and ": 2 samples or messages are malformed: " in p.err


def test_the_mean_period_is_of_the_recordings_event():
    lines = SOURCES.replace("period=10101010", "period=0")
    assert decode(export(lines + END, "-f", "pprof", raw=True).stdout)["period"] == [10101010]


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


# --- recordings ---

def test_replaying_a_recording_gives_the_same_output():
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

def test_fields_of_a_newer_version_may_be_any_value():
    data = stream(HELLO + " no_memory=1\n" + "end time_ns=3000000000\n")
    more = bytes.fromhex("c0 c3 ff d005 cb0000000000000000 81a161c0 d40102 9291a17801 7b".replace(
        " ", ""))
    assert data.startswith(b"\x92\x02\x91\x01\x92\x01\xdc\0\x12") and data.count(b"\x92\x0e") == 1
    hello, end = data[9:].split(b"\x92\x0e")
    data = (b"\x92\x02\x9b\x01\0" + more + b"\x92\x01\xdc\0\x1b" + hello + more
            + b"\x92\x0e\x9b" + end[1:] + more)
    p = export(data, "-f", "text")
    assert p.err == ("prof-export: warning: standard input: is of a newer version; 0 messages and "
                     "27 fields are unknown to this one and were skipped; "
                     "use prof-export of that version\n")
    raw = data.replace(b"\xdc\0\x1b\x01\x01", b"\xdc\0\x1b\x01\0", 1)
    p = subprocess.run([f"{BUILD}/prof-symd"], input=raw, capture_output=True, check=True)
    assert b"27 fields of a newer version" in p.stderr


def test_bytes_after_the_end_are_ignored_with_one_line():
    p = export(stream(WHOLE) + b"more", "-f", "folded")
    assert p.text == folded(WHOLE) and p.err == (
        "prof-export: warning: standard input: ignored bytes after the end of the stream\n")


def test_gaps_are_counted_as_lost():
    p = export(HELLO + "\n" + BODY + "gap 7\n" + "sample stack=99 thread=1 time_ns=1\n" + END, "-f",
               "folded", "--stats")
    assert ("lost sequence: 8 " in p.err and "5 samples of 2 processes and 3 threads" in p.err
            and "samples were lost" in p.err)


@pytest.mark.parametrize("fmt", FORMATS)
def test_stream_that_was_cut_is_written_and_exits_3(fmt, tmp_path):
    out = tmp_path / "out"
    p = export(HELLO + "\n" + BODY, "-f", fmt, "-o", out, code=3)
    assert (p.err == f"prof-export: error: standard input: was cut short; {out} holds the part "
            "that arrived\n")
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


def test_damage_ends_the_stream_and_keeps_its_start():
    p = export(HELLO + "\n" + BODY + "bytes c1c1c1\n", "-f", "folded", code=3)
    assert p.text == folded(WHOLE) and "is damaged" in p.err


@pytest.mark.parametrize("data,says",
                         [(b"", "is empty"),
                          (b"hello world, this is no stream", "is not a profpipe stream"),
                          (stream(HELLO.replace("kind", "schema=5 kind") + "\n")
                           if os.path.exists(f"{BUILD}/tests/mkstream") else b"", "schema"),
                          (b"\x92", "cut short")])
def test_a_malformed_stream_is_refused_and_leaves_no_file(data, says, tmp_path):
    out = tmp_path / "x.folded"
    p = export(data, "-o", out, code=1)
    assert says in p.err and p.err.count("\n") == 1 and not out.exists()


def test_a_malformed_stream_leaves_an_older_file_alone(tmp_path):
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
                          ["-f", "text", "--output-fd", "1"], ["-f", "text", "--status-fd", "2"],
                          ["-o", "a.html", "-o", "b.html"], ["-f", "text", "-o", ""],
                          ["-f", "text", "--run-dir", "/run", "--output-fd", "1", "--stats"]])
def test_bad_usage_exits_2_and_says_why_in_one_line(args, tmp_path):
    p = export(WHOLE, *args, code=2, cwd=tmp_path)
    assert not p.text and p.err.count("\n") == 1 and not os.listdir(tmp_path)


def test_output_that_cannot_be_opened_exits_1():
    p = export(WHOLE, "-f", "folded", "-o", "/nonexistent/x", code=1)
    assert not p.text
    assert p.err.startswith(
        "prof-export: error: /nonexistent/x: there is no such folder; ")


def test_output_over_its_own_input_is_refused(tmp_path):
    path = tmp_path / "x.prof"
    data = stream(WHOLE)
    path.write_bytes(data)
    with open(path, "rb") as f:
        p = subprocess.run([EXPORT, "-o", str(path)], stdin=f, stderr=subprocess.PIPE)
    assert p.returncode == 1 and b"is the stream itself" in p.stderr and path.read_bytes() == data


def test_ceiling_cuts_stacks_and_still_writes():
    lines = [HELLO, 'process id=1 pid=1 comm="p"', "thread id=1 process=1 tid=1"]
    for i in range(1, 40001):
        lines += [f"frame id={i} offset={i}", f"stack id={i} frames=[{i}]",
                  f"sample stack={i} thread=1 time_ns=1"]
    data = stream("\n".join(lines) + "\n" + END)
    p = export(data, "-f", "folded", "-m", "2M", "-s")
    kept = len(p.text.splitlines())
    assert 1000 < kept < 39000
    # The samples of the other stacks are counted in one stack.
    cut = 40001 - kept
    assert f"p;[truncated: definitions] {cut}\n" in p.text, p.text[-200:]
    assert "nothing was lost" in p.err, p.err
    assert (f"user 0 (container 0) has too many different stacks for 2 MiB: {cut} of its samples "
            "lost their frames, and 0 are lost" in p.err), p.err
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
                         ("a.prof", b"\x92\x02"), ("a.otlp", b"\x00\x00")]:
        export(WHOLE, "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_help_and_version():
    assert "usage: prof-export" in export(b"", "--help").text
    assert re.fullmatch(r"prof-export \d+\.\d+\.\d+\n", export(b"", "--version").text)


# --- the deployment ---

STATUS = struct.Struct("=II9Q Q 32Q 32Q QQ".replace(" ", ""))
TOP = struct.Struct("=QQ120s")


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
        # The launcher reports that no other sender will come.
        assert sender.wait(30) == 0
        os.write(life_w, struct.pack("7Q", 1, *bytes(6)))
    words = b""
    while chunk := os.read(status_r, 65536):
        words += chunk
    code = p.wait(30)
    assert sender.wait(30) == 0
    os.close(status_r)
    os.close(life_w)
    # Behind the event: figures of others, of runtimes, of the run, of the witness, of what was left
    # out or skipped, of names, of owners, and of requests.
    behind = 24 + 3 * 16 * 8 + 8 * 8 + 3 * 8 + 3 * 8 + 8 * 8 + 24 * 4 * 8 + 7 * 8
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
                       "top": [(n, kind, name.rstrip(b"\0").decode())
                               for n, kind, name in top if n]})
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
    assert last["top"] == [(3, 1, "nft_do_chain"), (1, 1, "[kernel+0xffffffff81999999]"),
                           (1, 0, "[libx (1).so+0x2000]")]


@pytest.mark.parametrize("fmt", ["stream", "text", "pprof", "html"])
def test_deployment_writes_every_format(tmp_path, fmt):
    code, out, states, err = deployed(tmp_path, WHOLE, fmt)
    assert code == 0 and states[-1]["bytes"] == len(out), err
    assert out == export(WHOLE, "-f", fmt, raw=True).stdout


def test_a_sender_that_goes_early_leaves_its_samples(tmp_path):
    code, out, states, err = deployed(tmp_path, HELLO + "\n" + BODY + "drop\n", last=True)
    assert code == 3 and out.decode() == folded(WHOLE)
    assert states[-1]["cut"] == 1 and states[-1]["phase"] == 3
    assert "prof-export: warning: the stream of prof-symd: has no end message" in err
