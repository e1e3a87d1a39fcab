# SPDX-License-Identifier: Apache-2.0
"""prof-deltas by hand: its text, its figures, its errors; and its rows compared with libdw's.
PROFPIPE_CORPUS=all compares every ELF file of /usr."""
import json
import os
import re
import resource
import struct
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))
DATA = f"{TESTS}/data/cfi"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"
LOADER = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"

os.environ["PROFPIPE_BUILD"] = BUILD
sys.path.insert(0, f"{TESTS}/oracle")
import compare  # noqa: E402
import giant  # noqa: E402


def deltas(*args, timeout=60, **kw):
    return subprocess.run([f"{BUILD}/prof-deltas", *map(str, args)], capture_output=True, text=True,
                          errors="replace", timeout=timeout, **kw)


def rows(path):
    p = deltas(path)
    assert p.returncode == 0, p.stderr
    lines = p.stdout.splitlines()
    assert lines[0] == f"# {path}"
    return [line.split() for line in lines[1:]]


def figures(line):
    return {k: int(v) for k, v in re.findall(r"([a-z_-]+)=(\d+)", line)}


def patched(tmp_path, at, fmt, value, source="ordinary"):
    data = bytearray(open(f"{DATA}/{source}", "rb").read())
    struct.pack_into(fmt, data, at, value)
    path = tmp_path / "patched"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name, options",
                         [("ordinary", []), ("unusual", []), ("debugframe", []),
                          ("rare", ["--registers"]), ("framepointer", ["--registers"])])
def test_rows_of_a_kept_object_are_unchanged(name, options):
    p = deltas(*options, name, cwd=DATA)
    assert (p.returncode, p.stderr) == (0, "")
    assert p.stdout == open(f"{DATA}/{name}.rows").read()


def test_every_row_has_an_address_and_four_or_five_columns():
    cfa = re.compile(r"(r[a-z0-9]+[+-]\d+|\*\(r[a-z0-9]+(\+\d\*r[a-z0-9]+)?[+-]\d+\)[+-]\d+|"
                     r"\*\(\*\(r[a-z0-9]+[+-]\d+\)[+-]\d+\)[+-]\d+|plt|end)$")
    rbp = re.compile(r"(same|undefined|cfa[+-]\d+|r[a-z0-9]+[+-]\d+)$")
    ra = re.compile(r"(cfa[+-]\d+|undefined|r[a-z0-9]+|rsp\+168)$")
    last = -1
    found = rows(LIBC)
    assert len(found) > 10000
    for row in found:
        assert len(row) in (4, 5) and (len(row) == 4 or row[4] in ("signal", "derived")), row
        assert cfa.match(row[1]) and rbp.match(row[2]) and ra.match(row[3]), row
        assert int(row[0], 16) > last
        last = int(row[0], 16)


def test_no_two_neighbours_are_equal():
    found = rows(LIBC)
    assert not [a for a, b in zip(found, found[1:]) if a[1:] == b[1:]]


def test_the_signal_restorer_of_libc_is_marked():
    assert [row for row in rows(LIBC) if row[4:] == ["signal"]]


def test_the_loaders_entry_point_is_the_end_of_the_stack():
    entry = struct.unpack_from("<Q", open(LOADER, "rb").read(64), 24)[0]
    assert [row[1:] for row in rows(LOADER) if int(row[0], 16) == entry] == [
        ["rsp+8", "same", "undefined", "derived"]]


@pytest.mark.parametrize("hdr", ["good", "absent", "pointer", "encoding", "garbage"])
def test_a_file_without_section_headers_has_the_same_rows(tmp_path, hdr):
    bare = bytearray(open(f"{DATA}/ordinary", "rb").read())
    struct.pack_into("<Q", bare, 0x28, 0)
    struct.pack_into("<HHH", bare, 0x3A, 0, 0, 0)
    at = next(64 + 56 * i
              for i in range(bare[0x38]) if struct.unpack_from("<I", bare, 64 + 56 * i)[0]
              == 0x6474E550)
    table = struct.unpack_from("<Q", bare, at + 8)[0]
    if hdr == "absent":
        struct.pack_into("<I", bare, at, 0)
    elif hdr == "pointer":
        bare[table + 4] ^= 8
    elif hdr == "encoding":
        bare[table + 1] = 0xFF
    elif hdr == "garbage":
        bare[table:table + 12] = b"\xfe" * 12
    (tmp_path / "bare").write_bytes(bare)
    assert rows(tmp_path / "bare") == rows(f"{DATA}/ordinary")


