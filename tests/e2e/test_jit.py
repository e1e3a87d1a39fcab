# SPDX-License-Identifier: Apache-2.0
"""Generated code: its stacks, and its names from perf maps and jitdumps, for honest and for hostile
processes."""
import glob
import os
import signal
import subprocess
import time

import pytest

from conftest import BUILD, record

# Two functions with frame pointers, written into memory: the outer one calls the leaf, which spins.
# argv tells which map or dump to write, and where.
SOURCE = r"""
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static unsigned char *code;
static char path[256];
static const unsigned char leaf[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
				      0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3 };
static unsigned char outer[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,
				 0xff, 0xd0, 0x5d, 0xc3 };

static void generate(int memfd)
{
	int fd = memfd ? memfd_create("doublemapper", 0) : -1;
	unsigned char *to;
	uint64_t at;

	if (memfd && ftruncate(fd, 65536)) abort();
	code = mmap(NULL, 65536, PROT_READ | PROT_EXEC | (memfd ? 0 : PROT_WRITE),
		    memfd ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	to = memfd ? mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : code;
	at = (uint64_t)(code + 4096);
	memcpy(outer + 6, &at, 8);
	memcpy(to, outer, sizeof(outer));
	memcpy(to + 4096, leaf, sizeof(leaf));
}

static void write_map(const char *name)
{
	FILE *f = fopen(name, "w");

	fprintf(f, "%lx %zx jit_outer(int)\n0x%lx 0x%zx jit_leaf\n", (long)code, sizeof(outer),
		(long)(code + 4096), sizeof(leaf));
	fclose(f);
}

static void load(FILE *f, const unsigned char *at, size_t size, const char *name)
{
	uint32_t head[2] = { 0, (uint32_t)(56 + strlen(name) + 1 + size) },
		 ids[2] = { (uint32_t)getpid(), (uint32_t)getpid() };
	struct timespec t;
	uint64_t now, body[4] = { (uint64_t)at, (uint64_t)at, size, 1 };

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec * 1000000000ull + t.tv_nsec;
	fwrite(head, sizeof(head), 1, f);
	fwrite(&now, 8, 1, f);
	fwrite(ids, sizeof(ids), 1, f);
	fwrite(body, sizeof(body), 1, f);
	fwrite(name, strlen(name) + 1, 1, f);
	fwrite(at, size, 1, f);
}

static void write_dump(const char *folder, uid_t owner)
{
	uint32_t head[6] = { 0x4a695444, 1, 40, EM_X86_64, 0, (uint32_t)getpid() };
	uint64_t rest[2] = { 1, 0 };
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s/jit-%d.dump", folder, getpid());
	f = fopen(name, "w+");
	if (owner && (chown(name, owner, owner) || chmod(name, 0644)))
		abort();
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
		abort();
	fwrite(head, sizeof(head), 1, f);
	fwrite(rest, sizeof(rest), 1, f);
	load(f, code, sizeof(outer), "jit_outer(int)");
	load(f, code + 4096, sizeof(leaf), "jit_leaf");
	fflush(f);
}

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const char *how = argv[1], *where = argv[2];
	double began;
	int s = 0, fd;

	prctl(PR_SET_NAME, how);
	generate(is(how, "memfd"));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	if (is(how, "map") || is(how, "memfd") || is(how, "inner"))
		write_map(path);
	if (is(how, "fork"))
		write_map(path);
	if (is(how, "dump") || is(how, "dumpfork"))
		write_dump(where, 0);
	if (is(how, "userdump") || is(how, "theirdump")) {
		write_dump(where, is(how, "userdump") ? 62001 : 61001);
		if (setgid(62001) || setuid(62001) || prctl(PR_SET_DUMPABLE, 1)) abort();
	}
	if (is(how, "link")) {
		write_map(where);
		if (symlink(where, path)) abort();
	}
	if (is(how, "fifo") && mkfifo(path, 0600)) abort();
	if (is(how, "others")) {
		write_map(path);
		if (chown(path, 65534, 65534)) abort();
	}
	if (is(how, "stale")) {
		struct timespec old[2] = { { 1000000000, 0 }, { 1000000000, 0 } };

		write_map(path);
		if (utimensat(AT_FDCWD, path, old, 0)) abort();
	}
	if (is(how, "giant")) {
		fd = open(path, O_RDWR | O_CREAT, 0600);
		if (ftruncate(fd, 1ll << 30)) abort();
	}
	if (is(how, "garbage")) {
		FILE *f = fopen(path, "w");

		for (int i = 0; i < 1000000; i++) { s = s * 1103515245 + 12345; fputc(s >> 16, f); }
		fprintf(f, "\n%lx ffffffffffffffff jit_all\nffffffffffffff00 %lx jit_wraps\n", 0l,
			(long)code);
		fclose(f);
	}
	if (is(how, "fork") || is(how, "dumpfork")) {
		if (fork()) pause();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	puts("ready");
	fflush(stdout);
	for (began = now(); ; s += ((int (*)(long))code)(200000)) {
		if (is(how, "late") && began && now() - began > 1.5) { write_map(path); began = 0; }
		if (is(how, "exit") && now() - began > 1) { write_map(path); return 0; }
	}
	return s;
}
"""
# userdump: an ordinary user with a jitdump of its own; theirdump: with one of another user, who
# would name its code.
NAMED = ["map", "memfd", "dump", "userdump", "inner", "late", "fork", "dumpfork"]
UNNAMED = ["link", "fifo", "others", "theirdump", "stale", "giant", "garbage"]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jit")
    (folder / "jit.c").write_text(SOURCE)
    (folder / "inner").mkdir()
    subprocess.run(["gcc", "-O1", "-w", "-fno-omit-frame-pointer", "-o", folder / "inner" / "jit",
                    folder / "jit.c"], check=True)
    return folder / "inner" / "jit"


