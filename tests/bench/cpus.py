#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure how a profiler's cpu time grows with the number of cpus, in an emulated machine.

On each virtual cpu a program runs for a tenth of the time, so that this machine's cpus are enough
for all of them. Prints the cpu time of all tools and the samples, each for a second. Emulated code
is slow: compare points within one run."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "vm")]
import guest  # noqa: E402
import kernels  # noqa: E402
from measure import BUILD  # noqa: E402

CPUS = (1, 2, 4, 8)
HZ = 199
# Their difference leaves out what a run costs once.
SHORT, LONG = 8, 28
TOOLS = ("profpipe", "prof-bpf", "prof-deltas", "prof-symd", "prof-export")
# Starts one process for each cpu, which works for 10 ms of 100.
SOURCE = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (long i = 0; i < cpus; i++) {
		cpu_set_t set;

		if (fork())
			continue;
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		sched_setaffinity(0, sizeof(set), &set);
		for (;;) {
			const double end = now(CLOCK_PROCESS_CPUTIME_ID) + 0.01;

			while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
				;
			usleep(90000);
		}
	}
	for (;;)
		pause();
}
"""
STEPS = "".join(f"""
step run{d} 240 'tenth & sleep 3; profpipe record -q -F {HZ} -d {d} -o /out/{d}.prof \\
    --summary /out/{d}.json'
""" for d in (SHORT, LONG))


def make_root(folder):
    root = guest.Root()
    root.program("/bin/busybox")
    root.copy(f"{guest.HERE}/init", "/init", 0o755)
    for tool in TOOLS:
        subprocess.run(["strip", "-g", "-o", f"{folder}/{tool}", f"{BUILD}/{tool}"], check=True)
        root.program(f"{folder}/{tool}", f"/test/{tool}")
    with open(f"{folder}/tenth.c", "w") as f:
        f.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-o", f"{folder}/tenth", f"{folder}/tenth.c"], check=True)
    root.program(f"{folder}/tenth", "/test/tenth")
    root.put("/test/steps", STEPS.encode())
    root.write(f"{folder}/initramfs")


def measure(kernel, folder, cpus):
    """Cpu time of all tools in percent of a core, and samples, of a second."""
    files, _ = guest.run(kernel, f"{folder}/initramfs", f"{folder}/{cpus}",
                         "mitigations=off init_on_alloc=0", cpus=cpus)
    if f"{LONG}.json" not in files:
        sys.exit(files.get(f"run{LONG}.err", b"the machine ended early").decode(errors="replace"))
    short, long = (json.loads(files[f"{d}.json"]) for d in (SHORT, LONG))
    seconds = long["duration_s"] - short["duration_s"]
    return (100 * (long["cost"]["cpu_s"] - short["cost"]["cpu_s"]) / seconds,
            (long["samples"] - short["samples"]) / seconds)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--cpus", type=int, action="append", help="only this; may be repeated")
    args = a.parse_args()
    points = args.cpus or CPUS
    with tempfile.TemporaryDirectory(prefix="profpipe-bench.") as folder:
        kernel, version = kernels.Archive("build/vm").fetch("6.1")
        make_root(folder)
        rows = [measure(kernel, folder, n) for n in points]
    print(f"\n{f'virtual cpus, Linux {version}':40}" + "".join(f"{n:>10}" for n in points))
    print(f"{'profpipe, % of one emulated core':40}" + "".join(f"{c:>10.2f}" for c, _ in rows))
    print(f"{'samples a second':40}" + "".join(f"{s:>10.1f}" for _, s in rows))


main()