@pytest.mark.parametrize("packing, name",
                         [("none", ".debug_frame"), ("zlib-gnu", ".zdebug_frame"),
                          ("zlib-gabi", ".debug_frame"), ("zstd", ".debug_frame")])
def test_a_packed_section_has_the_same_rows(tmp_path, packing, name):
    path = tmp_path / "packed"
    subprocess.run(["objcopy", f"--compress-debug-sections={packing}", f"{DATA}/debugframe", path],
                   check=True)
    assert f" {name} " in subprocess.run(["readelf", "-SW", path], capture_output=True,
                                         text=True).stdout
    assert rows(path) == rows(f"{DATA}/debugframe") != []
    whole = path.read_bytes()
    if packing != "none":
        at = whole.index(b"\x28\xb5\x2f\xfd" if packing == "zstd" else b"\x78\x9c")
        path.write_bytes(whole[:at] + b"\xff" * 20 + whole[at + 20:])
        assert figures(deltas("--stats", path).stdout.splitlines()[0])["section"] == 1


def test_a_separate_debug_file_fills_gaps_of_the_file(tmp_path):
    flags = ["gcc", "-O1", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
             "-nostdlib", "-static", f"{DATA}/ordinary.c"]
    for name in "whole", "other":
        subprocess.run([*flags, "-Wl,--build-id=0x" + name.encode().hex(), "-o", tmp_path / name],
                       check=True)
    for option, name in ("--only-keep-debug", "debug"), ("--strip-debug", "bare"):
        subprocess.run(["objcopy", option, tmp_path / "whole", tmp_path / name], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", tmp_path / "other", tmp_path / "other.debug"],
                   check=True)
    whole = rows(tmp_path / "whole")
    p = deltas("--debug", tmp_path / "debug", tmp_path / "bare")
    assert (p.returncode, p.stderr) == (0, "")
    assert [line.split() for line in p.stdout.splitlines()[1:]] == whole
    plain = [row for row in rows(tmp_path / "bare") if row[4:] != ["derived"]]
    assert [row for row in whole if row[4:] != ["derived"]] != plain
    for debug, want in ((tmp_path / "other.debug", "build ids differ"),
                        ("/etc/passwd", "is not a supported ELF file"),
                        (tmp_path / "none", "No such file")):
        p = deltas("--debug", debug, tmp_path / "bare")
        assert p.returncode == 1 and want in p.stderr and len(p.stderr.splitlines()) == 1
    assert deltas("--debug", tmp_path / "debug", tmp_path / "bare",
                  tmp_path / "whole").returncode == 2


def test_stats_describe_each_file_and_the_total():
    p = deltas("--stats", LIBC, LOADER)
    assert p.returncode == 0
    libc, loader, total = map(figures, p.stdout.splitlines())
    assert p.stdout.startswith(f"{LIBC}: rows=")
    assert libc["bytes"] == 4 * libc["rows"] + 24 * libc["rules"]
    assert total["files"] == 2 and total["rows"] == libc["rows"] + loader["rows"]
    assert max(libc["rules"], loader["rules"]) <= total["rules"] < libc["rules"] + loader["rules"]
    assert total["memory_kib"] > 500 and libc["memory_kib"] > 20
    assert total["time_us"] >= libc["time_us"] > 0
    first = deltas("--stats", f"{DATA}/unusual").stdout.splitlines()[0]
    assert figures(first)["cfa-expression"] == 1