class Running:
    """Starts the program with these arguments, and returns when it is ready. `inner`: in a pid and
    a mount namespace of its own, with a /tmp of its own."""

    def __init__(self, program, how, where):
        argv = [program, how, where]
        if how == "inner":
            argv = ["unshare", "-mpf", "--kill-child", "sh", "-c",
                    f"mount --bind {program.parent} /tmp && exec /tmp/jit inner x"]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n", how

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        try:
            os.unlink(f"/tmp/perf-{self.process.pid}.map")
        except FileNotFoundError:
            pass


def user_part(stacks, how):
    """Returns one program's stacks from main on, without kernel frames and without those from
    before it called its code."""
    out = []
    for frames, count in stacks:
        frames = [f for f in frames if not f.endswith("_[k]")]
        if frames[0] == how and "main" in frames and frames[-1].startswith(("[anon", "jit_")):
            out.append((frames[frames.index("main"):], count))
    return out


def test_generated_code_has_whole_stacks_and_names_of_honest_processes(
        program, tmp_path):
    running = []
    try:
        for how in NAMED + UNNAMED:
            running.append(Running(program, how, tmp_path if "dump" in how else tmp_path / how))
        # Other tests' programs also need names, so the names of these may come too late.
        chosen = [x for how in NAMED + UNNAMED for x in ("--comm", how)]
        got = record(tmp_path, "-v", "-F", 299, "-d", 2, *chosen)
        files = {path: os.stat(path) for path in glob.glob("/tmp/perf-*.map")}
    finally:
        for r in running:
            r.__exit__()
    for how in NAMED:
        stacks = user_part(got.stacks, how)
        assert sum(c for _, c in stacks) > 0, how
        # Before the leaf has set up its frame, its caller is not found.
        named = sum(c for s, c in stacks if s in (["main", "jit_outer(int)", "jit_leaf"],
                                                  ["main", "jit_outer(int)"],
                                                  ["main", "jit_leaf"]))
        assert named == sum(c for _, c in stacks), (how, stacks, got.stderr, files)
    for how in UNNAMED:
        stacks = user_part(got.stacks, how)
        assert sum(c for _, c in stacks) > 0, how
        assert all(s[0] == "main" and s[-1].startswith("[anon+0x")
                   for s, _ in stacks), (how, stacks)


@pytest.mark.parametrize("how", ["map", "dump"])
def test_by_hand_the_files_are_opened_by_path(program, tmp_path, how):
    with Running(program, how, tmp_path) as pid:
        raw = subprocess.run([f"{BUILD}/prof-bpf", "-d", "1", "-p", str(pid)], capture_output=True,
                             timeout=60, check=True).stdout
        named = subprocess.run([f"{BUILD}/prof-symd"], input=raw, capture_output=True, timeout=60,
                               check=True).stdout
        folded = subprocess.run([f"{BUILD}/prof-export", "-f", "folded"], input=named,
                                capture_output=True, timeout=60, check=True).stdout.decode()
    stacks = [(line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1]))
              for line in folded.splitlines()]
    stacks = user_part(stacks, how)
    assert sum(c for _, c in stacks) > 0
    assert all(s[1] == "jit_outer(int)" for s, _ in stacks), stacks


def test_a_map_that_is_written_when_its_process_exits_is_found(program, tmp_path):
    got = record(tmp_path, command=[program, "exit", "x"])
    stacks = user_part(got.stacks, "exit")
    assert sum(c for _, c in stacks) > 0
    assert all(s[1] == "jit_outer(int)" for s, _ in stacks), stacks
    for left in glob.glob("/tmp/perf-*.map"):
        if (os.stat(left).st_mtime > time.time() - 10
                and b"jit_outer(int)" in open(left, "rb").read()):
            os.unlink(left)


def dumped(pid):
    """The names of a process's frames, leaf first, while it is in its generated code."""
    for _ in range(50):
        out = subprocess.run([f"{BUILD}/prof-dump", str(pid)], capture_output=True, text=True,
                             timeout=60, check=True)
        names = [line.split(" ", 2)[2] for line in out.stdout.splitlines()[1:]]
        if names[0].startswith(("jit_", "[anon+")):
            return names
    raise AssertionError("it is never there")


def test_a_dump_has_the_same_names(program, tmp_path):
    for how in NAMED + UNNAMED:
        if how == "late":
            continue
        with Running(program, how, tmp_path if "dump" in how else tmp_path / how) as pid:
            of = pid
            while how in ("inner", "fork", "dumpfork"):
                with open(f"/proc/{of}/task/{of}/children") as f:
                    children = f.read().split()
                if not children:
                    break
                of = int(children[0])
            names = dumped(of)
        assert "main" in names, (how, names)
        called = names[:names.index("main")]
        if how in NAMED:
            assert called in (["jit_leaf", "jit_outer(int)"], ["jit_outer(int)"]), (how, names)
        else:
            assert called and all(name.startswith("[anon+0x") for name in called), (how, names)
