#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run tests/step over programs of many languages and compilers.

    programs.py [--markdown] [--quick] [NAME]...

Builds and steps each program. A row shows how many stacks were compared with the shadow, how many
were wrong, and how many of these were called complete. Programs that are not installed are listed
and fail nothing. The exit status is 1 if a program has a stack that was wrong but called complete,
did not build, or was compared at fewer than 1,000 places.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "programs")
BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", os.path.join(HERE, "../../build/release")))
os.environ["GOCACHE"] = os.path.join(os.path.dirname(BUILD), "go-cache")


@dataclass
class Program:
    """A program to be stepped.

    Without source and build, the program is installed. In build and run, {s} is the source, {o} the
    program that is built, {d} its folder. free: seconds that it runs freely before it is stepped;
    with 0 it is stepped from its first instruction. needs: a shell command that fails where
    something is missing which build and run do not begin with. unsure: the share of stacks that the
    oracle itself may get wrong, since the program writes into its own signal frames."""

    name: str
    source: str = ""
    build: str = ""
    run: str = "{o} 2"
    free: float = 0
    steps: int = 400000
    needs: str = ""
    quick: bool = False
    options: str = ""
    unsure: float = 0


MEDIA = "ffmpeg -nostdin -v error -f lavfi -i testsrc=size={}:rate=25:duration=10 -pix_fmt yuv420p"
TEXT = f"cat {SOURCES}/work* /usr/lib/x86_64-linux-gnu/libc.so.6 /bin/bash > {{d}}/text"
PROGRAMS = [
    Program("C, gcc -O0", "work.c", "gcc -O0 -o {o} {s}"),
    Program("C, gcc -O2 -static", "work.c", "gcc -O2 -static -o {o} {s}", quick=True),
    Program("C, gcc -O3 -flto", "work.c", "gcc -O3 -flto -static -o {o} {s}"),
    Program("C, clang -O3 -fomit-frame-pointer", "work.c",
            "clang -O3 -fomit-frame-pointer -static -o {o} {s}", quick=True),
    Program("C, tcc", "work.c", "tcc -o {o} {s}"),
    Program("C, musl, static", "work.c", "musl-gcc -O2 -static -o {o} {s}"),
    Program("C++ exceptions, g++ -O2 -static", "work.cpp", "g++ -O2 -static -o {o} {s}",
            quick=True),
    Program("C++ exceptions, clang++ -O2", "work.cpp", "clang++ -O2 -static -o {o} {s}"),
    Program("C++20 coroutines, g++", "coroutine.cpp", "g++ -std=c++20 -O2 -static -o {o} {s}"),
    Program("C++ fibers, boost.context", "fiber.cpp",
            "g++ -std=c++17 -O2 -static -o {o} {s} -lboost_context", "{o} 40",
            needs="test -f /usr/include/boost/context/fiber.hpp && "
            "ld -lboost_context -o /dev/null"),
    Program("Objective-C, gcc", "work.m", "gcc -std=gnu17 -fobjc-exceptions -O2 -o {o} {s} -lobjc",
            "{o}", 0.5, needs="gcc -print-prog-name=cc1obj | grep -q /"),
    Program("Rust -O", "work.rs", "rustc -O -C target-feature=+crt-static -o {o} {s}", quick=True),
    # Single steps are so slow that the runtime preempts the goroutine all the time. Its signal
    # handler rewrites the interrupted context in two steps (docs/limits.md), and what it does then
    # hides the rest of the stack from the oracle.
    Program("Go", "work.go", "go build -buildvcs=false -o {o} {s}",
            "env GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 {o}", 0.3, quick=True),
    Program("Go -race", "work.go", "go build -buildvcs=false -race -o {o} {s}",
            "env GOMAXPROCS=1 {o}", 0.5),
    Program("Go with cgo", "cgo/cgo.go", "go build -buildvcs=false -o {o} {s}",
            "env GOMAXPROCS=1 {o}", 0.5),
    Program("Ada, gnat -O2", "work.adb", "gnatmake -q -O2 -D {d} -o {o} {s}", "{o}", 0.5),
    Program("Fortran, gfortran -O2", "work.f90", "gfortran -O2 -J {d} -o {o} {s}", "{o}", 0.5),
    Program("D, gdc -O2", "work.d", "gdc -O2 -o {o} {s}", "{o}", 0.5),
    Program("D, ldc2 -O2", "work.d", "ldc2 -O2 -od={d} -of={o} {s}", "{o}", 0.5),
    Program("Pascal, fpc -O2, stripped", "work.pas", "fpc -O2 -Xs -v0 -FE{d} -o{o} {s}", "{o}",
            0.5),
    Program("Modula-2, gm2", "work.mod", "cd {d} && gm2 -O2 -flibs=m2pim,m2iso -o {o} {s}", "{o}",
            0.5),
    Program("Haskell, ghc -O1", "work.hs", "ghc -v0 -O1 -outputdir {d} -o {o} {s}", "{o}", 0.5),
    Program("OCaml 4", "work.ml", "cp {s} {d}/work.ml && ocamlopt -o {o} {d}/work.ml", "{o}", 0.5,
            needs="ocamlopt -version | grep -q ^4"),
    Program("OCaml 5, effects", "effects.ml",
            "cp {s} {d}/effects.ml && ${OCAML5:-ocamlopt} -o {o} {d}/effects.ml", "{o}", 0.5,
            needs="${OCAML5:-ocamlopt} -version | grep -q ^5"),
    Program("OCaml 5", "work.ml", "cp {s} {d}/work.ml && ${OCAML5:-ocamlopt} -o {o} {d}/work.ml",
            "{o}", 0.5, needs="${OCAML5:-ocamlopt} -version | grep -q ^5"),
    Program("Common Lisp, SBCL", "work.lisp", "", "sbcl --script {s}", 1.5, unsure=0.002),
    Program("Common Lisp, ECL", "work.lisp", "", "ecl --shell {s}", 1.5),
    Program("Scheme, Chicken", "work.scm", "csc -O2 -o {o} {s}", "{o}", 0.5),
    Program("Scheme, Gambit", "work.scm", "cp {s} {d}/work.scm && gsc -exe -o {o} {d}/work.scm",
            "{o}", 0.5),
    Program("Scheme, Guile", "work.scm", "", "guile --no-auto-compile {s}", 1.5),
    Program("Nim", "work.nim", "nim c -d:release --hints:off --nimcache:{d}/cache -o:{o} {s}",
            "{o}", 0.5),
    Program("Vala", "work.vala", "valac -X -O2 --pkg gio-2.0 -d {d} -o program {s}", "{o}", 0.5),
    Program("Crystal", "work.cr", "crystal build --release -o {o} {s}", "{o}", 0.5),
    Program("Erlang", "work.erl", "erlc -o {d} {s}", "erl -noshell +S 1:1 -pa {d} -s work main", 2),
    Program("Perl", "work.pl", "", "perl {s}", 0.5),
    Program("Python", "work.py", "", "/usr/bin/python3 {s}", 0.5, quick=True),
    Program("Ruby", "work.rb", "", "ruby {s}", 1),
    Program("PHP", "work.php", "", "php {s}", 0.5),
    Program("Lua", "work.lua", "", "lua {s}", 0.5),
    Program("LuaJIT", "work.lua", "", "luajit {s}", 0.5),
    Program("LuaJIT -joff", "work.lua", "", "luajit -joff {s}", 0.5),
    Program("Tcl", "work.tcl", "", "tclsh {s}", 0.5),
    Program("awk, gawk", "work.awk", "", "gawk -f {s}", 0.5, quick=True),
    Program("shell, bash", "work.sh", "", "bash {s}", 0.5, quick=True),
    Program("JavaScript, node --jitless", "work.js", "", "node --jitless {s}", 2, unsure=0.0002),
    Program("JavaScript, node", "work.js", "", "node {s}", 2),
    Program("Java, -Xint", "Work.java", "javac -d {d} {s}", "java -Xint -cp {d} Work", 3),
    Program("Java, -XX:+PreserveFramePointer", "Work.java", "javac -d {d} {s}",
            "java -XX:+PreserveFramePointer -cp {d} Work", 3),
    Program("SQLite", "work.sql", "", "sqlite3 {d}/db < {s}", 0.5),
    Program("PostgreSQL", "",
            "initdb=$(ls /usr/lib/postgresql/*/bin/initdb | tail -n 1) && chown postgres {d} && "
            "setpriv --reuid postgres --regid postgres --clear-groups "
            "$initdb -D {d}/db >/dev/null && "
            "echo 'select count(*), max(md5(i::text)) from generate_series(1, 100000000) i "
            "where i * 7919::bigint % 1009 > 5 group by i % 7 order by 2' > {d}/sql",
            "setpriv --reuid postgres --regid postgres --clear-groups "
            "sh -c 'exec $(ls /usr/lib/postgresql/*/bin/postgres | tail -n 1) "
            "--single -D {d}/db postgres < {d}/sql'", 1,
            needs="ls /usr/lib/postgresql/*/bin/initdb"),
    Program("OpenSSL, AES-GCM", "", "", "openssl speed -seconds 60 -evp aes-256-gcm", 1),
    Program("OpenSSL, ECDSA P-384", "", "", "openssl speed -seconds 60 ecdsap384", 1),
    Program("OpenSSL, RSA", "", "", "openssl speed -seconds 60 rsa2048", 1),
    Program("gzip", "", TEXT, "sh -c 'exec gzip -9 < {d}/text'", 0.1),
    Program("xz", "", TEXT, "sh -c 'exec xz -9 -T1 < {d}/text'", 0.3),
    Program("zstd", "", TEXT, "sh -c 'exec zstd -19 --single-thread < {d}/text'", 0.3),
    Program("x264", "", MEDIA.format("320x240") + " {d}/v.y4m",
            "x264 --quiet --threads 1 -o /dev/null {d}/v.y4m", 0.1, needs="which x264"),
    Program("dav1d", "",
            MEDIA.format("1280x720") + " -c:v libsvtav1 -preset 12 {d}/v.ivf 2>/dev/null",
            "dav1d -q --threads 1 -i {d}/v.ivf -o /dev/null --muxer null", 0.05,
            needs="which dav1d"),
    Program("ffmpeg, H.264", "", MEDIA.format("320x240") + " -c:v libx264 {d}/v.mp4",
            "ffmpeg -nostdin -v error -threads 1 -stream_loop 100 -i {d}/v.mp4 -f null -", 0.5),
    Program("FFmpeg's FFT", "fft.c", "gcc -O2 -o {o} {s} -lavutil", "{o}", 0.5,
            needs="test -n \"$(find /usr/include -path '*libavutil/tx.h')\""),
    Program("git", "", "git init -q {d}/r && cp " + SOURCES + "/work* {d}/r && cd {d}/r && "
            "git add . && git -c user.name=n -c user.email=e commit -qm m",
            "git -C {d}/r --no-pager log -p --stat"),
    Program("gcc's cc1", "", "gcc -E -o {d}/x.i -x c " + SOURCES + "/work.c",
            "sh -c 'exec $(gcc -print-prog-name=cc1) -quiet -O2 -o /dev/null {d}/x.i'", 0.05),
    Program("clang", "", "", "sh -c 'exec clang -cc1 -triple x86_64-linux-gnu -emit-obj -O2 "
            "-fexceptions -fcxx-exceptions -x c++ -std=c++17 -I/usr/include/c++/12 "
            "-I/usr/include/x86_64-linux-gnu/c++/12 "
            "-internal-isystem $(clang -print-resource-dir)/include "
            "-internal-isystem /usr/include/x86_64-linux-gnu -internal-isystem /usr/include "
            "-o /dev/null " + SOURCES + "/work.cpp'", 0.1),
]


