# SPDX-License-Identifier: Apache-2.0
"""prof-dump: its text; its stacks of cores compared with gdb's; its errors; and the walker after
every single instruction."""
import glob
import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import BUILD
from test_python import PYTHONS
from test_walker import gdbs, kill, ours, stopped

ASAN = pytest.param(os.path.join(os.path.dirname(BUILD), "asan"), marks=pytest.mark.asan)
TREES = [BUILD, ASAN]

PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long ticks;
static inline __attribute__((always_inline)) int inlined(int n) { pause(); return n + 1; }
__attribute__((noinline)) int deep(int n)
{
	int r = n ? deep(n - 1) : inlined(n);
	__asm__ volatile("" : "+r"(r));
	return r + 1;
}
static void *thread(void *n) { deep((int)(long)n); return NULL; }
static void on_signal(int s) { deep(3); }
static void on_tick(int s) { ticks++; }
__attribute__((noinline)) static int spawn(int n)
{
	pid_t p = vfork();
	if (p == 0) {
		sleep(1000);
		_exit(0);
	}
	waitpid(p, NULL, 0);
	return n + p;
}
int main(int argc, char **argv)
{
	pthread_t t;
	switch (argv[1][0]) {
	case 't':
		for (long i = 1; i < 5; i++)
			pthread_create(&t, NULL, thread, (void *)(i * 3));
		/* fall through */
	case 'd': return deep(atoi(argv[2]));
	case 'e': pthread_create(&t, NULL, thread, (void *)1); pthread_exit(NULL);
	case 's': signal(SIGUSR1, on_signal); raise(SIGUSR1); return 0;
	case 'v': return spawn(1) == 0;
	case 'c': for (long i = 1; i < 3; i++) pthread_create(&t, NULL, thread, (void *)i);
		usleep(50000); *(volatile int *)8 = argc; return 0;
	case 'j': {
		unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(code, "\x31\xed\xeb\xfe", 4); /* xor %ebp,%ebp; 1: jmp 1b */
		((void (*)(void))code)(); return 0;
	}
	case 'i': {
		struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
		signal(SIGALRM, on_tick); setitimer(ITIMER_REAL, &every, NULL);
		while (ticks < atol(argv[2])) ;
		return 7;
	}
	}
	return 1;
}
"""
STEPPED = r"""
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static jmp_buf back;
static volatile int sink;
static __attribute__((noinline)) int leaf(int n) { sink += n; return n * 3; }
static __attribute__((noinline)) int deep(int n)
{
	int r = n ? deep(n - 1) : leaf(n);
	sink += r;
	return r + 1;
}
static __attribute__((noinline)) int dynamic(int n)
{
	char *p = alloca(n);
	memset(p, n, n);
	sink += p[n / 2];
	return leaf(p[0]);
}
static __attribute__((noinline)) int aligned(int n)
{
	char b[64] __attribute__((aligned(64)));
	memset(b, n, sizeof(b));
	sink += b[n & 63];
	return leaf(b[1]);
}
static __attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	return leaf(a + b + c + d + e + f + g + h);
}
static __attribute__((noinline)) void jump(int n)
{
	if (n)
		jump(n - 1);
	else
		longjmp(back, 1);
	sink++;
}
static void handler(int s) { sink += leaf(s); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void)
{
	int v[20];
	char text[64];
	signal(SIGUSR1, handler);
	for (int i = 0; i < 20; i++) v[i] = i * 7 % 20;
	qsort(v, 20, sizeof(v[0]), compare);
	deep(10); dynamic(100); aligned(3); many(1, 2, 3, 4, 5, 6, 7, 8);
	raise(SIGUSR1);
	if (!setjmp(back)) jump(3);
	for (int i = 0; i < 2; i++) {
		pid_t p = vfork();
		if (p == 0)
			_exit(0);
		waitpid(p, NULL, 0);
	}
	snprintf(text, sizeof(text), "%d %s", sink, strchr("a/b", '/'));
	return strlen(text) == 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dump")
    (folder / "a program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls",
                    "-pthread", "-Wl,-z,lazy", "-o", folder / "program", folder / "a program.c"],
                   check=True)
    return folder / "program"


