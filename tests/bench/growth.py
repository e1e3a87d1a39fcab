#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how a profiler's cpu time grows: with samples a second, programs started a second,
processes at rest, and mappings of a process.

Prints a table: cpu time of all its processes, in percent of one core, at each point. One thing
grows at a time; the rest of the host is what it is. --peer COMMAND measures another profiler over
the same loads; {hz} in it is the rate. Compare points within one run."""
import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import BUILD, cpu_of, tree  # noqa: E402

SETTLE = 6
POINTS = {
    "samples a second and cpu": (20, 99, 499, 1999),
    "programs started a second": (0, 50, 100, 250, 500),
    "processes at rest": (100, 1000, 10000),
    "mappings of a process": (10, 1000, 10000, 60000),
}
# A host of one kind. rest: this number of processes wait. map: maps its own code this many
# times, and runs. start: starts this number of programs a second. Ends with its parent.
SOURCE = r"""
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	const long n = atol(argv[2]);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(argv[1], "rest")) {
		for (long i = 0; i < n; i++) {
			if (fork())
				continue;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		puts("ready");
		fflush(stdout);
		for (;;)
			pause();
	}
	if (!strcmp(argv[1], "map")) {
		const int fd = open("/proc/self/exe", O_RDONLY);
		char *at = mmap(NULL, 8192ul * n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		/* The room between them must not count as mappings. */
		munmap(at, 8192ul * n);
		for (long i = 0; i < n; i++)
			if (mmap(at + 8192ul * i, 4096, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
				return 1;
		puts("ready");
		fflush(stdout);
		for (volatile unsigned long k = 0;; k++)
			;
	}
	puts("ready");
	fflush(stdout);
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		char *args[] = { "true", NULL };
		pid_t pid;

		while (n == 0)
			pause();
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, args, environ) == 0)
			waitpid(pid, NULL, 0);
		next.tv_nsec += 1000000000 / n;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
"""


@contextlib.contextmanager
def running(commands):
    """Starts these programs, each after the one before has reported that it is ready, if it reports
    anything."""
    children = []
    try:
        for argv in commands:
            c = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            children.append(c)
            if argv[0] != "sh" and c.stdout.readline() != b"ready\n":
                sys.exit(f"{' '.join(argv)}: could not make its load")
        yield
    finally:
        for c in children:
            c.kill()
            c.wait()


def load(folder, what, n):
    host = f"{folder}/host"
    if what == "samples a second and cpu":
        return [["sh", "-c", "while :; do :; done"]] * os.cpu_count()
    if what == "programs started a second":
        return [[host, "start", str(n)]]
    return [[host, "rest" if what == "processes at rest" else "map", str(n)]]


def measure(argv, seconds):
    """The cpu use of a profiler that runs until it is interrupted, in percent of one core."""
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(SETTLE)
        # Processes that end meanwhile do not count; there are few such workers.
        before, t0 = {q: cpu_of([q]) for q in tree(p.pid)}, time.time()
        time.sleep(seconds)
        after, took = {q: cpu_of([q]) for q in tree(p.pid)}, time.time() - t0
        if p.poll() is not None:
            sys.exit(f"{argv[0]} ended by itself with status {p.returncode}")
    finally:
        if p.poll() is None:
            p.send_signal(signal.SIGINT)
        p.wait()
    return 100 * sum(max(v - before.get(q, 0), 0) for q, v in after.items()) / took


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-s", "--seconds", type=int,
                   default=int(os.environ.get("SECONDS_PER_RUN", 20)) // 2)
    a.add_argument("--part", action="append", choices=[w.split()[0] for w in POINTS],
                   help="only this; may be repeated")
    a.add_argument("--peer", action="append", default=[], metavar="COMMAND",
                   help="another profiler, beside profpipe; may be repeated")
    args = a.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with tempfile.TemporaryDirectory(prefix="profpipe-bench.") as folder:
        with open(f"{folder}/host.c", "w") as f:
            f.write(SOURCE)
        subprocess.run(["gcc", "-O1", "-o", f"{folder}/host", f"{folder}/host.c"], check=True)
        os.chmod(folder, 0o755)
        ours = f"{BUILD}/profpipe record -q -F {{hz}} -o {folder}/out.prof"
        names = ["profpipe"]
        for c in args.peer:
            word = shlex.split(c)[0]
            names.append(word if os.path.basename(word) in names else os.path.basename(word))
        for what, points in POINTS.items():
            if args.part and what.split()[0] not in args.part:
                continue
            print(f"\n{what:28}" + "".join(f"{n:>12}" for n in points)
                  + "   % of one core")
            rows = {name: [] for name in names}
            for n in points:
                hz = n if what.startswith("samples") else 20
                with running(load(folder, what, n)):
                    for name, command in zip(names, [ours, *args.peer]):
                        argv = shlex.split(command.replace("{hz}", str(hz)))
                        rows[name].append(measure(argv, args.seconds))
            for name, values in rows.items():
                print(f"{name:28}" + "".join(f"{v:>12.2f}" for v in values), flush=True)


main()
