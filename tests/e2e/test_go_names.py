# SPDX-License-Identifier: Apache-2.0
"""prof-symd on Go programs without symbols: compared with the program's own runtime, and with the
DWARF of an unstripped twin."""
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import GO_CACHE, symbolized

BUILD = Path(os.environ.get("PROFPIPE_BUILD", "build/release")).resolve()
SYMD = BUILD / "prof-symd"

# where prints the frames of its stack as the runtime reports them: inlined calls, closures, generic
# functions, methods called through an interface, a deferred call.
GO = r"""
package main

%(import_c)s
import (
	"os"
	"runtime"
	"strconv"
)

type shape interface{ area(n int) float64 }
type square struct{ side float64 }
type circle struct{ r float64 }
type number interface{ ~int | ~float64 }

func mul(a, b float64) float64 { return a * b }
func add(a, b float64) float64 { return mul(a, b) + b }

//go:noinline
func most[T number](v []T) T {
	m := v[0]
	for _, x := range v {
		if x > m {
			m = x
		}
	}
	inlined()
	return m
}

func (s square) area(n int) float64 { return deep(n) + add(s.side, s.side) }
func (c *circle) area(n int) float64 {
	f := func(x float64) float64 { return x + deep(n) }
	return f(c.r)
}

//go:noinline
func deep(n int) float64 {
	if n > 0 {
		return deep(n-1) + 1
	}
	most([]int{1, 3, 2})
	return most([]float64{1, 2})
}

func inner()   { where() }
func inlined() { inner() }

//go:noinline
func where() {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		os.Stdout.WriteString("frame " + strconv.FormatUint(uint64(f.PC), 16) + " " +
			f.Function + " " + f.File + ":" + strconv.Itoa(f.Line) + "\n")
		if !more {
			break
		}
	}
	os.Stdout.WriteString("end\n")
}

func main() {
	maps, _ := os.ReadFile("/proc/self/maps")
	os.Stdout.Write(maps)
	for _, s := range []shape{square{2}, &circle{3}} {
		s.area(2)
	}
	done := make(chan int)
	go func() {
		defer func() { recover(); where(); close(done) }()
		var m map[string]int
		m["a"] = 1
	}()
	<-done
	%(call_c)s
}
"""
C = r"""
/*
static __attribute__((noinline)) int in_c(int n) { volatile int x = n; return x * 3; }
*/
import "C"
"""


def run(*args, **kw):
    p = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    assert p.returncode == 0, p.stderr.decode()
    return p.stdout.decode()


def without_sections(path):
    """Strips like sstrip: no section headers at all."""
    out = Path(f"{path}-bare")
    data = bytearray(Path(path).read_bytes())
    data[0x28:0x30] = bytes(8)
    data[0x3C:0x40] = bytes(4)
    out.write_bytes(data)
    out.chmod(0o755)
    return out


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("go")
    env = {**os.environ, "GOCACHE": GO_CACHE, "GOFLAGS": "",
           "GOTOOLCHAIN": "local", "GO111MODULE": "auto", "CC": "gcc"}

    def build(name, cgo, *args):
        source = folder / name / f"{name}.go"
        source.parent.mkdir(exist_ok=True)
        source.write_text(GO % {"import_c": C if cgo else "", "call_c": "C.in_c(7)" if cgo else ""})
        out = folder / f"{name}-built"
        run("go", "build", *args, "-o", out, source.name, cwd=source.parent,
            env={**env, "CGO_ENABLED": str(int(cgo))})
        stripped = folder / f"{name}-stripped"
        shutil.copy(out, stripped)
        run("strip", stripped)
        return {"built": out, "stripped": stripped, "bare": without_sections(stripped)}

    made = {"exe": build("exe", False),
            "pie": build("pie", True, "-buildmode=pie", "-ldflags=-linkmode=external")}
    made["exe"]["unlinked"] = folder / "exe-unlinked"
    run("go", "build", "-ldflags=-s -w", "-o", made["exe"]["unlinked"], "exe.go",
        cwd=folder / "exe", env={**env, "CGO_ENABLED": "0"})
    return made


def lowest_address(path):
    data = Path(path).read_bytes()
    offset, = struct.unpack_from("<Q", data, 0x20)
    size, count = struct.unpack_from("<HH", data, 0x36)
    return min(struct.unpack_from("<Q", data, offset + i * size + 16)[0]
               for i in range(count) if struct.unpack_from("<I", data, offset + i * size)[0] == 1)


