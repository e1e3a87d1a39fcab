# SPDX-License-Identifier: Apache-2.0
"""Stacks by the walker compared with observed calls and returns (tests/step): programs of several
compilers, and tests that step itself recognizes what is wrong and what it cannot know."""
import os
import re
import subprocess
import sys

import pytest

BUILD = os.environ.get("PROFPIPE_BUILD", "build/release")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../walker"))
import programs  # noqa: E402
from conftest import of_which_check_has  # noqa: E402

# `leaf` claims a frame that reaches over its caller's: a stack that looks whole lacks one function.
LIAR = r"""
__asm__(".text\n.globl middle\nmiddle: .cfi_startproc\nsub $8,%rsp\n.cfi_adjust_cfa_offset 8\n"
	"call leaf\nadd $8,%rsp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n"
	"leaf: .cfi_startproc\n.cfi_def_cfa_offset 24\nmov $50,%ecx\n1: dec %ecx\njnz 1b\nret\n"
	".cfi_endproc\n");
void middle(void);
int main(void) { middle(); return 0; }
"""
SWITCHES = r"""
#include <pthread.h>
#include <stdio.h>
#include <ucontext.h>
static ucontext_t here, there;
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void inner(int n) { if (n) inner(n - 1); else swapcontext(&there, &here); fib(5); }
static void other(void) { for (;;) inner(6); }
static void *thread(void *unused) {
	static char stack[65536];
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	makecontext(&there, other, 0);
	for (int i = 0; i < 20; i++) { swapcontext(&here, &there); fib(6); }
	return unused;
}
int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	return 0;
}
"""
# As in FFmpeg's FFTs: the middle of a function, which has aligned the stack, calls itself. No table
# describes it.
NEST = r"""
__asm__(".text\n.p2align 4\n.globl nest\n.type nest,@function\n"
	"nest: mov %rsp,%r11\nand $-32,%rsp\nsub $272,%rsp\nmov %rdi,%r10\n"
	".p2align 4\n.Lmiddle: dec %rdi\njg .Ldeeper\nret\n.Ldeeper: push %rdi\ncall .Lmiddle\n"
	"mov (%rsp),%rdi\ndec %rdi\ncall .Lmiddle\npop %rdi\n"
	"inc %rdi\ncmp %r10,%rdi\nje .Lend\nret\n.Lend: mov %r11,%rsp\nret\n.size nest, .-nest\n");
void nest(long);
__attribute__((noinline)) static int odd(int n)
{
	volatile char a[n];
	a[0] = 1;
	nest(n);
	return a[0];
}
int main(void) { int s = 0; for (int i = 2; i < 9; i++) s += odd(i); return s != 7; }
"""
# Like qhasm's code in libsodium and BoringSSL: it aligns the stack by a number that it keeps there,
# and uses all registers.
LOWERED = r"""
__asm__(".text\n.p2align 4\n.globl lowered\n.type lowered,@function\n"
	"lowered: mov %rsp,%r11\nand $31,%r11\nadd $96,%r11\nsub %r11,%rsp\n"
	"mov %r11,(%rsp)\nmov %rbp,8(%rsp)\nxor %ebp,%ebp\nmov $7,%r11d\n1: dec %rdi\njg 1b\n"
	"mov (%rsp),%r11\nmov 8(%rsp),%rbp\n"
	"add %r11,%rsp\nmov %r11,%rax\nret\n.size lowered, .-lowered\n");
long lowered(long);
__attribute__((noinline)) static int odd(int n)
{
	volatile char a[n];
	a[0] = 1;
	lowered(n);
	return a[0];
}
int main(void) { int s = 0; for (int i = 2; i < 90; i++) s += odd(i); return s != 88; }
"""

# Generated code that calls INNER, whose first call runs for a second.
GENERATED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
__asm__(".intel_syntax noprefix\nbegin: push rbp; mov rbp, rsp\n" BODY "end:\n.att_syntax\n");
extern char begin[], end[];
static volatile char flag;
static void *raise_flag(void *unused) { sleep(1); flag = 1; return unused; }
static void skip_ud2(int s, siginfo_t *i, void *c)
{
	for (volatile int n = 3000; n; n--) {
	}
	((ucontext_t *)c)->uc_mcontext.gregs[REG_RIP] += 2;
}
int main(void)
{
	pthread_t t;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, begin, end - begin);
	sigaction(SIGILL, &(struct sigaction){ .sa_sigaction = skip_ud2, .sa_flags = SA_SIGINFO },
		  NULL);
	pthread_create(&t, NULL, raise_flag, NULL);
	((void (*)(volatile char *))code)(&flag);
	return 0;
}
"""
# As in HotSpot's interpreter: a call by a push and a jump; the way back pops one word more, by
# another move of RSP.
BY_JUMPS = r"""
1: push 0; lea rax, [rip + 2f]; push rax; lea rcx, [rip + 3f]; jmp rcx
2: mov ecx, 200
4: dec ecx; jnz 4b; jmp 1b
3: push rbp; mov rbp, rsp
5: cmp byte ptr [rdi], 0; je 5b
   leave; pop rsi; lea rbx, [rsp + 8]; mov rsp, rbx; jmp rsi
"""
# As in V8's calls with an array: the return address is copied down, and pushed above its former
# place.
COPIED_DOWN = r"""
1: push 0; call 3f; mov ecx, 50
4: dec ecx; jnz 4b; jmp 1b
3: sub rsp, 16; mov rax, [rsp + 16]; mov [rsp], rax; push rbp; mov rbp, rsp; mov ecx, 50
5: dec ecx; jnz 5b
   leave; pop rcx; add rsp, 24; push rcx; ret
