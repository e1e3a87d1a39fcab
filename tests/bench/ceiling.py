#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attack a profiler's memory, and measure all of profpipe's memory meanwhile, ten times a second.

Each of LOADS makes the host odd in one way. Beside it runs an ordinary program whose stacks have to
stay whole. `ceiling.py [--limit MIB] [--seconds S] [--scale X] [NAME]...` runs the loads and prints
the peaks; tests/e2e/test_ceiling.py runs small ones and judges them."""
import argparse
import atexit
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import BUILD, tree  # noqa: E402

MIB = 1 << 20

# --- the meter ---


def fields(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


class Meter(threading.Thread):
    """Measures profpipe and its four tools ten times a second: PSS, the memory of their BPF maps,
    and the perf rings, which PSS leaves out."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.over = pid, threading.Event()
        self.peak, self.at_peak, self.peaks, self.looks = 0, {}, {}, 0
        self.names = {}

    def maps(self, pid):
        found = {}
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{fd}") == "anon_inode:bpf-map":
                        text = fields(f"/proc/{pid}/fdinfo/{fd}")
                        found[re.search(r"map_id:\s+(\d+)", text)[1]] = int(
                                re.search(r"memlock:\s+(\d+)", text)[1])
        return sum(found.values())

    def look(self):
        now = {}
        for p in tree(self.pid):
            name = self.names.get(p) or fields(f"/proc/{p}/comm").strip()
            if p != self.pid and not name.startswith("prof-"):
                continue
            self.names[p] = name
            m = re.search(r"^Pss: +(\d+)", fields(f"/proc/{p}/smaps_rollup"), re.M)
            now[name] = now.get(name, 0) + (int(m[1]) * 1024 if m else 0)
            if name == "prof-bpf":
                # A process that was just forked still has our name, and no map.
                now["maps"] = max(now.get("maps", 0), self.maps(p))
        total = sum(now.values())
        self.looks += 1
        for k, v in now.items():
            self.peaks[k] = max(self.peaks.get(k, 0), v)
        if total > self.peak:
            self.peak, self.at_peak = total, now

    def run(self):
        while not self.over.wait(0.1):
            with contextlib.suppress(OSError, TypeError):
                self.look()

    def stop(self):
        self.over.set()
        self.join()


# --- the loads ---

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static volatile unsigned long sink;
#define NAME2(a, b) a##b
#define NAME(a, b) NAME2(a, b)
#define STEP(n) \
	__attribute__((noinline, noclone)) static int NAME(step_, n)(unsigned long bits, int depth);
#define EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
EIGHT(STEP)
static int (*const steps[8])(unsigned long, int) = { step_0, step_1, step_2, step_3,
						     step_4, step_5, step_6, step_7 };
static unsigned long mix(unsigned long x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdul;
	x ^= x >> 33;
	return x;
}
#define BODY(n) \
	static int NAME(step_, n)(unsigned long bits, int depth) \
	{ \
		for (int i = 0; i < 2000; i++) \
			sink += i; \
		return depth ? steps[bits & 7](mix(bits + depth), depth - 1) + n : n; \
	}
EIGHT(BODY)

/* every sample another stack */
static int stacks(int argc, char **argv)
{
	int deep = argc > 2 ? atoi(argv[2]) : 100;

	for (unsigned long i = getpid();; i++)
		steps[i & 7](mix(i), deep + i % deep);
}

/* N executable mappings of FILE, no two of which are one, and code in the last that runs */
static int mappings(int argc, char **argv)
{
	int fd = open(argv[2], O_RDONLY), n = atoi(argv[3]), made = 0;
	off_t pages = lseek(fd, 0, SEEK_END) / 4096;

	for (int i = 0; i < n; i++)
		made += mmap(NULL, 4096, PROT_READ | PROT_EXEC,
			     i & 1 ? MAP_PRIVATE : MAP_PRIVATE | MAP_ANONYMOUS, i & 1 ? fd : -1,
			     i & 1 ? (off_t)(i * 7 % pages) * 4096 : 0) != MAP_FAILED;
	printf("%d\n", made);
	fflush(stdout);
	for (;;)
		steps[0](made, 20);
}