@pytest.fixture
def start():
    started = []

    def begin(*argv, state="S", **kw):
        p = subprocess.Popen([str(a) for a in argv], **kw)
        started.append(p)
        time.sleep(0.05)
        assert not state or stopped(p.pid, state), argv
        return p

    yield begin
    for p in reversed(started):  # a tracer before its tracee
        kill(p)


def dump(*args, tree=BUILD, **kw):
    return subprocess.run([f"{tree}/prof-dump", *map(str, args)], capture_output=True, text=True,
                          timeout=60, **kw)


def refused(*args, **kw):
    """Returns the one line with the reason."""
    out = dump(*args, **kw)
    assert out.returncode == 1 and out.stdout == "" and out.stderr.count("\n") == 1, out
    return out.stderr


def test_each_frame_is_a_line_with_number_address_name_file_and_line(program, start):
    out = dump(start(program, "d", 2).pid)
    assert out.returncode == 0 and out.stderr == ""
    lines = out.stdout.splitlines()
    assert re.fullmatch(r"thread \d+", lines[0])
    frames = [re.fullmatch(r"(\d+) (0x[0-9a-f]{16}) (.+?)(?: (\S+):(\d+))?", line).groups()
              for line in lines[1:]]
    assert [int(f[0]) for f in frames] == list(range(len(frames)))
    names = [f[2] for f in frames]
    at = names.index("inlined")
    assert names[at:at + 5] == ["inlined", "deep", "deep", "deep", "main"] and names[-1] == "_start"
    # An inlined call is a line of its own, at the address of the function that it was inlined into.
    assert frames[at][1] == frames[at + 1][1] != frames[at + 2][1]
    lines = PROGRAM.splitlines()
    assert frames[at][3].endswith("/a\\x20program.c")
    assert lines[int(frames[at][4]) - 1].startswith("static inline")
    assert lines[int(frames[at + 4][4]) - 1].lstrip().startswith("case 'd': return deep")


def test_inlined_calls_and_names_can_be_left_out(program, start):
    p = start(program, "d", 2)
    assert " inlined " not in dump("--no-inlines", p.pid).stdout
    assert all(re.fullmatch(r"thread \d+|\d+ 0x[0-9a-f]{16}", line)
               for line in dump("-n", p.pid).stdout.splitlines())


def test_the_launcher_hands_over_to_it(program, start):
    p = start(program, "d", 2)
    out = subprocess.run([f"{BUILD}/profpipe", "dump", str(p.pid)], capture_output=True, text=True,
                         timeout=60)
    assert out.returncode == 0 and out.stdout == dump(p.pid).stdout != ""


@pytest.mark.parametrize("tree", TREES, ids=["release", "asan"])
def test_threads_deep_stacks_and_handlers_equal_gdbs(program, start, tree):
    for argv in (["t", 40], ["d", 5000], ["s"]):
        p = start(program, *argv)
        mine, theirs = ours(p.pid, tree), gdbs(p.pid)
        assert {tid: (pcs, "complete") for tid, pcs in theirs.items()} == mine
        first = re.findall(r"thread (\d+)", dump(p.pid, tree=tree).stdout)
        assert first == [str(p.pid)]


def test_a_caller_of_vfork_that_cannot_be_stopped_is_walked(program, start):
    p = start(program, "v", state="")
    time.sleep(0.2)
    out = dump(p.pid)
    names = [line.split()[2] for line in out.stdout.splitlines()[1:]]
    assert names[1:3] == ["spawn", "main"] and names[-1] == "_start", out
    assert f"thread {p.pid} did not stop" in out.stderr and p.poll() is None