"""
# As in HotSpot's entries of compiled code from the interpreter: the return address is copied to the
# place where the stack is aligned.
ALIGNED = r"""
   sub rsp, 16
1: mov [rbp - 8], rsp; lea rax, [rip + 2f]; push rax; lea rcx, [rip + 3f]; jmp rcx
2: mov rsp, [rbp - 8]; mov ecx, 200
4: dec ecx; jnz 4b; jmp 1b
3: mov rax, [rsp]; and rsp, -16; push rax; lea rcx, [rip + 6f]; jmp rcx
6: push rbp; mov rbp, rsp
5: cmp byte ptr [rdi], 0; je 5b
   pop rbp; ret
"""
# As in HotSpot's exceptions: code leaves a frame by a jump to a handler of its caller.
LEFT_BY_JUMP = r"""
   call 3f; ud2
2: mov ecx, 200
4: dec ecx; jnz 4b; jmp 2b
3: push rbp; mov rbp, rsp
5: cmp byte ptr [rdi], 0; je 5b
   leave; pop rdx; lea rbx, [rip + 2b]; jmp rbx
"""
# Likewise, by a return to a handler whose address overwrites the return address.
REWRITTEN = r"""
   call 3f; ud2
2: mov ecx, 200
4: dec ecx; jnz 4b; jmp 2b
3: push rbp; mov rbp, rsp
5: cmp byte ptr [rdi], 0; je 5b
   lea rax, [rip + 2b]; mov [rbp + 8], rax; pop rbp; ret
"""
# A jump by a push and a return.
PUSHED = r"""
   call 3f
2: mov ecx, 200
4: dec ecx; jnz 4b; jmp 2b
3: push rbp; mov rbp, rsp
5: cmp byte ptr [rdi], 0; je 5b
   lea rax, [rip + 6f]; push rax; ret
6: mov ecx, 200
4: dec ecx; jnz 4b; pop rbp; ret
"""
# As at HotSpot's safepoints: a signal handler continues in other code, which returns to the
# interrupted instruction or behind it.
SAFEPOINT = r"""
   call 3f
2: mov ecx, 200
4: dec ecx; jnz 4b; jmp 2b
3: push rbp; mov rbp, rsp
5: cmp byte ptr [rdi], 0; je 5b
   ud2; push 0; push rbp; mov rbp, rsp; lea rax, [rip + 6f]; mov [rbp + 8], rax; pop rbp; ret
6: pop rbp; ret
"""


# Without a dynamic linker, which takes many steps.
STATIC = ["-static"]


def step(tmp_path, source, *options, flags=()):
    (tmp_path / "source.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", *flags, "-o",
                    tmp_path / "program", tmp_path / "source.c"], check=True)
    p = subprocess.run([f"{BUILD}/tests/step", *options, tmp_path / "program"], capture_output=True,
                       text=True, timeout=60)
    end = re.search(r"^steps .*", p.stdout, re.M)
    assert end, p.stderr
    return p.returncode, {k: int(v) for k, v in re.findall(r"(\w+) (\d+)", end[0])}, p.stdout


def test_a_stack_that_lacks_a_function_and_is_called_complete_is_counted(tmp_path):
    status, f, out = step(tmp_path, LIAR, flags=STATIC)
    assert status == 1 and 100 <= f["false"] == f["wrong"] <= 110, out[-3000:]


def test_frames_of_switched_stacks_count_as_unknown(tmp_path):
    status, f, out = step(tmp_path, SWITCHES, "-c", "1")
    assert status == 0 and f["wrong"] == f["false"] == 0, out[-3000:]
    assert f["unknown"] > 1000 and f["equal"] > 1000 and f["cut"] + f["jumps"] < 200, out[-3000:]


@pytest.mark.parametrize("source", [NEST, LOWERED], ids=["middle", "lowered"])
def test_assembly_that_aligns_the_stack_has_whole_stacks(tmp_path, source):
    status, f, out = step(tmp_path, source, "-t", "40", flags=STATIC)
    assert status == 0 and f["checked"] == f["equal"] > 10000, out[-3000:]


BODIES = {"by-jumps": BY_JUMPS, "copied-down": COPIED_DOWN, "aligned": ALIGNED,
          "left-by-jump": LEFT_BY_JUMP, "rewritten": REWRITTEN, "pushed": PUSHED,
          "safepoint": SAFEPOINT}


@pytest.mark.parametrize("name", of_which_check_has(BODIES, ("by-jumps", "pushed")))
def test_returns_of_generated_code_are_seen(tmp_path, name):
    text = "#define BODY " + " ".join(f'"{line}\\n"'
                                      for line in BODIES[name].strip().splitlines()) + GENERATED
    status, f, out = step(tmp_path, text, "-k", "5", "-f", "0.3", "-t", "4")
    # Code that leaves its frame by a jump has a wrong stack for an instruction or two, and says so.
    assert f["false"] == 0 and f["wrong"] < 10, out[-3000:]
    assert f["unknown"] > 1000 and f["guessed"] < f["checked"] / 5, out[-3000:]


QUICK = [p.name for p in programs.PROGRAMS if p.quick]


@pytest.mark.parametrize("name", of_which_check_has(QUICK, set(QUICK) - {"Go"}))
def test_no_stack_is_wrong(tmp_path, name):
    program = next(p for p in programs.PROGRAMS if p.name == name)
    assert not programs.missing(program)
    row = programs.row_of(program, tmp_path, steps=55000, seconds=240)
    assert "error" not in row, row
    assert row["false"] == 0, row["text"][-5000:]
    assert row["wrong"] + row["guessed"] <= row["checked"] / 5000, row["text"][-5000:]
    assert row["checked"] > 10000 and row["complete"] > 99.5, row["text"][-5000:]
