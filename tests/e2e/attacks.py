# SPDX-License-Identifier: Apache-2.0
"""The attacks that docs/fairness.md names, by one user or by many: ordinary users who harm the
profiles of others. Each is a context manager that takes a Kit and the users who attack."""
import contextlib
import functools
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from fairness import as_user, end

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = 8400  # more than the tables have slots
LIBRARIES, RULES = 313, 53  # together more rules than the tables hold
PLACES = 65400  # as many as a process may have
# push rbp; mov rbp, rsp; calls the first of a list with the rest; the last one spins.
CODE = bytes.fromhex("55 4889e5 488b07 4883c708 4885c0 7404 ffd0 5d c3 b900000200 ffc9 75fc 5d c3")
LIBRARY = r"""
	.text
	.balign 4096
hoarded:
	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	mov (%rdi), %rax
	add $8, %rdi
	test %rax, %rax
	jz 1f
	call *%rax
2:	pop %rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_def_cfa %rbp, 16
1:	mov $0x20000, %ecx
3:	dec %ecx
	jnz 3b
	jmp 2b
	.cfi_endproc
""" + "\n".join(f"""
	.globl f{i}
f{i}:	.cfi_startproc
	.cfi_def_cfa %r10, {0x4000 + i * 8}
	ret
	.cfi_endproc""" for i in range(RULES)) + "\n\t.balign 4096\n"

# Maps files of its user's file system and, in a thread, runs in the only page that the server ever
# serves.
MUTE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static void *run(void *code) { ((void (*)(void))code)(); return 0; }
int main(int argc, char **argv)
{
	for (int i = 0; i < 10; i++) {
		char path[256];
		pthread_t thread;

		snprintf(path, sizeof(path), "%s/f%d", argv[1], i);
		const int fd = open(path, O_RDONLY);
		char *at = mmap(0, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		if (at == MAP_FAILED)
			return 1;
		close(fd);
		if (i == 0)
			pthread_create(&thread, 0, run, at + 64);
	}
	puts("ready");
	fflush(stdout);
	pause();
}
"""
# Maps memfds that are all hole, except for the ELF header and an endless loop, and runs in them.
SPARSE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#define FILES 40
static void *run(void *code) { ((void (*)(void))code)(); return 0; }
int main(void)
{
	for (int i = 0; i < FILES; i++) {
		pthread_t thread;
		const int fd = memfd_create("sparse", 0);

		if (pwrite(fd, "\177ELF\2\1\1", 7, 0) != 7 || pwrite(fd, "\xeb\xfe", 2, 64) != 2)
			return 1;
		if (ftruncate(fd, 63 << 20))
			return 1;
		char *at = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			return 1;
		close(fd);
		if (i % 10 == 0)
			pthread_create(&thread, 0, run, at + 64);
	}
	puts("ready");
	fflush(stdout);
	pause();
}
"""
# Another file takes the place of a program's debug file, for this process alone. It maps the
# program and waits, or runs it under another name.
DECOY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>
static int put(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);
	const int r = fd < 0 || write(fd, text, strlen(text)) < 0;
	close(fd);
	return r;
}
int main(int argc, char **argv)
{
	char map[64], path[64];
	const int fd = open(argv[2], O_RDONLY);

	snprintf(map, sizeof(map), "0 %d 1", getuid());
	if (fd < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) ||
	    put("/proc/self/setgroups", "deny") || put("/proc/self/uid_map", map) ||
	    put("/proc/self/gid_map", map) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) ||
	    mount("/usr/bin/true", argv[3], 0, MS_BIND, 0))
		return 1;
	if (mmap(0, 1 << 14, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	puts("ready");
	fflush(stdout);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (argv[1][0] == 'b')
		execl(path, path, "60", (char *)0);
	else
		pause();
	return 1;
}
"""
# Makes, maps and removes files in an endless loop.
FLEETING = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char path[256];

	puts("ready");
	fflush(stdout);
	for (int i = 0;; i++) {
		snprintf(path, sizeof(path), "%s/%d.%d", argv[1], getpid(), i % 2000);
		const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
		if (fd < 0 || write(fd, "\177ELF\2\1\1", 7) != 7 || ftruncate(fd, 8192))
			return 1;
		void *at = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		unlink(path);
		close(fd);
		munmap(at, 4096);
	}
}
"""
# Has a stack of 128 KiB for a moment, and goes on as a copy of its file, whose unwind rows are not
# known.
DIVING = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long n;
static long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}
static int dive(int depth)
{
	volatile char room[1000];

	room[0] = 0;
	if (depth)
		return dive(depth - 1) + 1 + room[0];
	for (const long end = cpu_ns() + 40000000; cpu_ns() < end;)
		for (unsigned i = 0; i < 10000; i++)
			n++;
	return 0;
}
int main(int argc, char **argv)
{
	const unsigned turn = argc > 2 ? atoi(argv[2]) : 0;
	char old[256], path[256], next[16];

	if (!turn) {
		puts("ready");
		fflush(stdout);
	}
	dive(125);
	snprintf(old, sizeof(old), "%s/%d.%u", argv[1], getpid(), turn);
	snprintf(path, sizeof(path), "%s/%d.%u", argv[1], getpid(), turn + 1);
	snprintf(next, sizeof(next), "%u", turn + 1);
	const int from = open("/proc/self/exe", O_RDONLY);
	const int to = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
	if (from < 0 || to < 0 || sendfile(to, from, 0, 1 << 20) < 0)
		return 1;
	close(from);
	close(to);
	unlink(old);
	execl(path, "diving", argv[1], next, NULL);
	return 1;
}
"""
# Two hundred frames, of twenty thousand functions with names of 2 KB.
DEEP = r"""
import random, sys
sys.setrecursionlimit(5000)
functions = []
for i in range(20000):
    name, at = f"f{i}_" + "x" * 2000, {}
    exec(f"def {name}(n):\n for k in range(30): pass\n if n: n[0](n[1:])", at)
    functions.append(at[name])