def test_a_stack_that_cannot_be_walked_says_so(program, start):
    p = start(program, "j", state="")
    time.sleep(0.2)
    lines = dump(p.pid).stdout.splitlines()
    assert re.fullmatch(r"0 0x[0-9a-f]{16} \[anon\+0x[0-9a-f]+\]", lines[1])
    assert lines[2:] == ["  … truncated: no-rows"]


def test_threads_outlive_the_first_one(program, start):
    p = start(program, "e", state="")
    time.sleep(0.2)
    assert "first thread has ended; use --all-threads" in refused(p.pid)
    out = dump("--all-threads", p.pid)
    assert out.returncode == 0 and " deep " in out.stdout
    assert len(re.findall(r"^thread \d+$", out.stdout, re.M)) == 1


def test_a_dumped_process_continues_and_loses_no_signal(program, start):
    p = start(program, "i", 300, state="")
    stood = []
    while p.poll() is None:
        out = dump("-v", "-n", p.pid)
        if out.returncode == 0:
            stood.append(int(re.search(r"were stopped for (\d+) us", out.stderr)[1]))
    print(f"{len(stood)} dumps, stopped for {sorted(stood)} us")
    assert p.returncode == 7 and len(stood) > 1


@pytest.mark.parametrize("tree", TREES, ids=["release", "asan"])
def test_cores_of_gcore_and_of_the_kernel_equal_gdbs(program, start, tmp_path, tree):
    with open("/proc/sys/kernel/core_pattern") as f:
        kernels = not f.read().startswith("|")
    p = start(program, "c", state="", cwd=tmp_path,
              preexec_fn=lambda: __import__("resource").setrlimit(4, (-1, -1))) if kernels else None
    cores = []
    for argv in ([program, "t", 40],
                 ["/usr/bin/perl", "-e", "sub f { sleep 1000 if $_[0] == 0; f($_[0] - 1) } f(30)"]):
        live = start(*argv)
        subprocess.run(["gcore", "-o", tmp_path / "gcore", str(live.pid)], check=True,
                       capture_output=True, timeout=60)
        cores.append((argv[0], tmp_path / f"gcore.{live.pid}"))
    if p:
        p.wait(timeout=20)
        found = glob.glob(f"{tmp_path}/core*")
        assert p.returncode == -signal.SIGSEGV and len(found) == 1
        cores.append((program, found[0]))
        names = [line.split()[2] for line in dump(found[0]).stdout.splitlines()[1:]]
        assert "main" in names and names[-1] == "_start"
    for binary, core in cores:
        mine, theirs = ours(core, tree), gdbs(binary, core)
        assert {tid: (pcs, "complete") for tid, pcs in theirs.items()} == mine, core


