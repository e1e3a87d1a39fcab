# SPDX-License-Identifier: Apache-2.0
"""Handmade streams, and the output that prof-export makes of them."""
import gzip
import os
import subprocess

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPORT = f"{BUILD}/prof-export"
FORMATS = ["folded", "pprof", "html", "text", "stream", "otlp"]

HELLO = ('hello kind=1 producer="prof-bpf 0.1.0" arch="x86_64" kernel="6.1.0-18-amd64" '
         'hostname="build-7" cpus=2 event="cpu-clock" hz=99 period=10101010 unit="nanoseconds" '
         'mono_ns=1000000000 wall_ns=1795256400000000000')
# main calls work, which has inner inlined and makes a system call; a thread without names; and one
# truncated stack.
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


def namesakes():
    """Two functions of one name, one of them on two lines, and a function that calls both."""
    lines = HELLO + '\nprocess id=1 pid=1 comm="p"\nthread id=1 process=1 tid=1\n'
    lines += ('function id=3 name="m.main" source="/x/m.py" start_line=1\n'
              'frame id=4 kind=2 functions=[3] lines=[2]\n')
    for i, (folder, line) in enumerate((("a", 5), ("a", 6), ("b", 5)), 1):
        lines += (f'function id={10 + i} name="util.f" source="/x/{folder}/util.py" start_line=4\n'
                  f'frame id={i} kind=2 offset={i} functions=[{10 + i}] lines=[{line}]\n')
        lines += f"stack id={i} frames=[{i},4]\n" + i * f"sample stack={i} thread=1 time_ns=1\n"
    return lines + END