/* N processes a second out of the files in argv[3...], until killed */
static int shorts(int argc, char **argv)
{
	int rate = atoi(argv[2]);
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0;; i++) {
		char *args[] = { argv[3 + i % (argc - 3)], NULL };
		pid_t pid;

		if (posix_spawn(&pid, args[0], NULL, NULL, args, environ) == 0)
			while (waitpid(-1, NULL, i % 16 ? WNOHANG : 0) > 0)
				;
		next.tv_nsec += 1000000000 / rate;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

static void *thread(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "thread-%ld", (long)arg);
	prctl(PR_SET_NAME, name);
	for (unsigned long i = (unsigned long)arg;; i++) {
		for (int k = 0; k < 5; k++)
			steps[i & 7](mix(i + k), 10);
		usleep(100000 + (i & 1023) * 300);
	}
}

static int threads(int argc, char **argv)
{
	pthread_attr_t a;
	pthread_t p;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	for (long i = 0; i < atoi(argv[2]); i++)
		if (pthread_create(&p, &a, thread, (void *)i))
			break;
	pause();
	return 0;
}

/* generated code with a perf map of N long names, and all of it runs */
static int jit(int argc, char **argv)
{
	long n = atol(argv[2]), length = argc > 3 ? atol(argv[3]) : 100;
	char path[64];
	unsigned char *code = mmap(NULL, n * 64, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* push rbp; mov rbp,rsp; mov ecx,0x4000; dec ecx; jnz -4; pop rbp; ret */
	static const unsigned char body[] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0x40, 0, 0,
					      0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *f = fopen(path, "w");
	for (long i = 0; i < n; i++) {
		memcpy(code + i * 64, body, sizeof(body));
		fprintf(f, "%lx 40 jitted_%0*ld\n", (unsigned long)(code + i * 64), (int)length, i);
	}
	fclose(f);
	for (unsigned long i = 0;; i++)
		((void (*)(void))(code + mix(i) % n * 64))();
}

static int spin(int argc, char **argv)
{
	for (unsigned long i = 0;; i++)
		steps[i & 7](mix(i & 15), 12);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; int (*run)(int, char **); } all[] = {
		{ "stacks", stacks }, { "mappings", mappings }, { "shorts", shorts },
		{ "threads", threads }, { "jit", jit }, { "spin", spin },
	};
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (argc > 1 && !strcmp(all[i].name, argv[1]))
			return all[i].run(argc, argv);
	return 2;
}
"""

PYTHON = """
import sys
def make(n):
    space = {}
    for i in range(n):
        name = f"function_{i}_" + "x" * 200
        exec(compile(f"def {name}(k):\\n" + "\\n" * (i % 500)
                     + "    s = 0\\n    while k:\\n        k -= 1\\n        s += k\\n"
                     + "    return s\\n",
                     f"/srv/app/module{i}.py", "exec"), space)
        space.pop(name)(3000)
while True:
    make(1000000)
"""


def compiled(folder):
    path = f"{folder}/load"
    if not os.path.exists(path):
        with open(f"{folder}/load.c", "w") as f:
            f.write(SOURCE)
        subprocess.run(["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-pthread", "-o", path,
                        f"{folder}/load.c"], check=True)
    return path


# Ends the loads when this process is gone, however it ended. The loads' children inherit the mark.
MARK = f"PROFPIPE_LOAD={os.getpid()}.{time.monotonic_ns()}"
KEEPER = """
import os, signal, sys
sys.stdin.read()
mark, quiet = sys.argv[1].encode(), 0
while quiet < 2:
    quiet += 1
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(bytes(1)):
                    os.kill(int(pid), signal.SIGKILL)
                    quiet = 0
        except OSError:
            pass