print("ready", flush=True)
while True:
    stack = [random.choice(functions) for _ in range(200)]
    stack[0](stack[1:])
"""
NAMES = r"""
#include <stdio.h>
#include <sys/prctl.h>
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (unsigned long i = 0;; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%lu", i);
		prctl(PR_SET_NAME, name);
	}
}
"""
IDLER = r"""
#include <stdio.h>
#include <time.h>

/* Runs for some milliseconds a second: it is sampled now and then. */
int main(void)
{
	const struct timespec half = { .tv_nsec = 995000000 };

	puts("ready");
	fflush(stdout);
	for (;;) {
		const clock_t end = clock() + CLOCKS_PER_SEC / 200;

		while (clock() < end)
			;
		nanosleep(&half, 0);
	}
}
"""
SPIN = r"""
#include <stdio.h>
int main(void) { volatile unsigned n = 0; puts("ready"); fflush(stdout); for (;;) n++; }
"""
# A unit of forty million entries of one byte each.
DIES = """
	.section .note.GNU-stack,"",@progbits
	.section .debug_abbrev,"",@progbits
	.uleb128 1; .uleb128 0x11; .byte 1
	.uleb128 0x11; .uleb128 0x1
	.uleb128 0x12; .uleb128 0x7
	.byte 0, 0
	.uleb128 2; .uleb128 0xb; .byte 0
	.byte 0, 0
	.byte 0
	.section .debug_info,"",@progbits
	.long 2f - 1f
1:	.short 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1
	.quad main
	.quad 0x100
	.fill 40000000, 1, 2
	.byte 0