@pytest.mark.parametrize("kind, want",
                         [("missing", "No such file"), ("folder", "a folder"),
                          ("text", "no ELF magic"), ("empty", "no ELF magic"),
                          ("fifo", "not a regular file"), ("32", "32-bit"),
                          ("machine", "another machine"), ("head", "truncated"),
                          ("cut", "truncated"), ("phoff", "program headers lie past its end"),
                          ("sections", "truncated"), ("segment", "damaged"),])
def test_bad_files_get_one_line_and_the_others_their_rows(tmp_path, kind, want):
    path = tmp_path / kind
    whole = open(f"{DATA}/ordinary", "rb").read()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "text":
        path.write_text("#!/bin/sh\n")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "head":
        path.write_bytes(whole[:40])
    elif kind == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "32":
        path = patched(tmp_path, 4, "B", 1)
    elif kind == "machine":
        path = patched(tmp_path, 18, "<H", 183)
    elif kind == "phoff":
        path = patched(tmp_path, 32, "<Q", 1 << 40)
    elif kind == "sections":
        path = patched(tmp_path, 40, "<Q", 1 << 60)
    elif kind == "segment":
        path = patched(tmp_path, 64 + 32, "<Q", 1 << 63)
    p = deltas(path, f"{DATA}/ordinary")
    assert p.returncode == 1
    assert len(p.stderr.splitlines()) == 1, p.stderr
    assert want in p.stderr and str(path) in p.stderr
    assert f"# {DATA}/ordinary\n" in p.stdout


def test_an_unreadable_file_is_refused(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"\x7fELF")
    path.chmod(0)
    if os.geteuid() == 0:
        # Root may read everything; a caller without that right may not.
        os.chmod(tmp_path, 0o755)
        path.chmod(0o600)
        tool = tmp_path / "tool"
        tool.write_bytes(open(f"{BUILD}/prof-deltas", "rb").read())
        tool.chmod(0o755)
        for folder in tmp_path.parents:
            if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
                os.chmod(folder, folder.stat().st_mode | 0o011)
        p = subprocess.run([tool, path], user=65534, group=65534, extra_groups=[],
                           capture_output=True, text=True)
    else:
        p = deltas(path)
    assert p.returncode == 1 and "Permission denied" in p.stderr


def test_a_file_without_unwind_information_is_no_error(tmp_path):
    source = tmp_path / "none.S"
    source.write_text(".globl f\nf: pop %rax; pop %rax; ret\n.section .note.GNU-stack\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--no-ld-generated-unwind-info", "-o",
                    tmp_path / "none.so", source], check=True)
    p = deltas(tmp_path / "none.so")
    assert (p.returncode, p.stderr) == (0, "")
    assert re.fullmatch(r"# .*none\.so: no rows: it has no call frame information\n", p.stdout)


def test_a_name_cannot_write_to_the_terminal(tmp_path):
    path = tmp_path / "a\x1b[31m\nb"
    path.write_bytes(open(f"{DATA}/ordinary", "rb").read())
    p = deltas(path)
    assert "\x1b" not in p.stdout and p.stdout.count("#") == 1
    path.write_text("no")
    p = deltas(path)
    assert "\x1b" not in p.stderr and len(p.stderr.splitlines()) == 1


def test_a_full_output_is_an_error():
    with open("/dev/full", "w") as full:
        p = subprocess.run([f"{BUILD}/prof-deltas", LIBC], stdout=full, stderr=subprocess.PIPE,
                           text=True)
    assert p.returncode == 1 and "No space left" in p.stderr and len(p.stderr.splitlines()) == 1


def test_wrong_options_are_refused():
    for args in ([], ["--no-such"], ["--run-dir", "/nonexistent", "file"], ["-r", "-s", LIBC],
                 ["--status-fd", "2", LIBC], ["--debug", LIBC, "--debug", LIBC, LIBC],
                 ["--debug", LIBC, "--derive-only", LIBC], ["--run-dir", "/run", "-s"],
                 ["--run-dir", "/run", "--run-dir", "/tmp"]):
        p = deltas(*args)
        assert (p.returncode, p.stdout, len(p.stderr.splitlines())) == (2, "", 1), args


