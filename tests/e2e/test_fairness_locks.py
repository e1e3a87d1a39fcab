# SPDX-License-Identifier: Apache-2.0
"""Users who hold the locks of their own files for ever: a thread writes to a file from a page that
lies on its user's file system and never comes. XFS reads files only under this lock, and nothing
ends a process that waits for it."""
import contextlib
import os
import subprocess

import pytest
from attacks import mounted, new_kit, started
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