"""
keeper = None


def start(argv, **kw):
    global keeper
    if not keeper:
        # Its standard input ends with this process, since no other process holds the other end.
        keeper = subprocess.Popen([sys.executable, "-c", KEEPER, MARK], start_new_session=True,
                                  stdin=subprocess.PIPE)
    env = dict([MARK.split("="), *(kw.pop("env", None) or os.environ).items()])
    return subprocess.Popen(argv, start_new_session=True, stdin=subprocess.DEVNULL,
                            stdout=kw.pop("stdout", subprocess.DEVNULL), stderr=subprocess.DEVNULL,
                            env=env, **kw)


# One program spins for a moment, sleeps for two seconds, and so on; the other only spins.
RESTING = (
        {"bash": ["-c",
                  "exec 3<>\"$0\"; while :; do for ((i = 0; i < 300; i++)); do :; done; read -t 2 "
                  "-u 3; done"],
         "perl": ["-e",
                  "while (1) { for (1..5000) { $h{$_ % 99} .= 1; delete $h{$_ % 77} } select undef,"
                  " undef, undef, 2 }"]})
SPINNING = {"mawk": ["BEGIN { while (1) x++ }"],
            "sort": ["--random-sort", "/usr/share/perl/5.36/perl5db.pl"],
            "xz": ["-9", "-c", "/bin/bash"], "gzip": ["-9", "-c", "/bin/bash"],
            "openssl": ["speed", "sha256"], "sed": ["-n", ":a;s/^/x/;s/^x//;ba", "/etc/passwd"],
            "tar": ["-cf", "-", "/usr/include"], "find": ["/usr/include", "-name", "x*"]}


def copies(folder, kinds, n):
    """Makes n executables of these kinds, each a different file."""
    found, sources = [], [(p, shutil.which(p)) for p in kinds if shutil.which(p)]
    os.makedirs(f"{folder}/exe", exist_ok=True)
    for i in range(n):
        name, source = sources[i % len(sources)]
        path = f"{folder}/exe/{name}-{i}"
        if not os.path.exists(path):
            shutil.copy(os.path.realpath(source), path)
            with open(path, "ab") as f:
                f.write(b"copy %d" % i)
        found.append([path, *kinds[name]])
    return found


def executables(folder, scale):
    """2,000 distinct executables: 1,000 that rest most of the time, and 1,000 that run for a moment
    each."""
    fifo = f"{folder}/fifo"
    if not os.path.exists(fifo):
        os.mkfifo(fifo)
    resting = copies(folder, RESTING, int(1000 * scale))
    with open(f"{folder}/all.sh", "w") as f:
        f.write("while :; do\n")
        for i, a in enumerate(copies(folder, SPINNING, int(1000 * scale))):
            f.write(f'timeout 0.1 {" ".join(map(quoted, a))} >/dev/null 2>&1 &\n'
                    + ("wait\n" if i % 8 == 7 else ""))
        f.write("done\n")
    return [start([*a, fifo]) for a in resting] + [start(["bash", f"{folder}/all.sh"])]


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


def giant(folder, scale):
    """An executable of a GiB, as a compiler and a linker make it: a million functions with long
    names, rows, symbols and DWARF."""
    path, functions = f"{folder}/giant", 20000 if scale >= 0.5 else 4000
    objects = max(1, int(52 * scale))
    if not os.path.exists(path):
        with open(f"{folder}/part.c", "w") as f:
            f.write("static volatile unsigned long sink;\n")
            for i in range(functions):
                f.write(f"__attribute__((aligned(512))) void f{i}(int a) {{ struct "
                        f"p{i % 100} {{ int x, y; }} p = {{ a, {i} }}; for (int k = 0; k "
                        f"< 40; k++) sink += p.x * k + p.y; }}\n")
            f.write("void all(void) {\n" + "".join(f"f{i}({i});\n" for i in range(functions))
                    + "}\n")
        # The optimizer would take most of the time.
        subprocess.run(["gcc", "-O0", "-g", "-c", "-o", f"{folder}/part.o", f"{folder}/part.c"],
                       check=True)
        prefixes = [f"object{i}_" + "name_that_is_as_long_as_those_of_templates_are_" * 3
                    for i in range(objects)]
        with open(f"{folder}/main.c", "w") as f:
            f.write("".join(f"void {p}all(void);\n" for p in prefixes)
                    + "int main(void) { for (;;) {\n" + "".join(f"{p}all();\n" for p in prefixes)
                    + "} }\n")
        for i, p in enumerate(prefixes):
            subprocess.run(["objcopy", f"--prefix-symbols={p}", f"{folder}/part.o",
                            f"{folder}/part{i}.o"], check=True)
        subprocess.run(["gcc", "-O1", "-g", "-o", path, f"{folder}/main.c",
                        *(f"{folder}/part{i}.o" for i in range(objects))], check=True)
        for i in range(objects):
            os.unlink(f"{folder}/part{i}.o")
    return [start([path])]


def put(name, value):
    with open(name, "w") as f:
        f.write(str(value))


def sysctl(name, value):
    """Raises a sysctl of this machine until this process ends."""
    with contextlib.suppress(OSError):
        former = int(fields(name))
        if former < value:
            put(name, value)
            atexit.register(put, name, former)


def mappings(folder, scale):
    """100,000 executable mappings in one process."""
    sysctl("/proc/sys/vm/max_map_count", int(2.2e5 * scale) + 65530)
    p = start([compiled(folder), "mappings", shutil.which("gdb") or sys.executable,
               str(int(100000 * scale))], stdout=subprocess.PIPE)
    p.made = int(p.stdout.readline())
    return [p]


def shorts(folder, scale):
    """20,000 short processes a minute, of 50 executables."""
    paths = []
    os.makedirs(f"{folder}/short", exist_ok=True)
    for i in range(50):
        paths.append(f"{folder}/short/true-{i}")
        shutil.copy("/bin/true", paths[-1])
    return [start([compiled(folder), "shorts", str(int(334 * scale)), *paths, "/bin/true"])]


def threads(folder, scale):
    """10,000 threads with names of their own."""
    return [start([compiled(folder), "threads", str(int(10000 * scale))])]


def stacks(folder, scale):
    """Every sample has another stack, 100 to 200 deep."""
    return [start([compiled(folder), "stacks"]) for _ in range(2)]


def deep(folder, scale):
    """The same, 1,000 to 2,000 deep."""
    return [start([compiled(folder), "stacks", "1000"]) for _ in range(2)]


def jit(folder, scale):
    """Generated code: 100,000 symbols of 100 bytes in one perf map, and 20,000 of 2,000 bytes in
    another."""
    return [start([compiled(folder), "jit", str(int(100000 * scale))]),
            start([compiled(folder), "jit", str(int(20000 * scale)), "2000"])]


def python(folder, scale):
    """Runs a Python that makes functions, each in a file of its own with a long name, and calls
    each once."""
    return [start([sys.executable, "-c", PYTHON])]


def compilers(folder, scale):
    """Runs the installed programs again and again: their libraries have millions of rows, and each
    run touches some of them."""
    unit = ("#include <algorithm>\n#include <functional>\n#include <iostream>\n"
            "#include <map>\n#include <regex>\n#include <string>\n#include <vector>\n")
    for i in range(20):
        unit += (f'int f{i}(const std::string &s) {{ std::map<std::string, std::vector<int>> m; '
                 f'std::regex r("a{i}(b|c)*"); std::smatch k; '
                 f'if (std::regex_search(s, k, r)) m[s].push_back({i}); return m.size(); }}\n')
    crate = "use std::collections::*;\n"
    for i in range(60):
        crate += (f"pub fn f{i}(s: &str) -> usize {{ "
                  f"let mut m: BTreeMap<String, Vec<u32>> = BTreeMap::new(); "
                  f"for w in s.split_whitespace() {{ "
                  f"m.entry(w.to_string()).or_default().push({i}); }} m.len() }}\n")
    java = ("import java.util.*; import java.util.stream.*; public class A {\n"
            + "".join(f'static int f{i}(String s) {{ return Arrays.stream(s.split(" "))'
                      f'.collect(Collectors.groupingBy(x -> x.length() + {i})).size(); }}\n'
                      for i in range(200)) + "}\n")
    for name, text in (("a.cc", unit), ("a.rs", crate), ("A.java", java)):
        with open(f"{folder}/{name}", "w") as f:
            f.write(text)
    script = ("let o = {}; for (const end = Date.now() + 3000; Date.now() < end;) { for "
              "(let i = 0; i < 1e4; i++) o['k' + i % 997] = { a: i, b: [i].map(x => x * 2) "
              "}; JSON.parse(JSON.stringify(o)); }")
    kinds = [["clang++", "-O2", "-c", "-o", "clang.o", "a.cc"],
             ["g++", "-O2", "-c", "-o", "gcc.o", "a.cc"],
             ["rustc", "-O", "--crate-type", "lib", "-o", "rust.rlib", "a.rs"],
             ["node", "-e", script], ["go", "build", "-a", "-o", "std.a", "net/http"],
             ["javac", "-d", ".", "A.java"]]
    env = {**os.environ, "GOCACHE": f"{folder}/gocache", "HOME": os.environ.get("HOME", folder)}
    return [
            start(["bash", "-c", 'while :; do "$@" >/dev/null 2>&1 || sleep 0.2; done', "again",
                   *k], cwd=folder, env=env) for k in kinds if shutil.which(k[0])]


# 250,000 functions of four rows each, and one that runs.
ROWS = """
.text
.rept 250000
.cfi_startproc
push %rbx
.cfi_adjust_cfa_offset 8
push %rbp
.cfi_adjust_cfa_offset 8
pop %rbp
.cfi_adjust_cfa_offset -8
pop %rbx
.cfi_adjust_cfa_offset -8
ret
.cfi_endproc
.endr
.section .note.GNU-stack,"",@progbits
"""


def rows(folder, scale):
    """Makes 24 different programs of a million rows each."""
    path = f"{folder}/rows-0"
    if not os.path.exists(path):
        source = ("__attribute__((noinline)) long f(long n) { long s = 0; "
                  "for (volatile long i = 0; i < n; i++) s += i; return s; }\n"
                  "int main(void) { volatile long sum = 0; for (;;) sum += f(100000); }\n")
        for name, text in (("rows.s", ROWS), ("rows.c", source)):
            put(f"{folder}/{name}", text)
        subprocess.run(["gcc", "-O2", "-o", path, f"{folder}/rows.c", f"{folder}/rows.s"],
                       check=True)
    paths = [f"{folder}/rows-{i}" for i in range(int(24 * scale))]
    for i, p in enumerate(paths):
        if not os.path.exists(p):
            shutil.copy(path, p)
            with open(p, "ab") as f:
                f.write(b"copy %d" % i)
    return [start([p]) for p in paths]


LOADS = {f.__name__: f for f in (executables, giant, mappings, shorts, threads, stacks, deep, jit,
                                 python, compilers, rows)}

# --- a run ---


def kill(children):
    for c in children:
        with contextlib.suppress(OSError):
            os.killpg(c.pid, signal.SIGKILL)
    for c in children:
        c.wait()


def run(folder, names, scale=1.0, seconds=20, limit=None, hz=99, ending="folded", options=()):
    """Records the whole host for this long, under these loads and next to a program that spins in
    named functions. Returns the meter, the summary, the messages, and for that program the samples
    since it has rows, and those that are complete and named."""
    out, summary = f"{folder}/out.{ending}", f"{folder}/summary.json"
    if not os.path.exists(f"{folder}/beside"):
        shutil.copy(compiled(folder), f"{folder}/beside")
    children = []
    argv = [f"{BUILD}/profpipe", "record", "-F", str(hz), "-d", str(seconds), "-o", out,
            "--summary", summary, *options]
    try:
        for name in names:
            children += LOADS[name](folder, scale)
        # Started only then, since a load may take long to prepare.
        children.append(start([f"{folder}/beside", "spin"]))
        p = subprocess.Popen(argv + (["--memory-limit", f"{limit}M"] if limit else []),
                             stderr=subprocess.PIPE, text=True, errors="replace")
        meter = Meter(p.pid)
        meter.start()
        said = p.communicate(timeout=seconds + 180)[1]
        meter.stop()
    finally:
        kill(children)
    whole = beside = 0
    if p.returncode == 0 and ending == "folded":
        with open(out, errors="replace") as f:
            for line in f:
                stack, count = line.rsplit(" ", 1)
                frames = stack.split(";")
                if frames[0] != "beside":
                    continue
                # Rows that are still to come have nothing to do with memory.
                if "[truncated: rows-pending]" in frames:
                    continue
                # The stack has the program's calls down from main, and is not truncated.
                beside += int(count)
                whole += int(count) if "main" in frames and "spin" in frames else 0
    return p.returncode, meter, json.loads(fields(summary) or "{}"), said, beside, whole


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--limit", type=int, help="MiB, as of --memory-limit")
    a.add_argument("--seconds", type=float, default=20)
    a.add_argument("--scale", type=float, default=1)
    a.add_argument("--hz", type=int, default=99)
    a.add_argument("--ending", default="folded")
    a.add_argument("--folder", help="for what is made, and kept for the next time")
    a.add_argument("-v", action="store_true")
    a.add_argument("name", nargs="*", help=" ".join(LOADS))
    o = a.parse_args()
    folder = o.folder or tempfile.mkdtemp(prefix="profpipe-ceiling.")
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    print(f"{'':12} {'peak':>6} MiB = "
          + " ".join(f"{n:>11}"
                     for n in ("maps", "prof-bpf", "prof-deltas", "prof-symd", "prof-export",
                               "profpipe")) + "   samples  complete      lost   beside: whole")
    for name in o.name or LOADS:
        status, meter, s, said, beside, whole = run(folder, [name] if name != "none" else [],
                                                    o.scale, o.seconds, o.limit, hz=o.hz,
                                                    ending=o.ending)
        peaks = " ".join(f"{meter.peaks.get(n, 0) / MIB:11.1f}"
                         for n in ("maps", "prof-bpf", "prof-deltas", "prof-symd", "prof-export",
                                   "profpipe"))
        print(f"{name:12} {meter.peak / MIB:6.1f}     = {peaks}  {s.get('samples', 0):8} "
              f"{100 * s.get('complete', 0) / max(1, s.get('samples', 0)):7.2f} %  "
              f"{s.get('lost_total', 0):8}   "
              f"{whole} of {beside}; status {status}, {meter.looks} looks", flush=True)
        if o.v or status:
            print(said, flush=True)
    if not o.folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
