# SPDX-License-Identifier: Apache-2.0
"""Stacks that are not in one piece: exceptions in flight, coroutines of several kinds, segmented
stacks. Each program knows its own chain of calls."""
import os
import random
import re
import struct
import subprocess
import time

import pytest

from conftest import BUILD, few, walked_live
from running import ran_s
from test_walker import Gdb, stop_and_compare

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))
HEAD = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define FRAME __attribute__((noinline, noclone))
#define KEEP(x) __asm__ volatile("" : "+r"(x) : : "memory")
extern "C" FRAME int stop(int n) { kill(getpid(), SIGSTOP); KEEP(n); return n; }
"""

# Deep throws through frames with destructors, frames that rethrow, and frames that catch another
# type.
EXCEPTIONS = HEAD + """
#include <stdexcept>
#include <string>
struct guard {
	std::string s;
	guard(int n) : s(40, 'a' + n % 26)
	{
	}
	FRAME ~guard()
	{
		for (volatile int i = 0; i < 50; i++)
			;
	}
};
FRAME int deep(int n)
{
	guard g(n);
	if (n == 0)
		throw std::runtime_error("x");
	if (n % 7 == 0) {
		try { return deep(n - 1) + 1; } catch (const std::exception &) { throw; }
	}
	if (n % 5 == 0) {
		try { return deep(n - 1) + 1; } catch (const std::string &) { return 0; }
	}
	return deep(n - 1) + (int)g.s.size();
}
int main()
{
	for (;;) {
		try {
			deep(40);
		} catch (const std::exception &e) {
			if (!*e.what())
				return 1;
		}
	}
}
"""

UCONTEXT = HEAD + """
#include <ucontext.h>
static ucontext_t first, second;
static char stack[1 << 16];
FRAME int inner(int n)
{
	if (n) {
		int r = inner(n - 1);
		KEEP(r);
		return r + 1;
	}
	swapcontext(&second, &first);
	return stop(n) + 1;
}
static void body(int n) { int r = inner(n); KEEP(r); }
int main()
{
	getcontext(&second);
	second.uc_stack.ss_sp = stack;
	second.uc_stack.ss_size = sizeof(stack);
	second.uc_link = &first;
	makecontext(&second, (void (*)())body, 1, 20);
	swapcontext(&first, &second);
	swapcontext(&first, &second);
	return 0;
}
"""

# A switch as in libco: it pushes the registers that callees keep, exchanges stack pointers, and
# begins a new stack with a zero.
SWITCH = HEAD + """
extern "C" void change(void **from, void *to);
__asm__(".text\\n.globl change\\n.type change, @function\\nchange:\\n.cfi_startproc\\n"
	"push %rbp\\n.cfi_adjust_cfa_offset 8\\npush %rbx\\n.cfi_adjust_cfa_offset 8\\n"
	"push %r12\\n.cfi_adjust_cfa_offset 8\\n"
	"mov %rsp, (%rdi)\\nmov %rsi, %rsp\\n"
	"pop %r12\\n.cfi_adjust_cfa_offset -8\\npop %rbx\\n.cfi_adjust_cfa_offset -8\\n"
	"pop %rbp\\n.cfi_adjust_cfa_offset -8\\nret\\n"
	".cfi_endproc\\n.size change, . - change\\n");
static void *first, *second;
static void *stack[8192];
FRAME int inner(int n)
{
	if (n) {
		int r = inner(n - 1);
		KEEP(r);
		return r + 1;
	}
	change(&second, first);
	return stop(n) + 1;
}
static void body() { int r = inner(20); KEEP(r); change(&second, first); }
int main()
{
	void **top = stack + 8190;
	*--top = nullptr;
	*--top = (void *)body;
	top -= 3;
	second = top;
	change(&first, second);
	change(&first, second);
	return 0;
}
"""

# The same with boost.context's return address of a fiber's first function: it leads to code that
# nothing calls and that no table describes.
FIBER = SWITCH.replace("__asm__(", """extern "C" char fiber_end[];
__asm__(".text\\n.globl begin_fiber\\nbegin_fiber:\\npush %rbp\\njmp *%rbx\\n.globl fiber_end\\n"
	"fiber_end:\\nxor %rdi, %rdi\\ncall _exit@PLT\\nhlt\\n");
