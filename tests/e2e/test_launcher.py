# SPDX-License-Identifier: Apache-2.0
"""profpipe with misbehaving tools: it obeys only the status words, and escapes what it shows."""
import os
import shutil
import signal
import subprocess
import time

import pytest

from conftest import BUILD

STATUS = 0x70667374
READY, RUNNING, DONE = 1, 2, 3

# A stand-in for any of the tools. `how` is Python code that it runs. say() writes a status word,
# life() waits for the life pipe: b"S", or b"" at its end. all_ready() waits for the other tools,
# but not for long.
STAND_IN = r"""#!/usr/bin/python3 -S
import os, struct, sys, time
args = sys.argv[1:]
name = os.path.basename(sys.argv[0])
value = lambda option: args[args.index(option) + 1]
status, life_fd = int(value("--status-fd")), int(value("--life-fd"))
size = {size}
def say(phase, samples=0, complete=0, names=()):
    head = struct.pack("<II10Q", {magic}, phase, samples, samples, complete, 1, 1, 7, samples,
                       1000 * samples, 4096, 0)
    top = b"".join(struct.pack("<QQ120s", 1, 0, n) for n in names)
    word = head + bytes(8 * 64 + 16) + top
    if phase == 1:
        open(sys.argv[0] + ".ready", "w").close()
    os.write(status, word + bytes(size - len(word)))
def all_ready():
    until = time.monotonic() + 4
    folder = os.path.dirname(sys.argv[0])
    while (sum(n.endswith(".ready") for n in os.listdir(folder)) < 4
           and time.monotonic() < until):
        time.sleep(0.02)
def life():
    return os.read(life_fd, 1)
def log(text):
    os.write(2, text)
{how}
"""
GOOD = {"prof-bpf": "say(1)\nlife()\nsay(3)", "prof-deltas": "say(1)\nlife()",
        "prof-symd": "say(1)\nlife()",
        "prof-export": "say(1)\nall_ready()\ntime.sleep(0.3)\n"
        "os.write(int(value('--output-fd')), b'a;b 1\\n')\nsay(3, 10, 9)",}


@pytest.fixture(scope="module")
def word_size(tmp_path_factory):
    """sizeof(struct status), of the compiler."""
    folder = tmp_path_factory.mktemp("size")
    source = folder / "size.c"
    source.write_text('#include <stdio.h>\n#include "common/status/status.h"\n'
                      'int main(void) { printf("%zu", sizeof(struct status)); }\n')
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    subprocess.run(["gcc", f"-I{root}", "-o", folder / "size", source], check=True)
    return int(subprocess.run([folder / "size"], capture_output=True, check=True).stdout)


def stand_in(how, size):
    how = STAND_IN.replace("{how}", how).replace("{magic}", hex(STATUS))
    return how.replace("{size}", str(size))


@pytest.fixture
def launch(tmp_path, word_size):
    """Runs profpipe record with stand-ins for some tools, which behave as the test specifies."""
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy(f"{BUILD}/profpipe", tools)

    def run(*args, timeout=60, **how):
        for name, good in GOOD.items():
            text = how.get(name.replace("-", "_"), good)
            path = tools / name
            path.write_text(stand_in(text, word_size))
            path.chmod(0o755)
        start = time.monotonic()
        p = subprocess.run([tools / "profpipe", "record", "-o", tmp_path / "x.folded", *args],
                           capture_output=True, timeout=timeout)
        p.took = time.monotonic() - start
        p.err = p.stderr.decode(errors="surrogateescape")
        p.output = tmp_path / "x.folded"
        return p

    return run


def errors(p):
    return [line for line in p.err.splitlines() if line.startswith("profpipe: error: ")]


def test_well_behaved_stand_ins_make_a_run(launch):
    p = launch("-d", "0.2")
    assert p.returncode == 0, p.err
    assert (p.output.read_text() == "a;b 1\n" and "10 samples" in p.err
            and "9 stacks complete" in p.err)


def test_missing_tools_are_reported(tmp_path):
    tools = tmp_path / "alone"
    tools.mkdir()
    shutil.copy(f"{BUILD}/profpipe", tools)
    p = subprocess.run([tools / "profpipe", "record", "-o", tmp_path / "x.folded"],
                       capture_output=True, text=True)
    assert p.returncode == 1 and len(p.stderr.splitlines()) == 1 and "prof-bpf" in p.stderr
    assert not (tmp_path / "x.folded").exists()


