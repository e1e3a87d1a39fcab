# SPDX-License-Identifier: Apache-2.0
"""Programs that become undumpable by their exec: set-id ones, ones with file capabilities, ones
that their user may not read. The kernel writes an exit record in the middle of such an exec."""
import os
import shutil
import struct
import subprocess
import tempfile

import pytest

from conftest import record

GAMES, NOBODY = 5, 65534
HZ = 499
SECONDS = 0.8
CAP_NET_RAW = 13
SPINNER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static volatile unsigned long turns;
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) void spins(void) { for (int i = 0; i < 100000; i++) turns++; }
int main(int argc, char **argv)
{
	char spent[64] = "";
	for (double end = now() + atof(argv[1]); now() < end;)
		spins();
	FILE *f = fopen("/proc/self/schedstat", "r");
	if (!f || !fgets(spent, sizeof(spent), f))
		return 1;
	printf("ended %s\n", spent);
	return 0;
}
"""


def as_nobody(*argv):
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *argv]


def make_setuid(path):
    os.chown(path, GAMES, 0)
    path.chmod(0o4755)


def make_setgid(path):
    os.chown(path, 0, 60)
    path.chmod(0o2755)


def make_unreadable(path):
    path.chmod(0o711)


def make_capable(path):
    revision_2, effective = 0x02000000, 1
    os.setxattr(path, "security.capability",
                struct.pack("<5I", revision_2 | effective, 1 << CAP_NET_RAW, 0, 0, 0))


KINDS = {"setuid": (make_setuid, False), "setgid": (make_setgid, False),
         "unreadable": (make_unreadable, True), "capable": (make_capable, True)}


@pytest.fixture
def folder():
    """One that everybody may enter."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        yield name


@pytest.fixture
def spinner(folder, tmp_path):
    (tmp_path / "spinner.c").write_text(SPINNER)
    subprocess.run(["gcc", "-O2", "-g", "-o", f"{folder}/plain", tmp_path / "spinner.c"],
                   check=True)

    def build(kind):
        path = type(tmp_path)(folder) / kind
        shutil.copy(f"{folder}/plain", path)
        KINDS[kind][0](path)
        return as_nobody(path, str(SECONDS)) if KINDS[kind][1] else [path, str(SECONDS)]

    return build


def check(got, said, kind, programs=1):
    """All of the programs ran to their end, and were sampled while they did."""
    ended = [int(line.split()[1]) for line in said.splitlines() if line.startswith("ended ")]
    assert len(ended) == programs, (said, got.stderr)
    expected = sum(ended) / 1e9 * HZ
    samples = sum(n for s, n in got.stacks if s[0].split("-")[0] == kind and "spins" in s)
    # A virtual machine loses ticks, and where in a tick it starts and ends is a matter of chance.
    assert samples >= 0.9 * expected - expected ** 0.5, (samples, expected, got.stderr)
    assert got.summary["complete"] >= 0.95 * got.summary["samples"], got.summary


def said_by(folder, argv, through="exec %s"):
    """A command whose output goes into a file, since that of profpipe is its own."""
    return ["sh", "-c", through % f'"$@" >> {folder}/said', "sh", *map(str, argv)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_undumpable_command_runs_to_its_end_and_is_sampled(tmp_path, folder, spinner, kind):
    got = record(tmp_path, "-F", HZ, command=said_by(folder, spinner(kind)))
    check(got, open(f"{folder}/said").read(), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_undumpable_children_of_a_command_are_sampled(tmp_path, folder, spinner, kind):
    argv = spinner(kind)
    got = record(tmp_path, "-F", HZ, command=said_by(folder, argv, through="(%s & wait); true"))
    check(got, open(f"{folder}/said").read(), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_stays_selected_when_an_exec_makes_it_undumpable(tmp_path, folder, spinner, kind):
    with subprocess.Popen(said_by(folder, spinner(kind), through="sleep 2; exec %s")) as p:
        got = record(tmp_path, "-F", HZ, "-p", str(p.pid))
    check(got, open(f"{folder}/said").read(), kind)


def test_undumpable_programs_of_the_host_are_sampled(tmp_path, folder, spinner):
    with subprocess.Popen(said_by(folder, spinner("setuid"), through="sleep 2; exec %s")):
        got = record(tmp_path, "-F", HZ, "-d", "5")
    got.summary["complete"] = got.summary["samples"]  # of others, too
    check(got, open(f"{folder}/said").read(), "setuid")


def test_many_short_undumpable_programs_in_a_tree_are_sampled(tmp_path, folder, spinner):
    path = spinner("setuid")[0]
    tree = f"(for i in 1 2 3 4 5; do %s; done) & for i in 1 2 3 4 5; do (%s); done; wait" % (
            (f"{path} 0.2 >> {folder}/said",) * 2)
    got = record(tmp_path, "-F", HZ, command=["sh", "-c", tree])
    check(got, open(f"{folder}/said").read(), "setuid", programs=10)
