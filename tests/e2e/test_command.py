# SPDX-License-Identifier: Apache-2.0
"""The COMMAND of profpipe record: how it runs, and which processes are recorded."""
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import BUILD, profpipe, record
from running import Run, burn, nothing_is_left_behind


def test_a_command_runs_like_the_callers_own(tmp_path):
    """The command gets its caller's environment, directory, mounts, descriptors, signals, groups
    and session, and nothing of profpipe's."""
    script = r"""
import json, os, signal, sys
s = open("/proc/self/status").read()
f = dict(l.split(":\t", 1) for l in s.splitlines() if ":\t" in l)
def is_open(n):
    try:
        os.fstat(n)
    except OSError:
        return False
    return True
fds = [n for n in range(1024) if is_open(n)]
def mount_of(path):
    info = open("/proc/self/fdinfo/%d" % os.open(path, os.O_PATH)).read()
    return [line for line in info.splitlines() if line.startswith("mnt_id")]
print(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "fds": fds, "blocked": f["SigBlk"],
    "ignored": f["SigIgn"], "uid": f["Uid"], "gid": f["Gid"], "groups": os.getgroups(),
    "caps": f["CapEff"], "sid": os.getsid(0), "pgid": os.getpgid(0), "in": sys.stdin.read(),
    "nnp": f["NoNewPrivs"], "space": os.readlink("/proc/self/ns/mnt"),
    "mounts": [mount_of("."), mount_of("/"), mount_of("/proc")]}))
"""
    env = {"PATH": os.environ["PATH"], "FLAVOUR": "a b\nc", "EMPTY": ""}

    def caller():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})

    extra = os.open("/etc/passwd", os.O_RDONLY)
    common = dict(env=env, cwd="/usr", input="hello", capture_output=True, text=True,
                  preexec_fn=caller, pass_fds=[extra], extra_groups=[7, 8])
    argv = ["/usr/bin/python3", "-S", "-c", script]
    plain = json.loads(subprocess.run(argv, **common).stdout)
    p = subprocess.run([f"{BUILD}/profpipe", "record", "-q", "-o", tmp_path / "x.folded", "--",
                        *argv], **common)
    os.close(extra)
    assert p.returncode == 0, p.stderr
    got = json.loads(p.stdout)
    assert got.pop("fds") == [0, 1, 2]
    assert extra in plain.pop("fds")
    assert got.pop("pgid") not in (0, 1) and plain.pop("pgid")
    assert got == plain


@pytest.mark.parametrize("right", ["sys_chroot", "sys_admin"])
def test_a_command_runs_without_the_right_to_change_mounts(tmp_path, right):
    p = subprocess.run(["setpriv", f"--bounding-set=-{right}", f"--inh-caps=-{right}",
                        f"{BUILD}/profpipe", "record", "-q", "-o", tmp_path / "x.folded", "--",
                        "echo", "ran"], capture_output=True, text=True)
    assert p.returncode == 0 and p.stdout == "ran\n", p.stderr


def test_the_status_of_a_command_is_reported_and_not_returned(tmp_path):
    p = profpipe("record", "-o", tmp_path / "x.folded", "--", "sh", "-c", "exit 3")
    assert p.returncode == 0 and "exit status 3" in p.stderr
    p = profpipe("record", "-o", tmp_path / "x.folded", "--", "sh", "-c", "kill -9 $$")
    assert p.returncode == 0 and "signal 9" in p.stderr
    p = profpipe("record", "-o", tmp_path / "x.folded", "--", "true")
    assert p.returncode == 0 and "exit status" not in p.stderr


def test_children_of_a_command_are_followed_to_their_end(tmp_path):
    background = "(/usr/bin/python3 -c 'x = sum(i for i in range(30000000))' & ) ; true"
    got = record(tmp_path, "-F", "499", command=["sh", "-c", background])
    assert got.summary["duration_s"] > 0.3
    assert sum(c for s, c in got.stacks if s[0].startswith("python3")) > 50


