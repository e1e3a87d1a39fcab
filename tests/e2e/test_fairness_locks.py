# SPDX-License-Identifier: Apache-2.0
"""Users who hold locks for ever, with a page that lies on their file system and never comes.
Nothing ends a process that waits for such a lock.

- The lock of a file of theirs: a thread writes to it from this page. XFS reads files only under
  this lock.
- The lock of a process's folder in /proc, or of /proc: a thread reads the folder into this page,
  another one waits to make a file there. Then names in this folder can no longer be looked up.
"""
import contextlib
import os
import subprocess
import threading
import time

import pytest
from attacks import mounted, new_kit, started
from conftest import BUILD
from fairness import ATTACKER, assert_unharmed, beside, native_victim, python_victim

FILES = 4
# Maps a file and runs in it, once the file's lock is held by a thread.
LOCKER = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static char *never;

static void *hold(void *file)
{
	pwrite(open(file, O_WRONLY), never, 16, 4096 * 100);
	return NULL;
}

static void *run(void *code)
{
	((void (*)(void))code)();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char *code[16];

	never = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0) + 4096 * 3;
	for (int i = 2; i < argc; i++) {
		code[i] = mmap(NULL, 1 << 16, PROT_READ | PROT_EXEC, MAP_SHARED,
			       open(argv[i], O_RDONLY), 0);
		if (*(volatile char *)(code[i] + 64) != (char)0xeb)
			return 1;
		pthread_create(&thread, NULL, hold, argv[i]);
	}
	usleep(300000);
	for (int i = 2; i < argc; i++)
		pthread_create(&thread, NULL, run, code[i] + 64);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""


@pytest.fixture(scope="module")
def kit():
    with new_kit() as k:
        yield k


@pytest.fixture
def xfs(kit):
    """A folder on a new file system."""
    image, folder = kit.folder / "image", kit.folder / "xfs"
    folder.mkdir(exist_ok=True)
    image.touch()
    os.truncate(image, 400 << 20)
    subprocess.run(["mkfs.xfs", "-q", "-f", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    os.chmod(folder, 0o755)
    yield folder
    subprocess.run(["umount", folder], check=True)


@contextlib.contextmanager
def lockers(kit, folder, uids):
    """For each user, a program that runs in files there whose locks it holds."""
    program = kit.build("locker", LOCKER)
    # The servers end first, and with them all that waits for their pages.
    with contextlib.ExitStack() as programs, contextlib.ExitStack() as mounts:
        for uid in uids:
            mount = mounts.enter_context(mounted(kit.folder, uid))
            files = [folder / f"{uid}.{i}" for i in range(FILES)]
            for file in files:
                # An ELF file with an endless loop, and holes that are in no cache.
                file.write_bytes(b"\177ELF\2\1\1".ljust(64, b"\0") + b"\xeb\xfe")
                os.truncate(file, 1 << 20)
                os.chown(file, uid, uid)
            programs.enter_context(started([(uid, [program, mount / "f0", *files])]))
        yield


@pytest.mark.check_all
@pytest.mark.parametrize("victim", [native_victim, python_victim], ids=["native", "python"])
@pytest.mark.parametrize("users", [1, 3])
def test_locks_of_files_that_are_held_for_ever(tmp_path, chain, kit, xfs, users, victim):
    with lockers(kit, xfs, range(ATTACKER, ATTACKER + users)):
        got = beside(tmp_path, chain, seconds=10, delay=2, victim=victim)
        # Its rows were requested from prof-deltas while that waited.
        assert "waited in the kernel for a file: starting another one" in got.stderr, got.stderr
    assert_unharmed(got)


# Its children spin, once their folders in /proc are locked, or what FOLDER names.
# "reader PAGE_FILE COUNT [FOLDER]".
READER = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *never;

static void *list(void *folder)
{
	syscall(SYS_getdents64, open(folder, O_RDONLY | O_DIRECTORY), never, 4096);
	return NULL;
}

static void *make(void *folder)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/x", (char *)folder);
	mkdir(path, 0755);
	return NULL;
}

int main(int argc, char **argv)
{
	static char folder[16][32];
	pid_t child[16];
	pthread_t thread;
	int n = atoi(argv[2]);

	never = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE, open(argv[1], O_RDONLY),
		     0) + 4096 * 3;
	for (int i = 0; i < n; i++) {
		child[i] = fork();
		if (!child[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			raise(SIGSTOP);
			for (;;)
				;
		}
		waitpid(child[i], NULL, WUNTRACED);
		if (argc > 3)
			snprintf(folder[i], sizeof(folder[i]), "%s", argv[3]);
		else
			sprintf(folder[i], "/proc/%d", child[i]);
		pthread_create(&thread, NULL, list, folder[i]);
	}
	usleep(300000);
	for (int i = 0; i < n; i++)
		pthread_create(&thread, NULL, make, folder[i]);
	usleep(300000);
	for (int i = 0; i < n; i++)
		kill(child[i], SIGCONT);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""


@contextlib.contextmanager
def other_proc():
    """A mount namespace with an instance of procfs. Yields a prefix for commands: others who look
    through /proc shall not wait for the locks that a test holds there."""
    with subprocess.Popen(["unshare", "-m", "--propagation", "slave", "sh", "-c",
                           "mount -t proc proc /proc && echo ready && exec sleep 1000"],
                          stdout=subprocess.PIPE) as p:
        try:
            assert p.stdout.readline() == b"ready\n"
            yield ["nsenter", "-m", "-t", str(p.pid)]
        finally:
            p.kill()


def ending(mount, seconds):
    """Ends a FUSE file system after some seconds, unless it is cancelled."""
    timer = threading.Timer(seconds, subprocess.run, (["umount", "-f", mount],))
    timer.start()
    return timer


@pytest.mark.parametrize("when, folder", [
    pytest.param("before", [], id="before-process"),
    pytest.param("during", ["/proc"], id="during-root"),
    pytest.param("before", ["/proc"], id="before-root", marks=pytest.mark.check_all),
    pytest.param("during", [], id="during-process", marks=pytest.mark.check_all)])
def test_locks_of_folders_in_proc(tmp_path, kit, when, folder):
    """Neither the launcher nor prof-bpf waits for such a lock."""
    program, out = kit.build("reader", READER), tmp_path / "out.folded"
    # Who waits for a page cannot be killed, so the file system ends before the attackers.
    with (contextlib.ExitStack() as attackers, mounted(kit.folder, ATTACKER) as mount,
          other_proc() as inside):
        attack = started([(ATTACKER, [program, mount / "f0", "4", *folder])], by=inside)
        # A launcher that waits can only be ended by the end of the file system.
        attackers.callback(ending(mount, 60).cancel)
        run = [*inside, f"{BUILD}/profpipe", "record", "-v", "-d", "4", "-o", out]
        if when == "before":
            attackers.enter_context(attack)
        with subprocess.Popen(run, stderr=subprocess.PIPE, text=True) as p:
            log = iter(p.stderr.readline, "")
            assert any("sampling has begun" in line for line in log)
            began = time.monotonic()
            if when == "during":
                attackers.enter_context(attack)
            rest = "".join(log)
            assert p.wait() == 0 and time.monotonic() - began < 4 + 3, rest
    assert "nothing was lost" in rest and "reader" in out.read_text(), rest
