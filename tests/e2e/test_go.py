# SPDX-License-Identifier: Apache-2.0
"""Stacks of Go programs: compared with the program's own runtime and with the DWARF of an
unstripped one, and live, under loads that change stacks."""
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest

from conftest import GO_CACHE, few, record, walked_live

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))
DEBIAN = "/usr/lib/go/bin/go"
COMMAND = DEBIAN if os.path.exists(DEBIAN) else shutil.which("go")

# "stack" prints its stack as the runtime reports it, and stops; the others are loads.
GO = r"""
package main

%(cgo)s
import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

type tree struct{ l, r *tree }
type walker interface{ walk(n int) int }
type wide struct{ v [100]int }

var sink interface{}

func where() int {
	pcs := make([]uintptr, 2000)
	text := strconv.Itoa(syscall.Gettid()) + "\n"
	for _, pc := range pcs[:runtime.Callers(1, pcs)] {
		name := runtime.FuncForPC(pc-1).Name()
		text += strconv.FormatUint(uint64(pc), 16) + " " + name + "\n"
	}
	os.Stdout.WriteString(text)
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	return 1
}

func (w *wide) walk(n int) int {
	w.v[n%%100] = n
	return deep(n, func() int { return where() + w.v[n%%100] })
}

func deep(n int, f func() int) int {
	if n == 0 {
		return f() + 1
	}
	return deep(n-1, f) + 1
}

func deferred(w walker) (r int) {
	defer func() { r = w.walk(300) }()
	return 0
}

func burn() int {
	s := 0
	for i := 0; i < 20000; i++ {
		s += i * i
	}
	return s
}

func grown(n int) *tree {
	if n == 0 {
		return &tree{}
	}
	return &tree{grown(n - 1), grown(n - 1)}
}

func collect() {
	for {
		sink = grown(10)
	}
}

func channels() {
	a, b := make(chan int), make(chan int)
	go func() {
		for v := range a {
			b <- v + burn()
		}
	}()
	for {
		a <- 1
		<-b
		runtime.Gosched()
	}
}

func stacks() {
	for {
		done := make(chan int)
		go func() { done <- deep(1500, burn) }()
		<-done
	}
}

func traces() {
	b := make([]byte, 4096)
	deep(20, func() int {
		for {
			runtime.Stack(b, false)
		}
	})
}

func threads() {
	for {
		done := make(chan int)
		go func() { runtime.LockOSThread(); done <- 1 }()
		<-done
	}
}

func clock() {
	for {
		sink = time.Since(time.Now())
	}
}

func main() {
	loads := map[string]func(){"collect": collect, "channels": channels, "stacks": stacks,
		"clock": clock, "traces": traces, "threads": threads, "c": c}
	if os.Args[1] == "stack" {
		runtime.LockOSThread()
		deferred(new(wide))
		return
	}
	if os.Args[1] == "stack-c" {
		runtime.LockOSThread()
		cStack()
		return
	}
	go loads[os.Args[1]]()
	if len(os.Args) > 2 {
		time.Sleep(50 * time.Millisecond)
		return
	}
	time.Sleep(time.Hour)
}
"""
WITHOUT_C = "func c() {}\nfunc cStack() {}\n"
CGO = r"""
/*
#include <stdlib.h>
extern int back(int n, int stop);
static __attribute__((noinline)) int call(int n, int stop) { return back(n, stop) + 1; }
static int order(const void *a, const void *b) { return back(0, 0) + *(int *)a - *(int *)b; }
static __attribute__((noinline)) int sort(void)
{
	int v[] = { 3, 1, 2, 0, 5, 4 };
	qsort(v, 6, sizeof v[0], order);
	return v[0];
}
*/
import "C"
"""
WITH_C = r"""
//export back
func back(n, stop C.int) C.int {
	if n > 0 {
		return C.call(n-1, stop)
	}
	if stop > 0 {
		return C.int(where())
	}
	deep(20, func() int { return 1 })
	return C.int(burn())
}
//export run
func run(ms C.int) {
	if ms > 0 {
		time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { os.Exit(0) })
	}
	go collect()
	go stacks()
	c()
}
func cStack() { deep(10, func() int { return int(C.call(3, 1)) }) }
func c() {
	for {
		C.call(2, 0)
		C.sort()
	}
}
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A function that builds the program: `c` with cgo, so linked by gcc."""
    folder, names = tmp_path_factory.mktemp("go"), {}

    def build(c=False, *args):
        key = (c, *args)
        if key not in names:
            at = folder / str(len(names))
            at.mkdir()
            (at / "main.go").write_text(GO % {"cgo": CGO if c else ""}
                                        + (WITH_C if c else WITHOUT_C))
            env = dict(os.environ, GO111MODULE="off", GOFLAGS="", CGO_ENABLED=str(int(c)),
                       GOCACHE=GO_CACHE, HOME=str(folder), GOTOOLCHAIN="local")
            env.pop("GOROOT", None)
            p = subprocess.run([COMMAND, "build", "-gcflags=-l", *args, "-o", "go", "main.go"],
                               cwd=at, env=env, capture_output=True, text=True, timeout=120)
            assert p.returncode == 0, p.stderr
            names[key] = at / "go"
        return names[key]

    return build


