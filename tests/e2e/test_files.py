# SPDX-License-Identifier: Apache-2.0
"""Stacks are complete and named, whatever file a program runs from and however it is mapped."""
import os
import subprocess
import time

import pytest

from conftest import record

# main -> outer -> inner, which burns. With "move" the pages of outer and inner become anonymous
# memory, as programs do that put their text on huge pages.
SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone))
static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((naked, used)) static void pad_before(void) { __asm__(".skip 8192, 0x90"); }
NOINLINE int inner(double s)
{
	volatile int n = 0;
	while (cpu() < s)
		for (int i = 0; i < 20000; i++)
			n += i;
	return n;
}
NOINLINE int outer(double s) { int r = inner(s); __asm__ volatile("" : "+r"(r)); return r + 1; }
__attribute__((naked, used)) static void pad_behind(void) { __asm__(".skip 8192, 0x90"); }
static void move(int by_mremap)
{
	uintptr_t from = ((uintptr_t)inner - 4096) & ~4095ul,
		  to = ((uintptr_t)outer + 4096 + 4095) & ~4095ul;
	size_t n = to - from;
	void *copy = mmap(NULL, n, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	memcpy(copy, (void *)from, n);
	if (by_mremap) {
		mprotect(copy, n, PROT_READ | PROT_EXEC);
		if (mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) == MAP_FAILED)
			abort();
		return;
	}
	if (mmap((void *)from, n, PROT_READ | PROT_WRITE | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	memcpy((void *)from, copy, n);
	mprotect((void *)from, n, PROT_READ | PROT_EXEC);
}
int main(int argc, char **argv)
{
	if (argc > 2)
		move(argv[2][0] == 'r');
	return outer(atof(argv[1])) & 1;
}
"""
LIBRARY_MAIN = ("#include <stdlib.h>\nint outer(double s);\n"
                "int main(int argc, char **argv) { return outer(atof(argv[1])) & 1; }\n")


def build(folder, *flags, name="prog", text=SOURCE):
    source = folder / f"{name}.c"
    source.write_text(text)
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-fomit-frame-pointer", "-fno-toplevel-reorder",
                    *flags, "-o", folder / name, source], check=True)
    return folder / name


def check(got):
    burning = [(s, n) for s, n in got.stacks if "inner" in s]
    whole = sum(n for s, n in burning if {"outer", "main"} <= set(s)
                and s.index("inner") == s.index("outer") + 1 == s.index("main") + 2)
    assert burning and whole == sum(n for _, n in burning), got.stacks
    assert whole >= 0.8 * got.summary["samples"], got.stacks
    assert got.summary["complete"] >= 0.95 * got.summary["user_stacks"], got.summary


@pytest.mark.parametrize("flags",
                         [["-static-pie"], ["-static"], ["-no-pie"], ["-Wl,-z,noseparate-code"],
                          ["-no-pie", "-Wl,-Ttext-segment=0x70000000"],
                          ["-Wl,-z,max-page-size=0x200000"]], ids=lambda f: f[-1].strip("-"))
def test_a_program_linked_in_any_way_is_named(tmp_path, flags):
    check(record(tmp_path, "-F", "499", command=[build(tmp_path, *flags), "0.3"]))


def test_a_library_that_was_given_its_address_beforehand(tmp_path):
    build(tmp_path, "-fPIC", "-shared", "-Wl,-Ttext-segment=0x30000000", name="libprelinked.so")
    program = build(tmp_path, "-Wl,-rpath," + str(tmp_path), tmp_path / "libprelinked.so",
                    name="user", text=LIBRARY_MAIN)
    check(record(tmp_path, "-F", "499", command=[program, "0.3"]))


def test_a_file_of_three_gigabytes(tmp_path):
    program = build(tmp_path)
    os.truncate(program, 3 << 30)
    check(record(tmp_path, "-F", "499", command=[program, "0.3"]))


@pytest.mark.parametrize("how", ["mmap", "remap"])
def test_text_that_was_moved_to_anonymous_memory(tmp_path, how):
    check(record(tmp_path, "-F", "499", command=[build(tmp_path), "0.3", how]))


def test_text_that_was_moved_before_the_run(tmp_path):
    with subprocess.Popen([build(tmp_path), "20", "mmap"]) as p:
        time.sleep(0.3)
        got = record(tmp_path, "-F", "499", "-d", "0.5", "-p", str(p.pid))
        p.kill()
    check(got)


def test_a_program_that_deletes_itself(tmp_path):
    program = build(tmp_path)
    check(record(tmp_path, "-F", "499",
                 command=["sh", "-c", f"(sleep 0.1; rm {program}) & exec {program} 0.4"]))


def test_a_program_whose_place_another_takes(tmp_path):
    program, other = build(tmp_path), build(tmp_path, "-O0", "-Dinner=elsewhere", name="other")
    check(record(tmp_path, "-F", "499",
                 command=["sh", "-c", f"(sleep 0.1; mv {other} {program}) & exec {program} 0.4"]))


def test_a_program_that_lives_in_memory_alone(tmp_path):
    program = build(tmp_path)
    script = (f"import os; fd = os.memfd_create('prog', 0); os.write(fd, open('{program}', "
              f"'rb').read()); os.execve(fd, ['prog', '0.4'], dict(os.environ))")
    got = record(tmp_path, "-F", "499", command=["/usr/bin/python3", "-c", script])
    got.stacks = [(s, n) for s, n in got.stacks if "inner" in s]
    got.summary["samples"] = sum(n for _, n in got.stacks)
    check(got)


def test_a_program_on_an_overlay(tmp_path):
    for folder in ("lower", "upper", "work", "merged"):
        (tmp_path / folder).mkdir()
    build(tmp_path / "lower")
    mount = (f"mount -t overlay overlay -o lowerdir={tmp_path}/lower,"
             f"upperdir={tmp_path}/upper,workdir={tmp_path}/work {tmp_path}/merged")
    check(record(tmp_path, "-F", "499",
                 command=["unshare", "-m", "sh", "-c",
                          f"{mount} && exec {tmp_path}/merged/prog 0.5"]))


def test_a_program_in_a_mounted_image(tmp_path):
    """As an AppImage runs: from a squashfs that a process of its user serves by FUSE and that
    nobody else may enter. The rows come from its memory; its names lie elsewhere in the file, and
    are not found."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "mounted").mkdir()
    build(tmp_path / "tree")
    subprocess.run(["mksquashfs", tmp_path / "tree", tmp_path / "image", "-quiet", "-no-progress"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["squashfuse", tmp_path / "image", tmp_path / "mounted"], check=True)
    try:
        got = record(tmp_path, "-F", "499", command=[tmp_path / "mounted" / "prog", "0.4"])
    finally:
        subprocess.run(["umount", "-l", tmp_path / "mounted"], check=True)
    burning = [(s, n) for s, n in got.stacks if sum(f.startswith("[prog+") for f in s) >= 3]
    assert sum(n for _, n in burning) >= 0.8 * got.summary["samples"], got.stacks
    assert all("__libc_start_main_impl" in s or "__libc_start_main" in " ".join(s)
               for s, _ in burning), got.stacks
    assert got.summary["complete"] >= 0.95 * got.summary["user_stacks"], got.summary