2:
"""
BLOCK = 1 << 16
UNPACKED = 1 << 30  # what prof-deltas reads of a section at most


def costly_frames():
    """A .debug_frame that is small as it lies in the file and takes seconds to read: a compressed
    section of a GiB of FDEs for code that is not there."""
    cie = (struct.pack("<II", 20, 0xffffffff) + b"\4\0\x08\0\1\x78\x10\x0c\7\x08\x90\1" +
           b"\0" * 4)
    fde = struct.pack("<IIQQ", 20, 0, 1 << 40, 16)
    block = cie + fde * ((BLOCK - len(cie)) // len(fde))
    c = zlib.compressobj(9)
    packed = c.compress(block) + c.flush(zlib.Z_FULL_FLUSH)
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    again = c.compress(block) + c.flush(zlib.Z_FULL_FLUSH)
    head = struct.pack("<IIQQ", 1, 0, UNPACKED, 8)  # Elf64_Chdr, zlib
    return head + packed + again * (UNPACKED // len(block))


def mark_compressed(path, name):
    """Sets SHF_COMPRESSED, which objcopy does not."""
    with open(path, "r+b") as f:
        elf = f.read()
        at, = struct.unpack_from("<Q", elf, 40)
        size, count, names = struct.unpack_from("<HHH", elf, 58)
        where, = struct.unpack_from("<Q", elf, at + names * size + 24)
        for i in range(count):
            n, _, flags = struct.unpack_from("<IIQ", elf, at + i * size)
            if elf[where + n:].split(b"\0", 1)[0] == name.encode():
                f.seek(at + i * size + 8)
                f.write(struct.pack("<Q", flags | 0x800))
                return
    raise ValueError(name)


class Kit:
    """The attackers' programs and files, each built when it is first used."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def build(self, name, source, *options):
        c = self.folder / f"{name}.c"
        c.write_text(source)
        subprocess.run(["gcc", "-O1", *options, "-o", self.folder / name, c, "-pthread"],
                       check=True)
        return self.folder / name

    @functools.cached_property
    def mute(self):
        return self.build("mute", MUTE)

    @functools.cached_property
    def sparse(self):
        return self.build("sparse", SPARSE)

    @functools.cached_property
    def decoy(self):
        return self.build("decoy", DECOY)

    @functools.cached_property
    def fleeting(self):
        return self.build("fleeting", FLEETING)

    @functools.cached_property
    def diving(self):
        return self.build("diving", DIVING, "-fno-optimize-sibling-calls")

    @functools.cached_property
    def deep(self):
        path = self.folder / "deep.py"
        path.write_text(DEEP)
        return path

    @functools.cached_property
    def names(self):
        return self.build("names", NAMES)

    @functools.cached_property
    def hoard(self):
        subprocess.run(["gcc", "-O2", "-g", "-o", self.folder / "hoard", f"{HERE}/world/hoard.c"],
                       check=True)
        return self.folder / "hoard"

    @functools.cached_property
    def files(self):
        files = self.folder / "files"
        files.mkdir()
        for i in range(FILES):
            (files / str(i)).write_bytes(CODE.ljust(4096, b"\0"))
        return files

    @functools.cached_property
    def libraries(self):
        """A folder of libraries whose rules all differ, and the place of their function."""
        folder, libraries = self.folder, self.folder / "libraries"
        libraries.mkdir()
        (folder / "l.s").write_text(LIBRARY)
        subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--build-id=none", "-o",
                        folder / "l.so", folder / "l.s"], check=True)
        model = (folder / "l.so").read_bytes()
        offset = model.index(CODE[:4] + b"\x48\x8b\x07")
        assert offset % 4096 == 0
        # DW_CFA_def_cfa r10, a number of three bytes.
        places = [m.end() for m in
                  re.finditer(rb"\x0c\x0a(?=[\x80-\xff][\x80-\xff][\1-\x7f])", model)]
        assert len(places) == RULES
        for i in range(LIBRARIES):
            text = bytearray(model)
            for k, at in enumerate(places):
                n = 0x4000 + 8 * (i * RULES + k)
                text[at:at + 3] = bytes([n & 0x7f | 0x80, n >> 7 & 0x7f | 0x80, n >> 14])
            (libraries / str(i)).write_bytes(text)
        return libraries, offset

    @functools.cached_property
    def costly(self):
        """A program whose rows take prof-deltas seconds."""
        program, section = self.build("idler", IDLER, "-static"), self.folder / "frames"
        section.write_bytes(costly_frames())
        subprocess.run(["objcopy", "--remove-section=.debug_frame",
                        f"--add-section=.debug_frame={section}", program], check=True)
        mark_compressed(program, ".debug_frame")
        return program

    @functools.cached_property
    def sparse_debug(self):
        """A program without a build id, whose debug file has 2 GiB that are all hole."""
        program = self.build("giant", SPIN, "-Wl,--build-id=none", "-g")
        debug = self.folder / "giant.debug"
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["strip", "--strip-all", program], check=True)
        os.truncate(debug, 64 << 10)  # objcopy reads it through
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
        os.truncate(debug, 2 << 30)
        return program, debug

    @functools.cached_property
    def slow(self):
        """A program whose debug information takes half a second to read, if there is memory."""
        dies = self.folder / "dies.s"
        dies.write_text(DIES)
        return self.build("slow", SPIN, dies, "-Wl,--compress-debug-sections=zlib")