def bare(program):
    """A copy without symbols, DWARF, and section headers."""
    out = program.with_suffix(".bare")
    subprocess.run(["strip", "--strip-all", "-o", out, program], check=True)
    data = bytearray(out.read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[58:64] = struct.pack("<HHH", 0, 0, 0)
    out.write_bytes(data)
    return out


def stopped_stacks(program, mode):
    """Returns two lists of (pc, name) for the thread that stopped the process: the runtime's, and
    prof-dump's."""
    p = subprocess.Popen([program, mode], stdout=subprocess.PIPE, text=True)
    try:
        assert os.waitpid(p.pid, os.WUNTRACED)[1] & 0xff == 0x7f
        os.set_blocking(p.stdout.fileno(), False)
        tid, *said = p.stdout.read().splitlines()
        out = subprocess.run([f"{BUILD}/prof-dump", "--all-threads", "--no-inlines", str(p.pid)],
                             capture_output=True, text=True, timeout=60)
    finally:
        p.kill()
        p.wait()
    assert out.returncode == 0, out.stderr
    ours = re.search(rf"^thread {tid}\n((?:[ \d].*\n)*)", out.stdout, re.M)[1]
    assert "truncated:" not in ours, ours
    frames = re.findall(r"^\d+ 0x([0-9a-f]+) (\S+)", ours, re.M)
    return ([(int(pc, 16), name) for pc, name in map(str.split, said)],
            [(int(pc, 16), name) for pc, name in frames])


@pytest.mark.parametrize("variant", [
    "whole", "bare", pytest.param("pie", marks=pytest.mark.check_all)])
def test_a_stack_equals_the_runtimes_report(built, variant):
    program = built(False, "-buildmode=pie") if variant == "pie" else built()
    said, ours = stopped_stacks(bare(program) if variant == "bare" else program, "stack")
    assert len(said) > 305 and said[-1][1] == "runtime.goexit"
    # Only the innermost frame has moved, from Callers to Kill.
    assert [pc for pc, _ in ours][-len(said) + 1:] == [pc for pc, _ in said][1:]
    assert len(ours) - len(said) < 5


def test_a_stack_goes_on_from_c_to_go_and_from_go_to_c(built):
    said, ours = stopped_stacks(built(True), "stack-c")
    mine = [pc for pc, name in ours if name.startswith("main.")]
    assert mine[1:] == [pc for pc, name in said if name.startswith("main.")][1:]
    assert len(mine) > 15
    names = [name for _, name in ours]
    assert names.count("call") == 4 and names[-2:] == ["runtime.main", "runtime.goexit"]


@pytest.mark.parametrize("load", ["collect", "channels", "stacks", "clock", "c"])
def test_stacks_of_a_load_are_complete(built, load):
    samples, complete, said = walked_live([built(load == "c"), load])
    assert samples > 20 and samples - complete <= 1 + samples / 100, said


RUN = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).run(int(sys.argv[2]))"