def test_memory_stays_small_for_a_large_file():
    large = max(compare.find(["/usr/bin", "/usr/lib/x86_64-linux-gnu"]), key=os.path.getsize)
    total = figures(deltas("--stats", large).stdout.splitlines()[-1])
    sanitizer = 256 if "asan" in BUILD else 0
    assert total["memory_kib"] < (32 + sanitizer) << 10


def test_memory_is_a_few_bytes_a_row(tmp_path):
    # A file of 1 GiB has some 14 million rows; this one has 2 million, and a hole that is not read.
    giant.make(LIBC, tmp_path / "giant", 1 << 30, copies=90)
    total = figures(deltas("--stats", tmp_path / "giant").stdout.splitlines()[-1])
    sanitizer = 256 if "asan" in BUILD else 0
    assert total["rows"] > 1_500_000 and total["skipped"] < 1000
    assert total["memory_kib"] << 10 < 4.5 * total["rows"] + (4 + sanitizer << 20)


def test_rows_agree_with_libdw():
    whole = os.environ.get("PROFPIPE_CORPUS") == "all"
    files = compare.find(["/usr"] if whole else ["/usr/bin", "/usr/lib/x86_64-linux-gnu", LOADER])
    if not whole:
        must = [LIBC, LOADER, "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/openssl"]
        files = compare.select(files,
                               300) + [os.path.realpath(path)
                                       for path in must if os.path.exists(path)]
    total, bad = compare.compare_all(files, every=1 if whole else 10)
    assert not bad and not total["disagreements"], "".join(bad)
    assert total["unknown"] < total["rows"] / 10000 and total["refused"] < total["rows"] / 10000
    assert len(files) >= 100 and total["rows"] > 100000 and total["states"] > total["rows"] / 10


def test_the_oracle_sees_a_wrong_row(tmp_path):
    printed = deltas("--registers", LOADER).stdout
    for what, wrong in ((r"rsp\+16 ", "rsp+24 "), (r"cfa-16 ", "cfa-24 "),
                        (r"rbx=cfa-24", "rbx=cfa-16")):
        bad = re.sub(what, wrong, printed, count=1)
        assert bad != printed
        p = subprocess.run([f"{BUILD}/tests/cfi-oracle", LOADER], input=bad, capture_output=True,
                           text=True)
        assert p.returncode == 1 and " disagreements=0" not in p.stdout, what


def test_a_stack_through_the_lazy_resolver_is_whole(tmp_path):
    # ld.so's resolver keeps its CFA in RBX over its call of _dl_fixup, whose callees save it in
    # turn.
    (tmp_path / "lazy.c").write_text(
            "#include <stdlib.h>\nint main(void) { return abs(-3) - 3; }\n")
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-Wl,-z,lazy", "-o", tmp_path / "lazy",
                    tmp_path / "lazy.c"], check=True)
    gdb = subprocess.run(["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex",
                          "set auto-load off", "-ex", "break main", "-ex", "run", "-ex",
                          "break do_lookup_x", "-ex", "continue", "-x", f"{HERE}/gdb_stacks.py",
                          "-ex", f"generate-core-file {tmp_path}/core", tmp_path / "lazy"],
                         input="here\n", capture_output=True, text=True, timeout=60)
    assert "STACKS" in gdb.stdout, gdb.stderr
    (theirs,) = json.loads(gdb.stdout.split("STACKS")[1].splitlines()[0]).values()
    said = subprocess.run([f"{BUILD}/prof-dump", tmp_path / "core"], capture_output=True, text=True,
                          timeout=60)
    assert said.returncode == 0, said.stderr
    frames = [line.split() for line in said.stdout.splitlines() if re.match(r" *\d+ ", line)]
    assert [int(frame[1], 16) for frame in frames] == theirs, said.stdout
    names = [frame[2] for frame in frames]
    assert (names[:2] == ["do_lookup_x", "_dl_lookup_symbol_x"] and "_dl_fixup" in names
            and names[-1] == "_start"), names


