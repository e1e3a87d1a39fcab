# SPDX-License-Identifier: Apache-2.0
"""Code that replaces other code while a program runs: libraries mapped over one another. Their rows
differ, and no stack may be walked with the rows of a library that is gone."""
import subprocess

from conftest import record

LIBRARY = """
        .text
        .globl entry
        .type entry, @function
entry:  .cfi_startproc
        push %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset 3, -16
        sub $SIZE, %rsp
        .cfi_def_cfa_offset SIZE + 16
        mov %rdi, %rbx
        mov $300, %esi
1:      imul %rax, %rax
        dec %esi
        jnz 1b
        call *%rbx
        add $SIZE, %rsp
        .cfi_def_cfa_offset 16
        pop %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .section .note.GNU-stack, "", @progbits
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noipa)) static void leaf(void) { for (int i = 0; i < 300; i++) sink += i * sink; }
__attribute__((noipa)) static void caller(void (*f)(void (*)(void))) { f(leaf); sink++; }
int main(int argc, char **argv)
{
	char *at = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	time_t end = time(NULL) + 3;
	for (unsigned n = 0; time(NULL) < end; n++) {
		int fd = open(argv[1 + n % (argc - 1)], O_RDONLY);
		if (mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 4096) ==
		    MAP_FAILED)
			return 1;
		close(fd);
		for (int i = 0; i < 2000; i++)
			caller((void (*)(void (*)(void)))at);
	}
	return 0;
}
"""


def test_no_stack_is_walked_by_the_rows_of_a_file_that_was_there(tmp_path):
    libraries = []
    for size in (16, 1040, 2064):
        source, library = tmp_path / f"{size}.s", tmp_path / f"{size}.so"
        source.write_text(LIBRARY.replace("SIZE", str(size)))
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", library, source], check=True)
        libraries.append(library)
    (tmp_path / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-include", "unistd.h", "-o", tmp_path / "p", tmp_path / "p.c"],
                   check=True)
    r = record(tmp_path, "-F", "999", command=[tmp_path / "p", *libraries])
    whole = wrong = 0
    for stack, count in r.stacks:
        frames = [f for f in stack if not f.endswith("_[k]")]
        if "leaf" not in frames or any("truncated" in f for f in frames):
            continue
        if frames[-4:] == ["main", "caller", "entry", "leaf"]:
            whole += count
        else:
            wrong += count
    assert wrong == 0 and whole >= 10, r.path.read_text()[-3000:]