@pytest.mark.check_all
def test_stacks_of_a_library_are_complete(built):
    """In such a program the offset of g is known only at run time."""
    samples, complete, said = walked_live([sys.executable, "-c", RUN,
                                           built(True, "-buildmode=c-shared"), "0"])
    assert samples > 20 and samples - complete <= 1 + samples / 100, said


def test_c_that_go_linked_has_rows(built):
    """Go's linker drops the call frame information of C objects, and names all functions of an
    object as if they were one."""
    samples, complete, said = walked_live([built(True, "-ldflags=-linkmode=internal"), "threads"])
    assert samples > 20 and samples - complete <= 1 + samples / 50, said


@pytest.mark.parametrize("load", [
    "traces", "stacks", "clock", "c", pytest.param("library", marks=pytest.mark.check_all)])
def test_first_samples_also_have_the_stacks_that_were_left(built, tmp_path, load):
    """The program is new, and ends before its rows arrive, so each sample carries its stack."""
    if load == "library":
        run, program = f"$4 -c '{RUN}' $2$i 50", built(True, "-buildmode=c-shared")
    else:
        run, program = '"$2$i" "$3" briefly', built(load == "c")
    again = f'for i in $(seq 12); do cp "$1" "$2$i"; echo >> "$2$i"; {run}; done'
    stacks = record(tmp_path, "-F", "997",
                    command=["sh", "-c", again, "sh", program, tmp_path / "first", load,
                             sys.executable]).stacks
    mine = [(s, n) for s, n in stacks if s[0].startswith("first")
            or any("runtime." in f for f in s)]
    cut = [(s, n) for s, n in mine
           if s[1] in ("[truncated: stack-unreadable]", "[truncated: copy-end]",
                       "[truncated: unsupported-rule]")]
    assert sum(n for _, n in mine) > 50
    assert sum(n for _, n in cut) <= few(sum(n for _, n in mine), 0.02), cut


def test_rows_agree_with_dwarf(built):
    program = built()
    rows = subprocess.run([f"{BUILD}/prof-deltas", "--registers", program], capture_output=True,
                          text=True, timeout=60)
    oracle = subprocess.run([f"{BUILD}/tests/cfi-oracle", program], input=rows.stdout,
                            capture_output=True, text=True, timeout=60)
    figures = {k: int(v) for k, v in re.findall(r" ([a-z]+)=(\d+)", oracle.stdout.splitlines()[-1])}
    assert figures["disagreements"] == 0, oracle.stdout
    # Go's own .debug_frame does not describe changes of stacks.
    assert figures["derived"] > 5000 and figures["overruled"] < 100, oracle.stdout


def test_asyncpreempt_is_marked_as_an_interruption(built):
    program = built()
    symbols = subprocess.run(["nm", "--defined-only", program], capture_output=True,
                             text=True).stdout
    at = {l.split()[-1]: int(l.split()[0], 16) for l in symbols.splitlines()}
    rows = subprocess.run([f"{BUILD}/prof-deltas", bare(program)], capture_output=True, text=True,
                          timeout=60).stdout
    marked = {int(l.split()[0], 16) for l in rows.splitlines() if " interrupts " in l}
    assert marked and at["runtime.asyncPreempt.abi0"] == min(marked), marked


def test_a_go_program_has_its_rows_at_the_least_memory_limit():
    """At --memory-limit 64M prof-deltas may allocate some 13 MiB. The go command itself once had no
    rows then, and its stacks had no root."""
    if not COMMAND:
        pytest.skip("there is no Go")
    program = os.path.realpath(COMMAND)
    free = subprocess.run([f"{BUILD}/prof-deltas", "--stats", program], capture_output=True,
                          text=True)
    least = subprocess.run(["prlimit", f"--data={12 << 20}", f"{BUILD}/prof-deltas", "--stats",
                            program], capture_output=True, text=True)
    rows = [re.search(r"rows=(\d+) rules=(\d+)", p.stdout) for p in (free, least)]
    assert rows[0] and rows[1], (free, least)
    assert int(rows[0][1]) > 10000 and rows[0].groups() == rows[1].groups(), (free, least)
