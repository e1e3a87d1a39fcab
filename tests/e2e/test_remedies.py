# SPDX-License-Identifier: Apache-2.0
"""Runtimes without the option that helps: profpipe names the remedy (common/status/remedies.def),
and the remedy helps."""
import json
import re
import subprocess

import pytest

from conftest import of_which_check_has, profpipe, record

JAVA = """
public class Burn {
    static long x;
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    public static void main(String[] a) {
        long end = System.nanoTime() + (long)(Double.parseDouble(a[0]) * 1e9);
        while (System.nanoTime() < end) x += fib(25);
    }
}
"""
MONO = """
using System;
class Burn {
    static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
    static void Main(string[] a) {
        var end = DateTime.Now.AddSeconds(double.Parse(a[0]));
        long x = 0;
        while (DateTime.Now < end) x += Fib(25);
    }
}
"""
PYTHON = ("import sys, time\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
          "end = time.time() + float(sys.argv[1])\nwhile time.time() < end: fib(22)\n")
ERLANG = """
-module(burn).
-export([main/1]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
main(S) -> loop(erlang:monotonic_time(millisecond) + S * 1000).
loop(End) ->
    fib(22),
    case erlang:monotonic_time(millisecond) < End of true -> loop(End); false -> init:stop() end.
"""
NODE = ("function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\n"
        "const end = Date.now() + process.argv[2] * 1000\n"
        "while (Date.now() < end) fib(22)\n")
RUBY = ("def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)\n"
        "last = Time.now + ARGV[0].to_f\nfib(20) while Time.now < last\n")
PHP = ("<?php function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); } $end "
       "= microtime(true) + $argv[1]; while (microtime(true) < $end) fib(20);\n")
LUA = ("local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) "
       "end\nlocal last = os.clock() + tonumber(arg[1])\n"
       "while os.clock() < last do fib(22) end\n")
SML = """
fun fib n = if n < 2 then n else fib (n - 1) + fib (n - 2);
val stop = Time.+ (Time.now (), Time.fromSeconds 2);
fun loop () = if Time.< (Time.now (), stop) then (fib 22; loop ()) else ();
loop ();
"""
SCHEME = ("(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n"
          "(let loop ((i 0)) (if (< i 150) (begin (fib 22) (loop (+ i 1)))))\n")
PHP_JIT = ["-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1", "-d",
           "opcache.jit_buffer_size=64M", "-d", "opcache.file_update_protection=0"]
ERL = ["-noshell", "-eval", "burn:main(2)."]

GUILE = ["guile", "--no-auto-compile", "burn.scm"]
# A JVM that profpipe does not recognize by its name: it does not identify itself as others do.
# `burner` is the same under another name, like an embedded one.
JVM = ["sh", "-ec", """
javac Burn.java
home=$(dirname $(dirname $(readlink -f $(command -v java))))
mkdir -p jvm/bin jvm/lib/server
cp $home/bin/java jvm/bin/java
cp $home/bin/java jvm/bin/burner
for f in $home/conf $home/lib/*; do [ $f = $home/lib/server ] || ln -s $f jvm/lib/; done
mv jvm/lib/conf jvm/
sed s/gHotSpotVMStructs/gOtherVMsStructs_/ $home/lib/server/libjvm.so >jvm/lib/server/libjvm.so
"""]

# The source file, how it is built, the name in remedies.def, what is wrong, the command, and the
# command with the remedy.
RUNTIMES = {"java": ("Burn.java", JAVA, JVM, "java", "truncated",
                     ["jvm/bin/java", "-cp", ".", "Burn", "2"],
                     ["jvm/bin/java", "-XX:+PreserveFramePointer", "-cp", ".", "Burn", "2"]),
            "java-names": ("Burn.java", JAVA, JVM, "java", "with functions that have no name",
                           ["jvm/bin/java", "-XX:+PreserveFramePointer", "-cp", ".", "Burn", "2"],
                           ["sh", "-c",
                            "jvm/bin/java -XX:+PreserveFramePointer -cp . Burn 60 & sleep 2; "
                            "jcmd $! Compiler.perfmap && kill $!; wait"]),
            "mono": ("burn.cs", MONO, ["mcs", "burn.cs"], "mono",
                     "with functions that have no name", ["mono", "burn.exe", "2"],
                     ["mono", "--jitmap", "burn.exe", "2"]),
            "mono-cut": ("burn.cs", MONO, ["mcs", "burn.cs"], "mono", "truncated",
                         ["mono", "burn.exe", "2"], ["mono", "--interpreter", "burn.exe", "2"]),
            "pypy": ("burn.py", PYTHON, None, "pypy", "truncated", ["pypy3", "burn.py", "2"],
                     ["pypy3", "--jit", "off", "burn.py", "2"]),
            "erlang": ("burn.erl", ERLANG, ["erlc", "burn.erl"], "erlang",
                       "with functions that have no name", ["erl", *ERL],
                       ["erl", "+JPperf", "true", *ERL]),
            "node": ("burn.js", NODE, None, "node", "with functions that have no name",
                     ["node", "burn.js", "2"], ["node", "--perf-basic-prof", "burn.js", "2"]),
            "ruby": ("burn.rb", RUBY, None, "ruby", "truncated", ["ruby", "--yjit", "burn.rb", "2"],
                     ["ruby", "burn.rb", "2"]),
            "php": ("burn.php", PHP, None, "php", "truncated",
                    ["php", *PHP_JIT, "-d", "opcache.jit=tracing", "burn.php", "2"],
                    ["php", *PHP_JIT, "-d", "opcache.jit=off", "burn.php", "2"]),
            "jvm": ("Burn.java", JAVA, JVM, "java", "truncated",
                    ["jvm/bin/burner", "-cp", ".", "Burn", "2"],
                    ["env", "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer", "jvm/bin/burner", "-cp",
                     ".", "Burn", "2"]),
            "guile": ("burn.scm", SCHEME, None, "guile", "truncated", GUILE,
                      ["env", "GUILE_JIT_THRESHOLD=-1", *GUILE]),
            "luajit": ("burn.lua", LUA, None, "luajit", "truncated", ["luajit", "burn.lua", "2"],
                       ["luajit", "-joff", "burn.lua", "2"]),}