def test_saved_rbx_is_printed_on_request():
    plain, more = deltas(LIBC).stdout.splitlines(), deltas("--registers", LIBC).stdout.splitlines()
    assert not [line for line in plain if "rbx=" in line]
    stripped = [re.sub(r" rbx=cfa-\d+$", "", line).split() for line in more[1:]]
    assert [line for line in more if re.search(r" rbx=cfa-\d+$", line)]
    assert without_repeats(stripped) == [line.split() for line in plain[1:]]


# --- serving, with tests/rows-peer in prof-bpf's place ---


def serve(tmp_path, *files, **kw):
    """(exit of prof-deltas, its standard error, {name: (status, lines)} or what the peer said, exit
    of the peer)"""
    (tmp_path / "bpf").mkdir(exist_ok=True)
    with open(tmp_path / "said", "w") as said:
        peer = subprocess.Popen([f"{BUILD}/tests/rows-peer", tmp_path, *files], stdout=said)
    tool = deltas("--run-dir", tmp_path, **kw)
    code = peer.wait(timeout=60)
    return tool, (tmp_path / "said").read_text(), code


def answers(said):
    found, name = [], None
    for line in said.splitlines():
        m = re.fullmatch(r"(.*) status (\d+)", line)
        if m:
            name = (m[1], int(m[2]), [])
            found.append(name)
        else:
            name[2].append(line.split())
    return found


def without_repeats(found):
    return [row for i, row in enumerate(found) if not i or row[1:] != found[i - 1][1:]]


def test_served_rows_are_those_printed(tmp_path):
    tool, said, peer = serve(tmp_path, f"fd:{LIBC}", LOADER, f"late:{LIBC}")
    assert (tool.returncode, tool.stderr, peer) == (0, "", 0)
    libc, loader, late = answers(said)
    # In these two files, ELF addresses of code are file offsets. Where the text ends with a
    # function, only the printed form shows that.
    for answer, path in (libc, LIBC), (loader, LOADER):
        printed, served = rows(path), without_repeats(answer[2])
        assert answer[1] == 0 and served == printed[: len(served)]
        assert [row[1] for row in printed[len(served):]] in ([], ["end"])
    assert late[1:] == libc[1:]


def test_each_bad_file_is_answered_and_none_stops_the_service(tmp_path):
    bad = patched(tmp_path, 64 + 32, "<Q", 1 << 63)
    tool, said, peer = serve(tmp_path, "/etc/passwd", "/etc", bad, "/dev/null", f"never:{LIBC}",
                             f"{DATA}/ordinary")
    assert (tool.returncode, peer) == (0, 0)
    assert [a[1] for a in answers(said)] == [1, 1, 3, 1, 6, 0]


def test_many_requests_in_flight_are_all_answered(tmp_path):
    tool, said, peer = serve(tmp_path,
                             *[
            f"{'fd:' if i % 2 else ''}{DATA}/{'ordinary' if i % 3 else 'unusual'}"
            for i in range(40)])
    assert (tool.returncode, peer) == (0, 0)
    found = answers(said)
    assert len(found) == 40 and all(a[1] == 0 and a[2] for a in found)


@pytest.mark.parametrize("kind, want",
                         [("build", "another version"), ("garbage", "invalid message")])
def test_a_peer_of_another_kind_is_refused_in_one_line(tmp_path, kind, want):
    tool, said, peer = serve(tmp_path, f"{kind}:{LIBC}")
    assert tool.returncode == 1 and want in tool.stderr and len(tool.stderr.splitlines()) == 1
    assert (said, peer) == ("gone\n", 1)


