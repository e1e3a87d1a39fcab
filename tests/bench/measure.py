# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of processes and BPF programs, according to the kernel."""
import json
import os
import re
import resource
import shutil
import subprocess

BUILD = os.path.abspath(os.environ.get("PROFPIPE_BUILD", "build/release"))


def children_cpu():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def tree(pid):
    out = [pid]
    for p in out:
        try:
            with open(f"/proc/{p}/task/{p}/children") as f:
                out += [int(c) for c in f.read().split()]
        except OSError:
            pass
    return out


def pss(pids):
    total = 0
    for p in pids:
        try:
            m = re.search(r"^Pss: +(\d+)", open(f"/proc/{p}/smaps_rollup").read(), re.M)
            total += int(m.group(1)) if m else 0
        except OSError:
            pass
    return total / 1024


def bpf_programs():
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    out = subprocess.run([tool, "prog", "show", "-j"], capture_output=True, text=True).stdout
    return {p["id"]: p for p in json.loads(out or "[]")}


def bpf_maps():
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    out = subprocess.run([tool, "map", "show", "-j"], capture_output=True, text=True).stdout
    return {m["id"]: m.get("bytes_memlock", 0) for m in json.loads(out or "[]")}


def cpu_of(pids):
    """Seconds that the threads of these processes ran."""
    total = 0
    for p in pids:
        try:
            for t in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{t}/schedstat") as f:
                    total += int(f.read().split()[0])
        except OSError:
            pass
    return total / 1e9
