# SPDX-License-Identifier: Apache-2.0
"""The cost of an ordinary user's idle processes, which are never sampled, to the profiles of
others."""
import contextlib
import subprocess

import pytest
from fairness import ATTACKER, VICTIM, as_user, assert_unharmed, beside, end, reachable

# In a namespace of its own, many mounts, whose places have paths of nearly 2 KiB. Then it maps
# files, each on a mount of its own: mounts FOLDER MOUNTS FILES.
MOUNTS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#define MUST(x) do { if (x) { perror(#x); exit(1); } } while (0)
static void put(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);
	MUST(fd < 0 || write(fd, text, strlen(text)) < 0);
	close(fd);
}
int main(int argc, char **argv)
{
	char text[300], page[4096] = "\177ELF\2\1\1";
	const unsigned uid = getuid(), gid = getgid();
	MUST(unshare(CLONE_NEWUSER | CLONE_NEWNS));
	put("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "0 %u 1", uid);
	put("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "0 %u 1", gid);
	put("/proc/self/gid_map", text);
	MUST(mount(0, "/", 0, MS_REC | MS_PRIVATE, 0));
	MUST(mount("none", argv[1], "tmpfs", 0, "mode=755") || chdir(argv[1]));
	memset(text, 'x', 240);
	text[240] = 0;
	for (int i = 0; i < 7; i++)
		MUST(mkdir(text, 0755) || chdir(text));
	for (int i = 0; i < atoi(argv[2]); i++) {
		snprintf(text, sizeof(text), "d%d", i);
		MUST(mkdir(text, 0755) || mount(text, text, 0, MS_BIND, 0));
	}
	for (int i = 0; i < atoi(argv[3]); i++) {
		snprintf(text, sizeof(text), "f%d", i);
		int fd = open(text, O_RDWR | O_CREAT, 0755);
		MUST(fd < 0 || write(fd, page, sizeof(page)) != sizeof(page) || close(fd));
		MUST(mount(text, text, 0, MS_BIND, 0));
		fd = open(text, O_RDONLY);
		MUST(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED);
		close(fd);
	}
	prctl(PR_SET_DUMPABLE, 1);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""
# Idle processes, each under another of its user's subordinate ids: ids PROCESSES MAPPINGS FILE.
IDS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#define MUST(x) do { if (x) { perror(#x); exit(1); } } while (0)
int main(int argc, char **argv)
{
	const int count = atoi(argv[1]), fd = open(argv[3], O_RDONLY);
	for (int i = 0; i < atoi(argv[2]); i++) {
		/* Pages between them keep the kernel from merging them. */
		MUST(mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, i % 2 * 4096l) ==
		     MAP_FAILED);
		MUST(mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	}
	MUST(unshare(CLONE_NEWUSER));
	puts("map");
	fflush(stdout);
	getchar();
	MUST(setresgid(0, 0, 0) || setgroups(0, 0) || setresuid(0, 0, 0));
	for (int i = 0; i < count; i++) {
		const int child = fork();
		MUST(child < 0);
		if (!child) {
			prctl(PR_SET_PDEATHSIG, 9);
			MUST(setresuid(i + 1, i + 1, i + 1));
			for (;;)
				pause();
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""


def compiled(folder, name, source):
    (folder / f"{name}.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-o", folder / name, folder / f"{name}.c"], check=True)
    return folder / name


@contextlib.contextmanager
def idle(argv, on_map=None):
    """Runs a program of the attacker until it is idle. on_map: what root does for it before."""
    p = as_user(ATTACKER, argv, nice=19, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if on_map:
            assert p.stdout.readline() == b"map\n"
            on_map(p.pid)
            p.stdin.write(b"\n")
            p.stdin.flush()
        assert p.stdout.readline() == b"ready\n"
        yield
    finally:
        end([p])


@pytest.mark.check_all
def test_a_long_table_of_mounts_costs_others_nothing(tmp_path, chain):
    """Whether a file may hang is told by its mount, which is searched in the process's table."""
    reachable(tmp_path)
    folder = tmp_path / "mounts"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    program = compiled(tmp_path, "mounting", MOUNTS)
    with idle([program, folder, "8000", "800"]):
        got = beside(tmp_path, chain, seconds=8)
    assert_unharmed(got)
    cost = got.summary["cost"]["tools"]["prof-bpf"]
    # Of two cpus for eight seconds: the owner's part of the time, and what began before its charge,
    # which is more on a slow machine. Without bounds it takes all 16 s.
    assert cost["cpu_s"] < 12, cost


def test_idle_processes_under_many_ids_leave_room_for_sampled_ones(tmp_path, chain):
    """The victim's user already has more than a fair share of so many owners."""
    def give_ids(pid):
        for kind in "uid", "gid":
            with open(f"/proc/{pid}/{kind}_map", "w") as f:
                f.write("0 100000 65536\n")

    reachable(tmp_path)
    (tmp_path / "page").write_bytes(b"\xcc" * 8192)
    program = compiled(tmp_path, "ids", IDS)
    with contextlib.ExitStack() as stack:
        sleeping = [as_user(VICTIM, ["sleep", "600"]) for _ in range(40)]
        stack.callback(end, sleeping)
        stack.enter_context(idle([program, "2000", "54", tmp_path / "page"], give_ids))
        got = beside(tmp_path, chain)
    assert_unharmed(got)