def test_a_truncated_core_gives_its_readable_stacks(program, start, tmp_path):
    live = start(program, "d", 40)
    subprocess.run(["gcore", "-o", tmp_path / "core", str(live.pid)], check=True,
                   capture_output=True, timeout=60)
    core = tmp_path / f"core.{live.pid}"
    whole = core.read_bytes()
    for size in (0, 63, 64, 5000, len(whole) // 2, len(whole) - 5000):
        core.write_bytes(whole[:size])
        out = dump(core)
        assert (out.returncode in (0, 1) and str(core) in out.stderr
                and out.stderr.count("\n") == 1), (size, out)
        assert (out.returncode == 0) == ("is truncated:" in out.stderr), (size, out)


def test_another_file_than_the_cores_is_not_used(program, start, tmp_path):
    copy = tmp_path / "other"
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    live = start(copy, "d", 3)
    subprocess.run(["gcore", "-o", tmp_path / "core", str(live.pid)], check=True,
                   capture_output=True, timeout=60)
    core = tmp_path / f"core.{live.pid}"
    assert " deep " in dump(core).stdout
    copy.unlink()
    subprocess.run(["gcc", "-O0", "-x", "c", "-", "-o", copy],
                   input=b"int main(void) { return 0; }", check=True)
    out = dump(core)
    assert (out.returncode == 0 and f"{copy}: is not the file" in out.stderr
            and " deep " not in out.stdout)
    # Below another root, prof-dump finds the right file.
    for path in {line.split()[-1] for line in open(f"/proc/{live.pid}/maps")
                 if line.split()[-1].startswith("/")} | {str(copy)}:
        there = tmp_path / "root" / path[1:]
        there.parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(path):
            there.write_bytes(
                    (program if path == str(copy)
                     else __import__("pathlib").Path(path)).read_bytes())
    out = dump("--sysroot", tmp_path / "root", core)
    assert " deep " in out.stdout and out.stderr == ""


LIBRARY = r"""
#include <stdlib.h>
#include <unistd.h>
static int compare(const void *a, const void *b) { pause(); return 0; }
static __attribute__((noinline)) int hidden(int *v)
{
	qsort(v, 3, sizeof(*v), compare);
	return v[0];
}
int outer(int n) { int v[3] = { n, 2, 3 }; return hidden(v) + n; }
"""


def test_a_deleted_library_is_walked_and_named_from_memory(start, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "main.c").write_text(
            "int outer(int); int main(int argc, char **argv) { return outer(argc) + 1; }")
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-shared", "-fPIC", "-o",
                    tmp_path / "libgone.so", tmp_path / "library.c"], check=True)
    subprocess.run(["gcc", "-O2", "-o", tmp_path / "main", tmp_path / "main.c",
                    tmp_path / "libgone.so"], check=True)
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534",
                 "--clear-groups"] if os.geteuid() == 0 else []
    os.chmod(os.path.dirname(tmp_path), 0o755)
    os.chmod(os.path.dirname(os.path.dirname(tmp_path)), 0o755)
    p = start(*as_nobody, tmp_path / "main")
    (tmp_path / "libgone.so").unlink()
    out = subprocess.run([*as_nobody, f"{BUILD}/prof-dump", str(p.pid)], capture_output=True,
                         text=True, timeout=60)
    subprocess.run(["gcore", "-o", tmp_path / "core", str(p.pid)], check=True, capture_output=True,
                   timeout=60)
    for got in (out, dump(tmp_path / f"core.{p.pid}")):
        names = [line.split()[2] for line in got.stdout.splitlines()[1:]]
        at = names.index("outer")
        assert re.fullmatch(r"\[libgone.so( \(deleted\))?\+0x[0-9a-f]+\]",
                            got.stdout.splitlines()[at].split(" ", 2)[2]), got.stdout
        assert names[at + 1] == "main" and names[-1] == "_start" and got.stderr == "", got


def test_a_refused_dump_says_why(program, start, tmp_path):
    p = start(program, "t", 1)
    other = max(int(t) for t in os.listdir(f"/proc/{p.pid}/task"))
    assert f"{other}: is a thread of process {p.pid}" in refused(other)
    assert "4194303: no such process" in refused(4194303)
    ended = start("true", state="Z")
    assert f"{ended.pid}: has ended" in refused(ended.pid)
    tracer = start("gdb", "-nx", "-q", "-iex", "set debuginfod enabled off", "-p", p.pid, state="",
                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert stopped(p.pid, "t")
    assert f"{p.pid}: is traced by process {tracer.pid}" in refused(p.pid)
    assert "/etc/passwd: is not a core file" in refused("/etc/passwd")
    assert "is not a core file" in refused(program)
    assert f"{tmp_path}: is not a regular file" in refused(tmp_path)
    assert f"{tmp_path}/none: No such file" in refused(tmp_path / "none")
    assert (dump().returncode == dump("0").returncode == dump("--half", p.pid).returncode
            == dump("--none", p.pid).returncode == 2)


def test_a_user_without_the_right_to_trace_is_told_so(program, start):
    p = start(program, "d", 2)
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534",
                 "--clear-groups"] if os.geteuid() == 0 else []
    victim = p.pid if as_nobody else 1
    out = subprocess.run([*as_nobody, f"{BUILD}/prof-dump", str(victim)], capture_output=True,
                         text=True, timeout=60)
    assert (out.returncode == 1 and
            f"{victim}: belongs to user 0; run prof-dump as that user or as root" in out.stderr)