@contextlib.contextmanager
def new_kit():
    # Not below pytest's folder, which each pytest closes to other users when it starts.
    with tempfile.TemporaryDirectory(prefix="attacks.", dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Kit(name)


@contextlib.contextmanager
def started(programs, nice=19, by=()):
    """programs: pairs of (uid, argv). Each program reports when it is ready. by: the beginning of
    the commands that start them."""
    running = []
    try:
        for uid, argv in programs:
            running.append(as_user(uid, argv, nice=nice, by=by, stdout=subprocess.PIPE))
        for p in running:
            assert p.stdout.readline() == b"ready\n", p.args
        yield
    finally:
        end(running)
        for p in running:
            p.stdout.close()


@contextlib.contextmanager
def copies(kit, program, uids, count, *beside):
    """Starts count copies of a program for each user, in folders of their own. Yields the
    programs."""
    with tempfile.TemporaryDirectory(dir=kit.folder) as name:
        os.chmod(name, 0o755)
        programs = []
        for uid in uids:
            folder = pathlib.Path(name, str(uid))
            folder.mkdir()
            for file in beside:
                subprocess.run(["cp", "--sparse=always", file, folder], check=True)
                os.chown(folder / file.name, uid, uid)
            for i in range(count):
                copy = folder / f"{program.name}.{i}"
                shutil.copy(program, copy)
                os.chown(copy, uid, uid)
                programs.append((uid, [copy]))
        with started(programs):
            yield


@contextlib.contextmanager
def mounted(folder, uid):
    """A user's file system that never answers. When it ends, all processes that wait for it
    continue."""
    mount = pathlib.Path(folder) / f"mute{uid}"
    mount.mkdir()
    with subprocess.Popen([sys.executable, f"{HERE}/mutefs.py", mount, str(uid)],
                          stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "mounted\n"
            yield mount
        finally:
            # Without a server the kernel answers in its place, so nothing waits any more.
            p.kill()
            p.wait()
            subprocess.run(["umount", "-l", mount], check=True)
            mount.rmdir()


@contextlib.contextmanager
def decoys(kit, uids, how, program, debug):
    """how: "idle" or "busy"."""
    with started([(uid, [kit.decoy, how, program, debug]) for uid in uids]):
        yield


@contextlib.contextmanager
def mute_files(kit, uids):
    # The servers end first: the attackers may wait for them.
    with contextlib.ExitStack() as programs, contextlib.ExitStack() as mounts:
        folders = [(uid, mounts.enter_context(mounted(kit.folder, uid))) for uid in uids]
        programs.enter_context(started([(uid, [kit.mute, folder]) for uid, folder in folders]))
        yield


def deep_python(kit, uids):
    """At ordinary priority."""
    return started([(uid, [sys.executable, kit.deep]) for uid in uids], nice=0)


def shared_folder(kit, name):
    folder = kit.folder / name
    folder.mkdir(exist_ok=True)
    os.chmod(folder, 0o777)
    return folder


def fleeting_files(kit, uids):
    """At ordinary priority."""
    folder = shared_folder(kit, "fleeting.files")
    return started([(uid, [kit.fleeting, folder]) for uid in uids], nice=0)


def large_stacks(kit, uids):
    """At ordinary priority."""
    folder = shared_folder(kit, "diving.files")
    return started([(uid, [kit.diving, folder]) for uid in uids], nice=0)


def sparse_memory(kit, uids):
    return started([(uid, [kit.sparse]) for uid in uids])


def hoarding(kit, how, folder, offset, count, uids, modes):
    return started([(uid, [kit.hoard, how, mode, folder, count, 3600, offset])
                    for uid in uids for mode in modes])


def places(kit, uids):
    one = len(uids) == 1
    modes = ["idle"] * 6 + ["busy"] * 5 + ["churn"]
    if one:
        return hoarding(kit, "PLACES", kit.files, 0, PLACES, uids, modes)
    return started([(uid, [kit.hoard, "PLACES", modes[i % 12], kit.files, PLACES, 3600, 0])
                    for i, uid in enumerate(uids)])


def files(kit, uids):
    return hoarding(kit, "FILES", kit.files, 0, FILES, uids, ["idle", "busy"])


def rules(kit, uids):
    folder, offset = kit.libraries
    return hoarding(kit, "FILES", folder, offset, LIBRARIES, uids, ["idle", "busy"])


def costly_rows(kit, uids):
    return copies(kit, kit.costly, uids, max(60 // len(uids), 3))


def thread_names(kit, uids):
    return started([(uid, [kit.names]) for uid in uids for _ in range(1 if len(uids) > 1 else 4)])


def sparse_debug_file(kit, uids):
    program, debug = kit.sparse_debug
    return copies(kit, program, uids, max(40 // len(uids), 2), debug)


def slow_names(kit, uids, count=None):
    return copies(kit, kit.slow, uids, count or max(60 // len(uids), 3))


# In the order in which the project found them: all but the last two took the victim's stacks.
ATTACKS = {
    "A1": mute_files, "A2": sparse_memory, "A3": places, "A4": costly_rows, "A5": files,
    "A6": rules, "A9": thread_names, "B5": sparse_debug_file, "N": slow_names,
}
