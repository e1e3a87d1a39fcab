# SPDX-License-Identifier: Apache-2.0
"""A user with more processes than the kernel's map of processes has places. The map has its size
from the beginning of the run, so these processes begin later. A victim of another user begins after
them, and has all its stacks, with their Python frames."""
import re
import subprocess
import sys

import pytest
from attacks import started
from fairness import ATTACKER, VICTIM, as_user, assert_on_time, end, reachable, recorded

CHILDREN = 4500  # the map has 4,096 places if fewer than 1,024 processes run at the start
# Runs for a while, so that it is sampled and its files have slots. Then it forks processes that
# only wait.
HERD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	const time_t end = time(0) + 4;

	puts("ready");
	fflush(stdout);
	while (time(0) < end)
		for (volatile int i = 0; i < 100000; i++)
			;
	for (int i = 0; i < atoi(argv[1]); i++) {
		const pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			prctl(PR_SET_PDEATHSIG, 9);
			pause();
			_exit(0);
		}
	}
	pause();
}
"""
# A Python program. It has its name once it is known.
VICTIMS = """
import time
def victims_loop(end):
    while time.monotonic() < end:
        sum(range(1000))
victims_loop(time.monotonic() + 1)
with open("/proc/self/comm", "w") as f:
    f.write("herdless")
victims_loop(time.monotonic() + 60)
"""


@pytest.fixture(scope="module")
def herd(tmp_path_factory):
    folder = tmp_path_factory.mktemp("herd")
    reachable(folder)
    (folder / "herd.c").write_text(HERD)
    subprocess.run(["gcc", "-O1", "-o", folder / "herd", folder / "herd.c"], check=True)
    return folder / "herd"


def stacks_of(got, comm):
    return [(s, n) for s, n in got.stacks if s[0] == comm]


@pytest.mark.check_all
def test_a_user_with_more_processes_than_places_harms_no_other(tmp_path, herd):
    with started([(ATTACKER, [herd, str(CHILDREN)])]):
        # A process of its own: that of the shell has a place from the beginning.
        victim = as_user(VICTIM, ["sh", "-c", f"sleep 7; {sys.executable} -c '{VICTIMS}'; true"])
        try:
            got = recorded(tmp_path, 12, "-F", "99")
        finally:
            end([victim])
    mine = stacks_of(got, "herdless")
    samples = sum(n for _, n in mine)
    whole = sum(n for s, n in mine if any("victims_loop" in frame for frame in s))
    print(samples, whole, got.stderr)
    assert samples >= 40, (samples, got.stderr)
    assert whole >= 0.99 * samples, (whole, samples, mine[:5], got.stderr)
    assert_on_time(got)
    assert re.search(r"user 62\d\d\d takes more than its share of processes with a place",
                     got.stderr), got.stderr
