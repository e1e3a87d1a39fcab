# SPDX-License-Identifier: Apache-2.0
"""The walker compared with gdb: the same stopped processes, every thread, every frame."""
import ctypes
import json
import os
import random
import signal
import subprocess
import time

import pytest

from conftest import of_which_check_has

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("PROFPIPE_BUILD", "build/release")

PYTHON = """
import re, threading, zlib, json, hashlib
def work(n):
    while True:
        json.dumps([{"a": i, "b": str(i)} for i in range(200)])
        re.sub(r"(\\d+)", lambda m: m.group(1)[::-1], "12 345 " * 50)
        zlib.compress(b"abc" * 1000)
        sorted(range(500), key=lambda x: -x)
        hashlib.sha256(b"x" * 5000).digest()
for i in range(3): threading.Thread(target=work, args=(i,), daemon=True).start()
work(0)
"""
SQL = ("with recursive c(x) as (select 1 union all select x+1 from c where x<100000000) "
       "select sum(x*x%1013), group_concat(x%7) from c;")
# Debian's programs, each with a load that keeps it busy until it is killed.
PROGRAMS = {
    "bash": ["bash", "-c", "while :; do x=$((x+1)); y=${x//1/2}; done"],
    "dash": ["dash", "-c", "while :; do x=$((x+1)); done"],
    "perl": ["perl", "-e", "my %h; while (1) { $h{$_ % 997} = join ',', sort { $a <=> $b } "
             "map { $_ * 7 % 13 } 1..50 for 1..1000 }"],
    "python": ["/usr/bin/python3", "-c", PYTHON],
    "xz": ["sh", "-c", "cat /dev/urandom | exec xz -T2 -6 -c >/dev/null"],
    "gzip": ["sh", "-c", "exec gzip -9c </dev/urandom >/dev/null"],
    "openssl": ["openssl", "speed", "-seconds", "300", "rsa2048"],
    "sqlite3": ["sqlite3", ":memory:", SQL],
    "awk": ["awk", "BEGIN { while (1) { s = s \"x\"; "
            "if (length(s) > 500) { gsub(/x/, \"y\", s); s = \"\" } } }"],
    "sort": ["sh", "-c", "exec sort -n -S 64M </dev/urandom >/dev/null"],
    "gcc": ["sh", "-c", "f=$(gcc -print-prog-name=cc1); cd /tmp; while :; do "
            "(for i in $(seq 3000); do "
            "echo \"int f$i(int a,int*b){for(int i=0;i<a;i++)b[i]+=i*a+$i;return b[a];}\"; done) "
            "| $f -quiet -O2 -o /dev/null -; done"],
    "sleep": ["sleep", "1000"],
    "bc": ["sh", "-c", "echo 'scale=20000; 4*a(1)' | exec bc -lq"],
    "tar": ["sh", "-c", "while :; do tar cf - /usr/include /usr/bin 2>/dev/null | "
            "sha256sum >/dev/null; done"],
    "grep": ["sh", "-c", "exec grep -aEc '(a|b)+c[0-9]{3}(x|yz)*q' /dev/urandom"],
    "find": ["sh", "-c", "while :; do find /usr -name '*.so' -newer /etc/passwd >/dev/null; done"],
}


def descendants(pid):
    out = [pid]
    for p in out:
        try:
            with open(f"/proc/{p}/task/{p}/children") as f:
                out += [int(c) for c in f.read().split()]
        except OSError:
            pass
    return out


def stopped(pid, state):
    deadline = time.time() + 20
    while time.time() < deadline:
        try:
            states = {open(f"/proc/{pid}/task/{t}/stat").read().rsplit(")", 1)[1].split()[0]
                      for t in os.listdir(f"/proc/{pid}/task")}
        except OSError:
            return False
        if states == {state}:
            return True
        time.sleep(0.002)
    return False


