#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compare prof-deltas with libdw over many files.

    compare.py [--every N] [--limit N] [--jobs N] PATH...

A PATH that is a folder stands for every x86-64 ELF file with an executable segment below it. With
--every N, each N-th row is checked; with --limit N, an even selection of N files, always the same.
Prints disagreements, what prof-deltas passed over by kind, and a total; exits 1 if there are
disagreements.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys

BUILD = os.environ.get("PROFPIPE_BUILD", "build/release")


def is_elf(path):
    try:
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        return False
    # 64-bit, little-endian, ET_EXEC or ET_DYN, x86-64.
    return (len(head) == 20 and head[:6] == b"\x7fELF\x02\x01" and head[16] in (2, 3)
            and head[18:20] == b"\x3e\x00")


def find(paths):
    seen, files = set(), []
    for top in paths:
        tree = os.walk(top)
        if os.path.isfile(top):
            tree = [(os.path.dirname(top), [], [os.path.basename(top)])]
        for folder, _, names in tree:
            for name in sorted(names):
                path = os.path.join(folder, name)
                real = os.path.realpath(path)
                if real not in seen and os.path.isfile(real) and is_elf(real):
                    seen.add(real)
                    files.append(real)
    return sorted(files)


def select(files, limit):
    if not limit or limit >= len(files):
        return files
    return [files[i * len(files) // limit] for i in range(limit)]


FIGURES = ("rows", "states", "unsupported", "refused", "unknown", "derived", "disagreements")


def compare(path, every=1):
    """Returns the verdict line, and figures by name. A file without rows is no disagreement if
    prof-deltas finds no call frame information in it."""
    deltas = subprocess.Popen([BUILD + "/prof-deltas", "--registers", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    oracle = subprocess.run([BUILD + "/tests/cfi-oracle", "-n", str(every), path],
                            stdin=deltas.stdout, capture_output=True, text=True)
    deltas.stdout.close()
    complaint = deltas.stderr.read().decode()
    deltas.stderr.close()
    failed = deltas.wait()
    line = oracle.stdout.splitlines()[-1] if oracle.stdout else ""
    figures = {k: int(v) for k, v in re.findall(r" ([a-z]+)=(\d+)", line)}
    if failed or set(FIGURES) - set(figures):
        complaint = complaint or oracle.stderr or f"{path}: no answer\n"
        return complaint, dict.fromkeys(FIGURES, 0) | {"disagreements": 1}
    return oracle.stdout, figures


def compare_all(files, every=1, jobs=2):
    """(figures in all, list of verdicts that disagree)"""
    total, bad = dict.fromkeys(FIGURES, 0), []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for said, figures in pool.map(lambda path: compare(path, every), files):
            for name in FIGURES:
                total[name] += figures[name]
            if figures["disagreements"]:
                bad.append(said)
    return total, bad


def skipped(files):
    """The counts of what prof-deltas skipped, by kind: the end of its line of totals."""
    total = collections.Counter()
    for i in range(0, len(files), 1000):
        said = subprocess.run([BUILD + "/prof-deltas", "--stats", *files[i:i + 1000]],
                              capture_output=True, text=True).stdout
        skipped = said.splitlines()[-1].partition(" skipped=")[2]
        total.update({k: int(v) for k, v in re.findall(r" ([a-z-]+)=(\d+)", skipped)})
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    files = select(find(args.paths), args.limit)
    total, bad = compare_all(files, args.every, args.jobs)
    sys.stdout.write("".join(bad))
    print("passed over:", *(f"{kind}={n}" for kind, n in sorted(skipped(files).items())))
    print(f"files={len(files)}", *(f"{name}={n}" for name, n in total.items()))
    return 1 if total["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main())