def test_names_and_logs_of_a_tool_are_escaped(launch):
    evil = r"b'\x1b[2Jowned\r\n\x07', b'\xff\xfe', b'\xe2\x80\xae' + b'x' * 117"
    p = launch("-d", "0.2",
               prof_symd=r"say(1); log(b'\x1b]0;title\x07 \xe2\x80\xaeline\n'); life()",
               prof_export=GOOD["prof-export"].replace("say(3, 10, 9)", f"say(3, 10, 9, ({evil}))"))
    assert p.returncode == 0, p.err
    for raw in ("\x1b", "\x07", "\r", "\u202e", "\udcff"):
        assert raw not in p.err, repr(p.err)
    assert r"\x1b[2Jowned" in p.err and r"prof-symd: \x1b]0;title" in p.err


def test_a_tool_speaks_in_its_own_name_only(launch):
    p = launch("-d", "0.2", prof_symd="say(1); log(b'profpipe: error: pay up\\n'); life()")
    assert p.returncode == 0 and errors(p) == []
    assert "prof-symd: profpipe: error: pay up" in p.err


def test_a_flood_of_log_lines_is_bounded(launch):
    p = launch("-d", "1", prof_symd="say(1)\nfor i in range(300000): "
               "log(b'%d ' % i + b'x' * 90 + b'\\n')\nlife()")
    assert p.returncode == 0 and len(p.err) < 200_000
    assert "too many lines" in p.err


def test_a_log_line_without_an_end_is_bounded(launch):
    p = launch("-d", "0.2", prof_symd="for i in range(1000): log(b'x' * 4096)\n"
               "log(b'\\nshort\\n')\nsay(1)\nlife()")
    assert p.returncode == 0 and len(p.err) < 20_000 and "prof-symd: short" in p.err


def test_garbage_on_the_status_pipe_ends_the_tool(launch):
    p = launch("-d", "4",
               prof_symd="say(1); time.sleep(0.5); os.write(status, os.urandom(1000)); "
               "time.sleep(100)",
               prof_export=GOOD["prof-export"].replace("0.3", "4.5"))
    assert ("prof-symd wrote an invalid status word: killing it" in p.err
            and "prof-symd ended (signal 9 (Killed)); restarting it" in p.err), p.err
    assert p.took < 30


def test_a_tool_that_is_never_ready_is_not_waited_for(launch, tmp_path):
    ran = tmp_path / "ran"
    p = launch("--", "touch", ran, prof_bpf="time.sleep(1000)", prof_export="say(1); life()")
    assert (p.returncode == 1 and p.took < 25 and len(errors(p)) == 1
            and "prof-bpf was not ready" in p.err)
    assert not ran.exists(), "the command was not let go"
    assert not p.output.exists()


def test_a_tool_that_fails_at_the_start_gives_one_line(launch):
    p = launch(prof_bpf="time.sleep(0.1); log(b'prof-bpf: error: no BPF here; boot another "
               "kernel\\n'); sys.exit(1)",
               prof_symd="say(1); time.sleep(0.3); log(b'prof-symd: error: prof-bpf cannot be "
               "reached\\n'); sys.exit(1)")
    assert p.returncode == 1 and len(p.err.splitlines()) == 1
    assert "prof-bpf" in p.err and "no BPF here; boot another kernel" in p.err
    assert not p.output.exists()


def test_tools_that_do_not_leave_are_killed(launch):
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay(1)\ntime.sleep(1000)"
    p = launch("-d", "0.2", prof_deltas=deaf, prof_symd=deaf)
    assert p.returncode == 0 and p.took < 8, p.err


def test_an_output_that_never_comes_is_given_up(launch):
    p = launch("-d", "0.2", prof_export="say(1); time.sleep(1000)", timeout=60)
    assert p.returncode == 1 and 25 < p.took < 45
    assert len(errors(p)) == 1 and "giving up" in p.err


def test_an_extractor_that_cannot_live_is_not_restarted_for_ever(launch):
    hurt = "say(1); log(b'prof-deltas: error: it hurts\\n'); sys.exit(1)"
    p = launch("-d", "14", prof_deltas=hurt,
               prof_export=GOOD["prof-export"].replace("0.3", "14.5"))
    assert "prof-deltas ended (exit status 1): it hurts; restarting it" in p.err, p.err
    assert p.err.count("restarting it") in (1, 2) and p.err.count("keeps ending") == 1, p.err
    assert p.returncode == 1


def test_an_extractor_that_ends_just_before_prof_bpf_is_not_restarted(launch):
    """The two end together: prof-bpf has reported that it is done, and closes its BPF objects."""
    name = f"profpipe-test-{os.getpid()}"
    there = (f"import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
             f"name = '\\0{name}'\n")
    p = launch("-d", "20",
               prof_bpf=there + "say(1)\ntime.sleep(0.2)\nsay(3)\ns.bind(name)\ntime.sleep(1)",
               prof_deltas=there + "say(1)\nwhile s.connect_ex(name):\n    time.sleep(0.01)")
    assert p.returncode == 0 and p.took < 15 and "prof-deltas ended" not in p.err, p.err