def stacks(path):
    """The stacks that the program prints: lists of (ELF address, function, file:line)."""
    out = run(path)
    start = next(int(line.split("-")[0], 16)
                 for line in out.splitlines() if line.endswith(str(path))
                 and line.split()[2] == "00000000")
    bias = start - lowest_address(path)
    found = []
    for part in out.split("end\n")[:-1]:
        lines = [line.split(" ", 2)[1:] for line in part.splitlines() if line.startswith("frame ")]
        found.append([(int(pc, 16) - bias, *rest.rsplit(" ", 1)) for pc, rest in lines])
    assert len(found) == 5, out
    return found


@pytest.mark.parametrize("kind,how",
                         [("exe", "built"), ("exe", "unlinked"), ("exe", "stripped"),
                          ("exe", "bare"), ("pie", "built"), ("pie", "stripped"), ("pie", "bare")])
def test_frames_equal_the_programs_own_report(programs, kind, how):
    path = programs[kind][how]
    seen = set()
    for stack in stacks(path):
        for (address, function, place), calls in zip(stack,
                                                     symbolized(path, [f[0] for f in stack])):
            # Up to Go 1.20, all frames of one physical frame have its address; later, each has its
            # own.
            assert (function, place) in calls, (hex(address), function, place, calls)
            assert calls[-1][0] == function or len(calls) > 1
            seen.add(function)
            seen.update(c[0] for c in calls[:-1])
    assert {"main.where", "main.inner", "main.inlined", "main.most[...]", "main.deep",
            "main.square.area", "main.(*circle).area.func1", "main.main.func1.1", "runtime.gopanic",
            "runtime.main", "runtime.goexit"} <= seen


@pytest.mark.parametrize("kind", ["exe", "pie"])
def test_calls_are_those_of_the_twins_dwarf(programs, kind):
    built = programs[kind]["built"]
    symbols = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tT] main\.\S+$", run("nm", "-S", built), re.M)
    ranges = [(int(a, 16), int(s, 16)) for a, s in symbols]
    addresses = [a for start, size in ranges for a in range(start, start + size)]
    assert len(addresses) > 500
    theirs = []
    for line in run("llvm-addr2line", "-f", "-i", "-p", "-a", "-e", built,
                    input="".join(f"{a:#x}\n" for a in addresses).encode()).splitlines():
        line = re.sub(r" \(discriminator \d+\)", "", line)
        if line.startswith(" (inlined by) "):
            theirs[-1].append(tuple(line[len(" (inlined by) "):].rsplit(" at ", 1)))
        elif line.startswith("0x"):
            theirs.append([tuple(line.split(": ", 1)[1].rsplit(" at ", 1))])
    ours = symbolized(programs[kind]["bare"], addresses)
    inlined = compared = 0
    for address, calls, twins in zip(addresses, ours, theirs, strict=True):
        # Padding has no line. The lines of code that the compiler generated are in no user's file.
        # Up to Go 1.19, DWARF leaves out functions that are inlined there.
        if calls[0][1].startswith("??") or any(
                "<autogenerated>" in c[1] or "_cgo_gotypes" in c[1] for c in calls):
            continue
        compared += 1
        inlined += len(calls) > 1
        # DWARF before Go 1.20 gives some outer calls the line of another statement. Names and the
        # innermost place are always right.
        assert [c[0] for c in calls] == [re.sub(r"\[.*\]", "[...]", re.sub(r"\.abi0$", "", c[0]))
                                         for c in twins], hex(address)
        assert calls[0][1] == twins[0][1], hex(address)
    assert compared > 500 and inlined > 50
    assert ours == symbolized(built, addresses)


def test_c_code_of_a_go_program_keeps_its_own_names(programs):
    built, stripped = programs["pie"]["built"], programs["pie"]["stripped"]
    c = [int(a, 16) for a in re.findall(r"^([0-9a-f]+) [tT] in_c$", run("nm", built), re.M)]
    assert len(c) == 1
    name, place = symbolized(built, [c[0] + 4])[0][-1]
    assert name == "in_c" and re.search(r"pie\.go:\d+$", place)
    assert symbolized(stripped, [c[0] + 4]) == [[("??", "??:0")]]