def half_of(pid):
    """The half without rights of a prof-dump, and the ids that it has as its user."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
        for child in children:
            status = open(f"/proc/{child}/status").read()
            seccomp = re.search(r"^Seccomp:\t(\d)", status, re.M)[1]
            if seccomp == "2":
                return int(child), set(re.search(r"^Uid:\t(.*)", status, re.M)[1].split("\t"))
        time.sleep(0.01)
    raise AssertionError("it has none")


def test_no_service_that_runs_as_nobody_can_end_a_dump(program, start):
    p = start(program, "t", 1)
    out, into = os.pipe()
    os.set_blocking(into, False)
    filled = 0
    try:
        while True:
            filled += os.write(into, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(into, True)
    with subprocess.Popen([f"{BUILD}/prof-dump", str(p.pid)], stdout=into) as d:
        os.close(into)
        # The dump waits for its reader.
        with open(out, "rb") as f:
            half, ids = half_of(d.pid)
            nobody = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534",
                                     "--clear-groups", "kill", "-9", str(half)],
                                    capture_output=True, text=True)
            text = f.read()[filled:].decode()
        assert d.wait(30) == 0
    assert ids == {str(2000000000 + 16 * (1 << 23))}
    assert nobody.returncode and "not permitted" in nobody.stderr
    assert text.count("deep") == 2, text


# Becomes root of a user namespace with the given number of ids, and dumps its own child there.
IN_NAMESPACE = """
import ctypes, subprocess, sys
assert ctypes.CDLL(None).unshare(0x10000000) == 0
print("ready", flush=True)
sys.stdin.readline()
p = subprocess.Popen(sys.argv[2:])
d = subprocess.run([sys.argv[1], str(p.pid)])
p.kill()
sys.exit(d.returncode)
"""


def test_a_container_without_the_id_of_a_dump_has_dumps(program):
    with subprocess.Popen(["python3", "-c", IN_NAMESPACE, f"{BUILD}/prof-dump", program, "t", "1"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as p:
        assert p.stdout.readline() == "ready\n"
        for ids in "uid", "gid":
            with open(f"/proc/{p.pid}/{ids}_map", "w") as f:
                f.write("0 0 65535")
        out, said = p.communicate("\n", timeout=60)
    assert p.returncode == 0 and out.count("deep") >= 1, (out, said)


LAZY, NOW = ["-O2", "-Wl,-z,lazy"], ["-O0", "-Wl,-z,now", "-fcf-protection=none"]


@pytest.mark.parametrize("tree,flags", [
    (BUILD, LAZY), pytest.param(BUILD, NOW, marks=pytest.mark.check_all),
    pytest.param(*ASAN.values, LAZY, marks=pytest.mark.asan)])
def test_the_walker_is_right_after_every_instruction(tmp_path, tree, flags):
    (tmp_path / "stepped.c").write_text(STEPPED)
    subprocess.run(["gcc", *flags, "-o", tmp_path / "stepped", tmp_path / "stepped.c"], check=True)
    step(tree, ["-k", 1 if tree == BUILD else 7, tmp_path / "stepped"])


def test_the_walker_is_right_in_ls(tmp_path):
    step(BUILD, ["-k", 7, "-m", 60000, "ls", tmp_path])


def step(tree, argv):
    out = subprocess.run([f"{tree}/tests/step", *map(str, argv)], capture_output=True, text=True,
                         timeout=120)
    end = re.search(r"^steps (\d+) checked (\d+) equal (\d+) cut (\d+) jumps (\d+) unknown (\d+) "
                    r"guessed (\d+) wrong (\d+) false (\d+)$", out.stdout, re.M)
    assert end, out.stderr
    steps, checked, equal, cut, jumps, unknown, guessed, wrong, false = map(int, end.groups())
    print(end[0])
    # Only code of crt1 and crti without rules is cut or guessed: a few instructions at the
    # beginning and at the end.
    assert (wrong == 0 and false == 0 and unknown == 0 and checked > 5000
            and cut + guessed <= checked / 500), out.stdout[-5000:]


# --- interpreted frames ---

THREADS = os.path.join(os.path.dirname(__file__), "python", "threads.py")


@pytest.fixture(scope="module", params=PYTHONS)
def python_threads(request, tmp_path_factory):
    """Yields a Python program that waits, and each thread's stack by Python's own traceback, leaf
    first: [[file, line, function], ...]."""
    said = tmp_path_factory.mktemp("python") / "threads.json"
    p = subprocess.Popen([request.param, THREADS, said])
    for _ in range(400):
        if said.exists():
            break
        time.sleep(0.05)
    yield p, {int(tid): [tuple(f) for f in stack]
              for tid, stack in json.loads(said.read_text()).items()}
    kill(p)


def lines_of(out):
    """{tid: [(name, file, line), ...]} of what prof-dump printed."""
    assert out.returncode == 0, out
    threads = {}
    for line in out.stdout.splitlines():
        if line.startswith("thread "):
            threads[int(line[7:])] = frames = []
        else:
            frame = re.fullmatch(r"\d+ 0x[0-9a-f]{16} (.+?)(?: (\S+?)(?::(\d+))?)?", line)
            assert frame, line
            name, file, number = frame.groups()
            frames.append((name, (file or "").replace("\\x20", " "), int(number or 0)))
    return threads


def interpreted(frames):
    return [(file, line, name.rsplit(".", 1)[-1]) for name, file,
            line in frames if re.search(r"\.py$|^a file$|^<", file)]


@pytest.mark.parametrize("tree", TREES, ids=["release", "asan"])
def test_python_frames_of_every_thread_equal_pythons_report(python_threads, tree):
    p, said = python_threads
    threads = lines_of(dump("-a", p.pid, tree=tree))
    assert len(said) == 9 and {tid: interpreted(threads[tid]) for tid in said} == said
    # Python's frames stand between native ones: the function that sleeps and the one that began the
    # thread are native.
    for tid, frames in threads.items():
        assert frames[-1][0] in ("_start", "clone3", "__clone", "__GI___clone"), frames[-1]


def test_native_frames_stand_between_interpreted_ones(python_threads):
    p, said = python_threads
    frames = next(f for f in lines_of(dump("-a", p.pid)).values()
                  if any(n.endswith(".callback") for n, _, _ in f))
    names = [n for n, _, _ in frames]
    method, callback = (next(i for i, n in enumerate(names) if n.endswith(end))
                        for end in (".method", ".callback"))
    assert any("qsort" in n for n in names[method:callback])
    assert not any("EvalFrameDefault" in n for n in names)
    # The frames of the interpreter loop are shown on request.
    shown = next(f for f in lines_of(dump("-a", "--interpreter-frames", p.pid)).values()
                 if any(n.endswith(".callback") for n, _, _ in f))
    rest = iter(shown)
    assert all(f in rest for f in frames) and len(shown) > len(frames)


@pytest.mark.parametrize("python_threads", PYTHONS[:1], indirect=True)
def test_python_frames_of_a_core_are_those_of_the_process(python_threads, tmp_path):
    p, said = python_threads
    subprocess.run(["gcore", "-o", tmp_path / "core", str(p.pid)], check=True, capture_output=True,
                   timeout=120)
    out = dump("-a", tmp_path / f"core.{p.pid}")
    threads = lines_of(out)
    assert out.stderr == "" and {tid: interpreted(threads[tid]) for tid in said} == said