def ours(what, tree=BUILD):
    """For each thread of a process or a core: the pcs of its frames, and how its stack ended."""
    out = subprocess.run([f"{tree}/prof-dump", "--all-threads", "--no-names", str(what)],
                         capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr
    stacks, tid = {}, None
    for line in out.stdout.splitlines():
        word = line.split()
        if word[0] == "thread":
            tid = int(word[1])
            stacks[tid] = ([], "complete")
        elif word[0] == "…":
            stacks[tid] = (stacks[tid][0], word[2])
        else:
            assert int(word[0]) == len(stacks[tid][0]), line
            stacks[tid][0].append(int(word[1], 16))
    return stacks


class Gdb:
    """A gdb that prints the stacks at each of many stops: for each thread, the pcs of its
    frames."""

    def __init__(self):
        self.process = subprocess.Popen(["gdb", "-nx", "-batch", "-iex",
                                         "set debuginfod enabled off", "-iex", "set auto-load off",
                                         # It unwinds by .eh_frame alone, as the walker does, and
                                         # does not read libc's debug file at each stop.
                                         "-iex", "set debug-file-directory /nonexistent", "-x",
                                         f"{HERE}/gdb_stacks.py"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, errors="replace")

    def ask(self, *words):
        print(*words, sep="\t", file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("STACKS"):
                answer = json.loads(line.removeprefix("STACKS"))
                if "error" in answer:
                    raise OSError(answer["error"])
                return {int(tid): pcs for tid, pcs in answer.items()}
        raise AssertionError("gdb has ended")

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def gdbs(what, core=None):
    """The same from gdb, for a process or a program's core."""
    gdb = Gdb()
    try:
        return gdb.ask("core", what, core) if core else gdb.ask("attach", what)
    finally:
        gdb.close()


@pytest.fixture
def started():
    processes = []
    yield processes
    for p in processes:
        kill(p)


def kill(process):
    for pid in reversed(descendants(process.pid)):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    process.wait()


def stop_and_compare(pid, gdb):
    """Pairs of (ours, gdb's) for each thread of a stopped process, or nothing if it had just
    gone."""
    try:
        os.kill(pid, signal.SIGSTOP)
        if not stopped(pid, "T"):
            return []
        mine, theirs = ours(pid), gdb.ask("attach", pid)
        return [(m, theirs.get(tid, [])) for tid, m in mine.items()]
    except OSError:
        return []
    finally:
        try:
            os.kill(pid, signal.SIGCONT)
        except OSError:
            pass


# This many stacks of each program.
@pytest.mark.parametrize("count", of_which_check_has([8, 26], [8]))
def test_every_stack_of_sixteen_programs_equals_gdbs(started, count):
    rng = random.Random(1)
    equal, differ, seen = 0, [], {}
    for name, argv in PROGRAMS.items():
        gdb = Gdb()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        started.append(process)
        time.sleep(0.3)
        seen[name] = 0
        deadline = time.time() + 30
        while seen[name] < count:
            assert process.poll() is None and time.time() < deadline, f"{name}: {seen[name]} stacks"
            time.sleep(rng.random() / 50)
            pid = rng.choice(descendants(process.pid))
            for (pcs, reason), theirs in stop_and_compare(pid, gdb):
                seen[name] += 1
                # At the first instruction of a thread the return address is 0: gdb shows a frame
                # there, and the walker says that there is no caller.
                if (pcs == theirs and reason == "complete"
                        or pcs + [0] == theirs and reason == "no-root"):
                    equal += 1
                else:
                    differ.append((name, reason, [hex(p) for p in pcs], [hex(p) for p in theirs]))
        gdb.close()
        kill(process)
    print(f"{equal} stacks equal, {len(differ)} differ, over {seen}")
    assert not differ, "\n".join(map(str, differ[:60]))
    assert equal >= count * len(PROGRAMS)


TRACEME, SYSCALL, DETACH = 0, 24, 17  # enum __ptrace_request
LIBC = ctypes.CDLL(None)
LIBC.ptrace.argtypes = [ctypes.c_long] * 4


@pytest.mark.parametrize("stops", [0, 1, 2, 9, 20, 33])
def test_a_program_that_begins_is_walked_to_the_entry_of_its_loader(started, stops):
    """At its first instruction, and before and after system calls of ld.so. At the first
    instruction, the kernel reports that the process is in the system call execve."""
    p = subprocess.Popen(PROGRAMS["bash"], stdin=subprocess.DEVNULL,
                         preexec_fn=lambda: LIBC.ptrace(TRACEME, 0, 0, 0))
    started.append(p)
    os.waitpid(p.pid, 0)
    for _ in range(stops):
        LIBC.ptrace(SYSCALL, p.pid, 0, 0)
        os.waitpid(p.pid, 0)
    os.kill(p.pid, signal.SIGSTOP)
    LIBC.ptrace(DETACH, p.pid, 0, 0)
    assert stopped(p.pid, "T")
    ((pcs, reason),), (theirs,) = ours(p.pid).values(), gdbs(p.pid).values()
    assert (pcs, reason) == (theirs, "complete")
    assert len(pcs) == 1 if stops == 0 else len(pcs) > 1


@pytest.mark.parametrize("what", ["exec", "call"])
def test_a_sample_is_never_walked_with_anothers_mappings(what):
    """exec: the mappings from before an exec, published once more after it; call: leftovers of a
    sample whose walk the kernel refused."""
    p = subprocess.run([f"{BUILD}/tests/late", what], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stdout + p.stderr


# One request, so that the kernel's thread polls for the next one from then on.
POLLS = r"""
#include <linux/io_uring.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100000 };
	int fd = (int)syscall(SYS_io_uring_setup, 4, &p), shared = MAP_SHARED | MAP_POPULATE;
	if (fd < 0)
		return 1;
	char *sq = mmap(0, p.sq_off.array + 4 * p.sq_entries, PROT_READ | PROT_WRITE, shared, fd,
			IORING_OFF_SQ_RING);
	struct io_uring_sqe *e = mmap(0, p.sq_entries * sizeof(*e), PROT_READ | PROT_WRITE, shared,
				      fd, IORING_OFF_SQES);
	e[0].opcode = IORING_OP_NOP;
	*(uint32_t *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((uint32_t *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, fd, 1, 0, IORING_ENTER_SQ_WAKEUP, 0, 0);
	pause();
}
"""


def test_a_thread_of_io_uring_is_the_kernels_alone(tmp_path):
    subprocess.run(["gcc", "-xc", "-", "-o", tmp_path / "polls"], input=POLLS, text=True,
                   check=True)
    out = tmp_path / "o.folded"
    program = subprocess.Popen([tmp_path / "polls"])
    try:
        time.sleep(0.5)
        assert program.poll() is None, (
            "io_uring_setup is refused: it takes CONFIG_IO_URING, "
            "and 0 in /proc/sys/kernel/io_uring_disabled")
        p = subprocess.run([f"{BUILD}/profpipe", "record", "-F", "199", "-d", "1", "-p",
                            str(program.pid), "-o", out], capture_output=True, text=True,
                           timeout=60)
    finally:
        program.kill()
        program.wait()
    stacks = out.read_text().splitlines()
    assert p.returncode == 0 and "(100.00 %)" in p.stderr, p.stderr
    assert any("io_sq_thread" in stack for stack in stacks)
    assert not [stack for stack in stacks if "anon" in stack or "truncated" in stack]