__asm__(""", 1).replace("*--top = nullptr;", "*--top = (void *)fiber_end;")

COROUTINE = HEAD + """
#include <coroutine>
struct task {
	struct promise_type {
		task get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() {}
	};
	std::coroutine_handle<promise_type> h;
};
FRAME int inner(int n)
{
	if (n) {
		int r = inner(n - 1);
		KEEP(r);
		return r + 1;
	}
	return stop(n) + 1;
}
task body(int n) { co_await std::suspend_always{}; int r = inner(n); KEEP(r); }
FRAME int resumer(task &t) { t.h.resume(); t.h.resume(); return 1; }
int main() { task t = body(20); int r = resumer(t); KEEP(r); return r - 1; }
"""

SPLIT = HEAD.replace('extern "C" FRAME', "FRAME") + """
FRAME int inner(int n)
{
	volatile char room[4000];
	room[n] = 1;
	if (n) {
		int r = inner(n - 1);
		KEEP(r);
		return r + room[n];
	}
	return stop(n) + 1;
}
int main() { int r = inner(200); KEEP(r); return 0; }
"""

# A runtime's own stacks, as in OCaml 5, at lower addresses than the stack that was left. One or two
# loads in the rows lead back.
LOADS = HEAD + """
extern "C" int once(void *top, int (*f)(int), int n);
extern "C" int twice(void *top, int (*f)(int), int n, void **left);
__asm__(".text\\n.globl once\\n.type once, @function\\nonce:\\n.cfi_startproc\\n"
	"mov %rsp, -16(%rdi)\\nlea -32(%rdi), %rsp\\n.cfi_remember_state\\n"
	".cfi_escape 0x0f, 5, 0x77, 16, 0x06, 0x23, 8\\n"
	"mov %edx, %edi\\ncall *%rsi\\nmov 16(%rsp), %rsp\\n.cfi_restore_state\\nret\\n"
	".cfi_endproc\\n.size once, . - once\\n"
	".globl twice\\n.type twice, @function\\ntwice:\\n.cfi_startproc\\n"
	"mov %rsp, 8(%rcx)\\nmov %rcx, -16(%rdi)\\nlea -32(%rdi), %rsp\\n.cfi_remember_state\\n"
	".cfi_escape 0x0f, 8, 0x77, 16, 0x06, 0x23, 8, 0x06, 0x23, 8\\n"
	"mov %edx, %edi\\ncall *%rsi\\nmov 16(%rsp), %rcx\\nmov 8(%rcx), %rsp\\n"
	".cfi_restore_state\\nret\\n.cfi_endproc\\n.size twice, . - twice\\n");
static char stacks[20][4096] __attribute__((aligned(16)));
static void *left[20][2];
FRAME int inner(int n)
{
	int r;
	if (!n)
		return stop(n) + 1;
	if (n % 2)
		r = once(stacks[n], inner, n - 1);
	else
		r = twice(stacks[n], inner, n - 1, left[n]);
	KEEP(r);
	return r + 1;
}
int main() { int r = inner(18); KEEP(r); return 0; }
"""


@pytest.fixture
def program(tmp_path):
    def build(source, *args):
        (tmp_path / "p.cc").write_text(source)
        subprocess.run(["g++", "-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls",
                        "-std=c++20", "-o", tmp_path / "p", tmp_path / "p.cc", *args], check=True,
                       timeout=60)
        return tmp_path / "p"

    return build


def names_of_stopped(binary):
    """The functions of the one thread of a program that stopped itself, and whether its stack is
    whole."""
    p = subprocess.Popen([binary])
    try:
        assert os.waitpid(p.pid, os.WUNTRACED)[1] & 0xff == 0x7f
        out = subprocess.run([f"{BUILD}/prof-dump", "--no-inlines", str(p.pid)],
                             capture_output=True, text=True, timeout=60)
    finally:
        p.kill()
        p.wait()
    assert out.returncode == 0, out.stderr
    assert "truncated:" not in out.stdout, out.stdout
    return [re.sub(r"\(.*", "", name)
            for name in re.findall(r"^\d+ 0x[0-9a-f]+ (\S+)", out.stdout, re.M)]


ROOT = ["main", "__libc_start_call_main", "__libc_start_main", "_start"]


def plain(names):
    """Without versions and other names that glibc adds."""
    return [re.sub(r"^__libc_start_main_impl$", "__libc_start_main", n.split("@")[0])
            for n in names]


@pytest.mark.parametrize("kind",
                         ["ucontext", "static", "static-pie", "switch", "fiber", "coroutine",
                          "split", "loads"])
def test_a_stack_that_was_changed_to_is_whole(program, kind):
    source, args, count, rest = {
        "ucontext": (UCONTEXT, [], 21, ["body"]),
        "static": (UCONTEXT, ["-static"], 21, ["body"]),
        "static-pie": (UCONTEXT, ["-static-pie"], 21, ["body"]),
        "switch": (SWITCH, [], 21, ["body"]),
        "fiber": (FIBER, [], 21, ["body"]),
        "coroutine": (COROUTINE, [], 21, ["body", "resumer", *ROOT]),
        "split": (SPLIT, ["-fsplit-stack", "-fuse-ld=gold"], 201, ROOT),
        "loads": (LOADS, [], 19, ROOT),
    }[kind]
    names = plain(names_of_stopped(program(source, *args)))
    if kind == "split":
        # Each change of segments has a frame of libgcc.
        assert names.count("__morestack") > 5
        names = [n for n in names if n != "__morestack"]
    if kind == "loads":
        assert names.count("once") == names.count("twice") == 9
        names = [n for n in names if n not in ("once", "twice")]
    if kind in ("ucontext", "static", "static-pie", "fiber"):
        # The function to which body returns.
        names.pop()
    assert names[1:] == ["stop", *["inner"] * count, *rest]


def calls(pid, back, into):
    """Whether the instruction before the address `back` calls, through a PLT, the function that
    contains `into`, according to the process's memory: the first kilobyte of it."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        def read(at, form):
            return struct.unpack(form, os.pread(mem.fileno(), struct.calcsize(form), at))

        op, distance = read(back - 5, "<Bi")
        slot = back + distance
        if op != 0xe8:
            return False
        slot += 4 if read(slot, "<I")[0] == 0xfa1e0ff3 else 0
        slot += read(slot, "<B")[0] == 0xf2
        if read(slot, "<H")[0] != 0x25ff:
            return False
        return 0 < into - read(slot + 6 + read(slot + 2, "<i")[0], "<Q")[0] < 1024


def test_exceptions_in_flight_have_gdbs_stacks(program):
    """Equal to gdb's stacks except for one place: on its way out libgcc overwrites the return
    address of its own frame with that of the landing pad. gdb uses that one, and may end there; we
    use the frame's true caller."""
    rng, stacks, better = random.Random(2), {}, 0
    p, gdb = subprocess.Popen([program(EXCEPTIONS)]), Gdb()
    try:
        deadline = time.time() + 90
        # gdb shows frames above the first frame of the dynamic linker.
        while ran_s(p.pid) < 0.1:
            time.sleep(0.01)
        # On a busy machine it may stop in the same place as before.
        while len(stacks) < 8:
            assert p.poll() is None and time.time() < deadline
            time.sleep(rng.random() / 50)
            for (pcs, reason), theirs in stop_and_compare(p.pid, gdb):
                first = next((i for i, (a, b) in enumerate(zip(pcs, theirs)) if a != b), 0)
                known = (0 < first < 3
                         and calls(p.pid, pcs[first], pcs[first - 1])
                         and not calls(p.pid, theirs[first], pcs[first - 1]))
                better += known
                stacks[tuple(pcs)] = (reason, None if known else theirs)
    finally:
        gdb.close()
        p.kill()
        p.wait()
    print(f"{len(stacks)} stacks, {better} times better than gdb's")
    differ = [(reason, [hex(x) for x in pcs], [hex(x) for x in theirs])
              for pcs, (reason, theirs) in stacks.items()
              if theirs is not None and list(pcs) != theirs and reason == "complete"]
    assert not differ, "\n".join(map(str, differ))
    cut = sum(reason != "complete" for reason, _ in stacks.values())
    assert cut <= len(stacks) / 4, (
        "only the frames that a rethrow kept, which libgcc has overwritten, may be cut")
    assert any(len(pcs) > 8 for pcs in stacks), "all of them outside the throw"


def test_samples_of_exceptions_in_flight_are_complete(program):
    """All are complete except in a rethrow, where libgcc has two frames and the lower one needs
    what the upper one saved, and in the last instructions before the handler."""
    samples, complete, said = walked_live([program(EXCEPTIONS)])
    assert samples > 20 and samples - complete <= 2 + samples / 30, said


@pytest.mark.parametrize("curve", ["ecdsap384", "ecdsap521"])
def test_samples_of_montgomery_multiplication_are_complete(curve):
    """OpenSSL's code keeps its CFA on the stack, at an index in a register."""
    samples, complete, said = walked_live(["openssl", "speed", "-seconds", "100", curve], after=1)
    assert samples > 20 and complete == samples, said


def test_samples_of_printed_fractions_are_complete():
    """glibc's multi-word arithmetic pushes registers, but its call frame information does not
    describe that."""
    samples, complete, said = walked_live(
        ["gawk", 'BEGIN { for (;;) printf "%.900f\\n", 1e300 / 3 > "/dev/null" }'], after=1)
    assert samples > 20 and complete == samples, said


def test_the_callers_of_sbcls_first_function_are_shown(tmp_path):
    """The runtime's call of a Lisp function has rules that hold only before the call."""
    (tmp_path / "loop.lisp").write_text("(loop)")
    with subprocess.Popen(["sbcl", "--script", tmp_path / "loop.lisp"]) as p:
        try:
            time.sleep(1)
            text = subprocess.run([f"{BUILD}/prof-dump", str(p.pid)], capture_output=True,
                                  text=True, check=True).stdout
        finally:
            p.kill()
    names = [line.split()[2] for line in text.splitlines() if line[:1].isdigit()]
    at = names.index("main")
    assert names[at - 3:at] == ["call_into_lisp_", "create_main_lisp_thread",
                                "initialize_lisp"], text


@pytest.mark.parametrize("executable", [False, True], ids=["script", "executable"])
def test_samples_of_sbcl_are_complete(tmp_path, executable):
    """SBCL's code has no rows, and a calling convention of its own. Its core is in a separate file,
    or appended to the runtime in an executable file."""
    source = open(os.path.join(os.path.dirname(__file__), "../walker/programs/work.lisp"),
                  encoding="utf-8").read()
    forever = re.search(r"^\(loop .*", source, re.M)[0]
    argv = ["sbcl", "--script", tmp_path / "work.lisp"]
    if executable:
        program = tmp_path / "program"
        source = source.replace(forever, f'(defun main () {forever})\n'
                                f'(save-lisp-and-die "{program}" :executable t :toplevel #\'main)')
    (tmp_path / "work.lisp").write_text(source)
    if executable:
        subprocess.run(argv, check=True, capture_output=True, timeout=120)
        argv = [program]
    samples, complete, said = walked_live(argv, after=2)
    assert samples > 20 and samples - complete <= few(samples), said