def test_only_the_command_is_recorded(tmp_path):
    with subprocess.Popen(burn(5)) as other:
        got = record(tmp_path, "-F", "499",
                     command=["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
        other.kill()
    assert {s[0].split()[0] for s, _ in got.stacks} <= {"sh", "dash"}


def test_only_the_given_processes_are_recorded_until_they_end(tmp_path):
    with (subprocess.Popen(burn(2)) as one, subprocess.Popen(burn(2)) as two,
          subprocess.Popen(["sh", "-c", "while :; do :; done"]) as other):
        start = time.monotonic()
        got = record(tmp_path, "-F", "199", "-p", one.pid, "-p", two.pid)
        took = time.monotonic() - start
        other.kill()
    assert got.stacks and all(s[0].startswith("python3") for s, _ in got.stacks)
    assert got.summary["processes"] == 2 and took < 8


BURNER = """#include <stdlib.h>
#include <time.h>
static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) int burn(double s)
{
	volatile int n = 0;
	while (cpu() < s)
		for (int i = 0; i < 2000; i++)
			n += i;
	return n;
}
int main(int argc, char **argv) { return burn(atof(argv[1])) & 1; }
"""


@pytest.fixture
def burner(tmp_path):
    (tmp_path / "burn.c").write_text(BURNER)
    subprocess.run(["gcc", "-O2", "-o", tmp_path / "burn", tmp_path / "burn.c"], check=True)
    return tmp_path / "burn"


def test_a_command_of_50_ms_has_complete_stacks(tmp_path, burner):
    runs, complete = [], 0
    cut = {}
    for _ in range(5):
        got = record(tmp_path, "-F", "999", command=[burner, "0.05"])
        assert any("main" in s for s, _ in got.stacks), got.stacks
        runs.append(got.summary["samples"])
        complete += got.summary["complete"]
        cut.update(got.summary["truncated"])
    # A virtual machine may stand still for 50 ms, which its clocks count and no timer does.
    assert sorted(runs)[2] >= 20, runs
    assert complete >= 0.95 * sum(runs), f"{complete} of {runs}: {cut}"


IN_HANDLER = r"""
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) int burn(double s)
{
	volatile int n = 0;
	while (cpu() < s)
		for (int i = 0; i < 2000; i++)
			n += i;
	return n;
}
static int sum;
static void handler(int n) { sum += burn(0.05); }
__attribute__((noinline)) int interrupted(int n)
{
	char room[8192];
	room[n] = 1;
	__asm__ volatile("" ::"r"(room) : "memory");
	return n ? interrupted(n - 1) + room[n] : raise(SIGUSR1);
}
int main(void)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction a = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &a, NULL);
	return interrupted(5) & 1;
}
"""


def test_first_samples_in_a_signal_handler_show_the_interrupted_stack(tmp_path):
    (tmp_path / "handler.c").write_text(IN_HANDLER)
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", tmp_path / "handler",
                    tmp_path / "handler.c"], check=True)
    again = 'for i in 1 2 3; do cp "$1" "$1$i"; "$1$i"; done'
    stacks = record(tmp_path, "-F", "499",
                    command=["sh", "-c", again, "sh", tmp_path / "handler"]).stacks
    inside = [(s, n) for s, n in stacks if "burn" in s]
    whole = [(s, n) for s, n in inside if s.count("interrupted") == 6 and "main" in s
             and "handler" in s]
    assert sum(n for _, n in inside) >= 30
    assert sum(n for _, n in whole) >= 0.9 * sum(n for _, n in inside), inside


@pytest.mark.parametrize("file", ["new", "same"])
def test_short_processes_have_all_samples_and_whole_stacks(
        tmp_path, burner, file):
    """Their samples come before their mappings are known, and often only after they are gone."""
    out, summary = tmp_path / "out.folded", tmp_path / "summary.json"
    runs = [0.005] * 24 + [0.02] * 12 + [0.05] * 6
    cpu_s = 0
    with Run("-F", "199", "-o", out, "--summary", summary) as r:
        r.sampling()
        for i, seconds in enumerate(runs):
            # Programs of other tests run meanwhile, under other names.
            program = tmp_path / (f"brief-new{i}" if file == "new" else "brief-same")
            if not program.exists():
                program.write_bytes(burner.read_bytes() + os.urandom(16))
                program.chmod(0o755)
            p = subprocess.Popen([program, str(seconds)])
            used = os.wait4(p.pid, 0)[2]
            cpu_s += used.ru_utime + used.ru_stime
        r.p.send_signal(signal.SIGINT)
        status, _, err = r.end(20)
    assert status == 0, err
    stacks = [line.rsplit(" ", 1) for line in out.read_text(errors="replace").splitlines()
              if line.startswith(f"brief-{file}")]
    samples = sum(int(n) for _, n in stacks)
    cut = sum(int(n) for s, n in stacks if "[truncated" in s)
    assert cut <= 0.03 * samples, [(s, n) for s, n in stacks if "[truncated" in s]
    # A virtual machine loses ticks.
    assert 0.8 * sum(runs) * 199 <= samples <= 1.3 * cpu_s * 199, (samples, sum(runs), cpu_s)
    assert sum(int(n) for s, n in stacks if ";main;burn" in s) >= 0.7 * sum(runs) * 199


def test_recording_begins_within_half_a_second(tmp_path):
    with subprocess.Popen(burn(60)) as other:
        got = record(tmp_path, "-F", "199", "-d", "0.5")
        other.kill()
    # Usually 0.15 s to 0.3 s.
    assert got.summary["first_complete_sample_s"] < 0.5