def costs(tmp_path, argv):
    """The figures of a recording: {(name, what): share of the samples}, the remedies' texts, and
    the rest."""
    got = record(tmp_path, "-F", "299", command=argv)
    said = {(r["name"], r["what"]): r for r in got.summary["remedies"]}
    for r in said.values():
        assert f"{r['name']}, {r['what']}: {r['remedy']}\n" in got.stderr, got.stderr
    return {key: r["samples"] / got.summary["samples"] for key, r in said.items()}, got


@pytest.mark.parametrize("runtime", of_which_check_has(RUNTIMES, ("java", "java-names", "php")))
def test_the_remedy_is_printed_and_helps(tmp_path, monkeypatch, runtime):
    name, text, make, who, what, without, mended = RUNTIMES[runtime]
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    if make:
        subprocess.run(make, check=True, capture_output=True)
    before, got = costs(tmp_path, without)
    assert before.get((who, what), 0) >= 0.25, (before, got.stderr)
    assert all(k in got.summary["remedies"][0]
               for k in ("name", "samples", "what", "remedy")), got.summary["remedies"]
    after, got = costs(tmp_path, mended)
    assert got.summary["samples"] >= 20, got.stderr
    assert after.get((who, what), 0) <= 0.6 * before[who, what], (before, after, got.stderr)


def test_a_remedy_that_was_applied_is_not_proposed(tmp_path):
    """LuaJIT's own assembly has a function whose table is wrong: no generated code is in these
    stacks."""
    share, got = costs(tmp_path,
                       ["luajit", "-joff", "-e",
                        "local t={} for i=1,3e6 do t[i%1000]={i,tostring(i)} end"])
    assert got.summary["samples"] >= 20 and not share, got.stderr


def test_problems_without_a_remedy_are_reported(tmp_path):
    (tmp_path / "burn.sml").write_text(SML)
    share, got = costs(tmp_path, ["poly", "--script", tmp_path / "burn.sml"])
    assert (share["poly", "truncated"] >= 0.3
            and "poly, truncated: no remedy is known" in got.stderr), got.stderr
    assert share["poly", "with functions that have no name"] >= 0.3, got.stderr


def test_erlangs_stacks_are_reported_as_without_a_remedy(tmp_path, monkeypatch):
    (tmp_path / "burn.erl").write_text(ERLANG)
    monkeypatch.chdir(tmp_path)
    subprocess.run(["erlc", "burn.erl"], check=True)
    share, got = costs(tmp_path, ["erl", *ERL])
    assert (share["erlang", "truncated"] >= 0.3
            and "erlang, truncated: no remedy is known" in got.stderr), got.stderr


def test_terminal_page_and_pprof_say_the_same(tmp_path):
    """For a recording with truncated stacks, sampled kernel threads, and one process more."""
    (tmp_path / "burn.lua").write_text(LUA)
    stream = tmp_path / "x.stream"
    p = profpipe("record", "-F", "299", "-d", "3", "-f", "stream", "-o", stream, "--summary",
                 tmp_path / "x.json", "--", "luajit", tmp_path / "burn.lua", "2")
    assert p.returncode == 0, p.stderr
    summary = json.loads((tmp_path / "x.json").read_text())
    share = re.search(r"stacks? complete \((.* %)\)", p.stderr)[1]
    assert float(share.split()[0]) == summary["complete_percent"] < 90, p.stderr
    assert profpipe("report", stream, "-o", tmp_path / "x.html").returncode == 0
    page = (tmp_path / "x.html").read_text()
    assert re.search(r'"complete":"(.*?)"', page)[1] == share
    assert json.loads(re.search(r'"remedy":(\[\[.*?\]\])', page)[1]) == [
        [r[k] for k in ("name", "remedy", "samples", "what")] for r in summary["remedies"]]
    assert re.search(r'"loss":"(.*?)"', page)[1] == summary["loss"] == "nothing was lost"
    assert profpipe("report", stream, "-f", "pprof", "-o", tmp_path / "x.pb.gz").returncode == 0
    comments = subprocess.run(["zcat", tmp_path / "x.pb.gz"], capture_output=True,
                              check=True).stdout
    scope = re.search(r", (of .*%\))", p.stderr)[1]
    assert (f"{summary['samples']} samples {scope}".encode() in comments
            and b"nothing was lost" in comments)
    assert all(f"remedy {r['name']}: {r['samples']} {r['what']}: {r['remedy']}".encode() in comments
               for r in summary["remedies"])
    assert "1 process and 1 thread" in scope