def missing(p):
    first = [re.sub(r"^(env [A-Z]+=\S+ |cd \S+ && |cp \S+ \S+ && )+", "", c).split()[0]
             for c in (p.build, p.run) if c]
    for word in first:
        if not re.search(r"[{$=]|^(sh|cat|setpriv)$", word) and not shutil.which(word):
            return word
    if p.needs and subprocess.run(["sh", "-c", p.needs], capture_output=True).returncode:
        return p.needs
    return None


def row_of(p, folder, steps=None, every=5, seconds=60, late=0.0):
    """Returns a dictionary of step's figures, or {"error": text}. late: seconds that a program runs
    freely in addition."""
    d = tempfile.mkdtemp(dir=folder)
    os.chmod(d, 0o755)
    words = {"{s}": os.path.join(SOURCES, p.source), "{o}": f"{d}/program", "{d}": d}

    def filled(text):
        return re.sub(r"\{[sod]\}", lambda m: words[m[0]], text)
    if p.build:
        b = subprocess.run(["sh", "-c", filled(p.build)], capture_output=True, text=True,
                           timeout=300, cwd=d)
        if b.returncode:
            return {"error": f"does not build: {b.stderr[-300:]}"}
    run = filled(p.run)
    argv = ["sh", "-c",
            f"exec {run}"] if "<" in run and not run.startswith(("sh", "setpriv")) else run
    step = [f"{BUILD}/tests/step", "-k", str(every), "-m", str(steps or p.steps), "-t",
            str(seconds)] + (["-f", f"{p.free + late:g}"] if p.free else []) + p.options.split()
    command = " ".join(step) + (f" sh -c '{argv[2]}'" if isinstance(argv, list) else " " + argv)
    out = subprocess.run(["sh", "-c", command], capture_output=True, timeout=seconds * 3 + 60,
                         cwd=d, stdin=subprocess.DEVNULL)
    text = out.stdout.decode(errors="replace")
    end = re.search(r"steps \d+ checked .*", text)
    if not end:
        return {"error": (out.stderr.decode(errors="replace") + text)[-300:]}
    row = {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", end[0])}
    row["complete"] = float(re.search(r"([0-9.]+) % complete", text)[1])
    row["text"] = text
    row["command"] = command
    return row


def rows_of(p, folder, steps, runs):
    """The sums of several runs, each of which stepped a program at a different time of its life."""
    rows = []
    for i in range(runs if p.free else 1):
        rows.append(row_of(p, folder, steps, late=i * 0.45))
        if "error" in rows[-1]:
            return rows[-1]
    whole = {k: sum(r[k] for r in rows) for k, v in rows[0].items() if isinstance(v, int)}
    whole["complete"] = sum(r["complete"] * r["checked"] for r in rows) / max(1, whole["checked"])
    return whole | {k: "\n".join(r[k] for r in rows) for k in ("text", "command")}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--markdown", action="store_true")
    a.add_argument("--quick", action="store_true")
    a.add_argument("--steps", type=int, help="instructions of each program")
    a.add_argument("--runs", type=int, default=1,
                   help="how often a program runs that is stepped from the middle, each time at "
                   "another moment")
    a.add_argument("--keep", metavar="DIR", help="where what was built and what step said is kept")
    a.add_argument("names", nargs="*", help="programs whose names contain one of these")
    o = a.parse_args()
    wanted = [p for p in PROGRAMS if (not o.quick or p.quick)
              and (not o.names or any(n in p.name for n in o.names))]
    absent, bad, table = [], 0, []
    folder = o.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    line = ("| {} | {} | {} | {} | {} | {} | {} |" if o.markdown
            else "{:36} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}")
    print(line.format("program", "steps", "stacks", "wrong", "false", "unknown", "complete"))
    if o.markdown:
        print("|---" + "|--:" * 6 + "|")
    present = []
    for p in wanted:
        lacks = missing(p)
        if lacks:
            absent.append(f"{p.name} ({lacks})")
        else:
            present.append(p)
    # Each is stepped on a cpu of its own.
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    for p, r in zip(present, pool.map(lambda p: rows_of(p, folder, o.steps, o.runs), present)):
        if "error" in r:
            bad += 1
            print(f"{p.name}: {r['error']}", flush=True)
            continue
        if o.keep:
            with open(os.path.join(folder, re.sub(r"\W+", "-", p.name) + ".txt"), "w") as f:
                f.write(r["command"] + "\n" + r["text"])
        wrong = r["wrong"] + r["guessed"]
        bad += r["false"] > p.unsure * r["checked"] or r["checked"] < 1000
        table.append(r)
        print(line.format(p.name, r["steps"], r["checked"], wrong, r["false"],
                          f"{100 * r['unknown'] / max(1, r['checked']):.1f} %",
                          f"{r['complete']:.2f} %"), flush=True)
    print(f"{'' if o.markdown else ''}\n{len(table)} programs, "
          f"{sum(r['checked'] for r in table)} stacks, "
          f"{sum(r['wrong'] + r['guessed'] for r in table)} wrong, "
          f"{sum(r['false'] for r in table)} wrong but called complete.")
    if absent:
        print("Not installed here: " + "; ".join(absent) + ".")
    if not o.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad or not table else 0


if __name__ == "__main__":
    sys.exit(main())