def test_a_second_interrupt_gives_up_at_once(launch, tmp_path, word_size):
    launch("-d", "0.1")
    (tmp_path / "tools" / "prof-export").write_text(
        stand_in("say(1); time.sleep(1000)", word_size))
    p = subprocess.Popen([tmp_path / "tools" / "profpipe", "record", "-v", "-o",
                          tmp_path / "y.folded"], stderr=subprocess.PIPE, text=True)
    assert "sampling has begun" in p.stderr.readline()
    for _ in range(2):
        time.sleep(0.5)
        p.send_signal(signal.SIGINT)
    start = time.monotonic()
    err = p.communicate(timeout=20)[1]
    assert p.returncode == 1 and time.monotonic() - start < 3 and "interrupted again" in err


def test_a_tool_has_only_its_own_descriptors_and_no_environment(launch, tmp_path):
    seen = tmp_path / "seen"
    seen.mkdir(mode=0o777)
    look = f"""
def is_open(n):
    try:
        os.fstat(n)
    except OSError:
        return False
    return True
with open({str(seen)!r} + '/' + name, 'w') as f:
    fds = [n for n in range(256) if n != f.fileno() and is_open(n)]
    names = sorted(k for k in os.environ if k != 'LC_CTYPE')
    print(fds, names, os.getsid(0) == os.getpid(), file=f)
"""
    p = launch("-d", "0.2", **{n.replace("-", "_"): look + how for n, how in GOOD.items()})
    assert p.returncode == 0, p.err
    for name in GOOD:
        fds = [0, 1, 2, 3, 4, 5, 6] if name == "prof-export" else [0, 1, 2, 3, 4]
        assert (seen / name).read_text() == f"{fds} [] True\n"


def test_folders_that_resemble_a_run_are_left_alone(tmp_path):
    """Folders of users whose names happen to look like those of runs stay; folders of killed runs
    are removed."""
    kept = {"profpipe.results/deep": 0o755, "profpipe.abcdef/bpf": 0o755,
            "profpipe.ghijkl/mine": 0o711, "profpipe.mydata/bpf": 0o711}
    left = {"profpipe.AbC123/bpf": 0o711, "profpipe.dEf456": 0o700}
    for path, mode in {**kept, **left}.items():
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path.split("/")[0]).chmod(mode)
    (tmp_path / "profpipe.mydata/notes").write_text("precious")
    (tmp_path / "profpipe.AbC123/bpf").chmod(0o710)
    (tmp_path / "profpipe.AbC123/bpf/rows.sock").write_text("")
    # In /run, only the lock can be written.
    mounts = ("mount -t tmpfs none /run; touch /run/profpipe.lock; "
              "mount --bind /run/profpipe.lock /run/profpipe.lock; mount -o remount,bind,ro /run")
    p = subprocess.run(["unshare", "-m", "sh", "-ec", mounts + '; exec "$@"', "sh",
                        f"{BUILD}/profpipe", "record", "-q", "-d", "1", "-o",
                        tmp_path / "out.folded", "--", "sh", "-c", "while :; do :; done"],
                       env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True,
                       timeout=60)
    assert p.returncode == 0, p.stderr
    assert sorted(os.listdir(tmp_path)) == sorted({path.split("/")[0] for path in kept}
                                                  | {"out.folded"})
    assert (tmp_path / "profpipe.mydata/notes").read_text() == "precious"
    assert (tmp_path / "profpipe.results/deep").is_dir()


# --- what every tool reports about itself ---

@pytest.mark.parametrize("flag", ["--help", "--version"])
@pytest.mark.parametrize("words",
                         [["profpipe"], ["profpipe", "record"], ["profpipe", "report"],
                          ["profpipe", "doctor"], *([t] for t in (*GOOD, "prof-dump"))],
                         ids=" ".join)
def test_a_failed_write_of_help_and_version_is_reported(words, flag):
    argv = [f"{BUILD}/{words[0]}", *words[1:], flag]
    p = subprocess.run(argv, capture_output=True, text=True)
    assert p.returncode == 0 and p.stderr == "" and words[0] in p.stdout
    with open("/dev/full", "w") as full:
        p = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (p.returncode
            and p.stderr == f"{words[0]}: error: standard output: No space left on device; "
            "make room, or redirect it to another file system\n")