def test_the_service_ends_when_its_life_pipe_closes(tmp_path):
    (tmp_path / "bpf").mkdir()
    ours, theirs = os.pipe()
    peer = subprocess.Popen([f"{BUILD}/tests/rows-peer", tmp_path, f"never:{LIBC}"],
                            stdout=subprocess.PIPE, text=True)
    tool = subprocess.Popen([f"{BUILD}/prof-deltas", "--run-dir", tmp_path, "--life-fd", str(ours)],
                            pass_fds=[ours], stderr=subprocess.PIPE, text=True)
    os.close(ours)
    os.write(theirs, b"S")
    assert answers(peer.communicate(timeout=30)[0])[0][1] == 6, "'S' alone does not end it"
    assert tool.wait(timeout=30) == 0
    os.close(theirs)
    peer = subprocess.Popen([f"{BUILD}/tests/rows-peer", tmp_path, f"never:{LIBC}",
                             f"never:{LOADER}"], stdout=subprocess.PIPE, text=True)
    ours, theirs = os.pipe()
    tool = subprocess.Popen([f"{BUILD}/prof-deltas", "--run-dir", tmp_path, "--life-fd", str(ours)],
                            pass_fds=[ours], stderr=subprocess.PIPE, text=True)
    os.close(ours)
    time.sleep(1)
    os.close(theirs)
    assert tool.wait(timeout=30) == 0
    # On a busy host it may not have come yet.
    assert peer.communicate(timeout=60)[0] in ("gone\n", "")


def test_without_a_peer_the_service_logs_that_it_waits(tmp_path):
    # For a minute; tests/unit/cell/dial.c tests how that ends.
    with subprocess.Popen([f"{BUILD}/prof-deltas", "--run-dir", tmp_path], stderr=subprocess.PIPE,
                          text=True) as tool:
        assert tool.stderr.readline() == (
            f"prof-deltas: warning: {tmp_path}: prof-bpf is not there yet; waiting for it\n")
        assert tool.poll() is None
        tool.kill()


@pytest.mark.parametrize("tool", ["prof-deltas", "prof-symd"])
def test_a_missing_folder_of_a_run_is_an_error_at_once(tmp_path, tool):
    p = subprocess.run([f"{BUILD}/{tool}", "--run-dir", tmp_path / "none"], capture_output=True,
                       text=True, timeout=20, check=False)
    assert (p.returncode, p.stderr) == (
        1, f"{tool}: error: --run-dir: {tmp_path}/none: No such file or directory; "
        "name the folder of the run, which must exist\n")


@pytest.mark.skipif("asan" in BUILD, reason="a sanitizer's shadow counts as data")
def test_rows_of_libgcc_end_where_it_installs_a_handler():
    """From the call that overwrites the saved registers of its frame to the instruction that takes
    RSP from RCX, in each of the functions that raise and resume."""
    text = rows("/lib/x86_64-linux-gnu/libgcc_s.so.1")
    ends = [i for i, row in enumerate(text) if row[1] == "rcx+8"]
    assert len(ends) == 4
    for i in ends:
        # Their return address is elsewhere. It is known for the two calls, and useless after them.
        cfa, rbp, ra, derived = text[i - 2][1:]
        assert (cfa, rbp, derived) == ("rbp+16", "undefined", "derived"), text[i - 3:i + 1]
        assert re.fullmatch(r"cfa-\d+", ra) and ra != "cfa-8", text[i - 3:i + 1]
        assert text[i - 1][1:] == ["end", "undefined", "undefined", "derived"], text[i - 3:i + 1]
        assert 30 < int(text[i][0], 16) - int(text[i - 2][0], 16) < 300


def test_without_room_for_derived_rows_those_of_the_tables_stay(tmp_path):
    """300,000 functions that no table describes, whose rows take 18 MiB, and two that one does."""
    (tmp_path / "p.c").write_text("""__asm__(
	".macro one\\n.type f\\\\@,@function\\nf\\\\@: push %rbx\\npop %rbx\\nret\\nnop\\n"
	".size f\\\\@,4\\n.endm\\n.rept 300000\\none\\n.endr\\n");
__attribute__((noinline)) int told(int n) { return n * 3; }
int main(int argc, char **argv) { return told(argc); }
""")
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    p = deltas("-s", tmp_path / "p",
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (9 << 20, 9 << 20)))
    assert p.returncode == 0, p.stderr
    assert re.search(r"rows=\d{1,2} .* fdes=[3-9] ", p.stdout), p.stdout
