#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what profpipe costs and how complete its stacks are, on a busy host, beside other
profilers.

Prints a table. Compare ratios within one run: absolute times differ between machines.
--seconds, or SECONDS_PER_RUN, is 20 by default."""
import argparse
import collections
import json
import mmap
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

# Seconds between a profiler's start and its measurement: other profilers take that long to load.
SETTLE = 10
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare  # noqa: E402
import cpython  # noqa: E402
import giant  # noqa: E402
from measure import BUILD, bpf_maps, bpf_programs, children_cpu, cpu_of, pss, tree  # noqa: E402

STATS = "/proc/sys/kernel/bpf_stats_enabled"

SOURCE = ("\n".join(f"static int f{i}(int *a, int k) {{ int s = 0; "
                    f"for (int i = 0; i < k; i++) "
                    f"{{ s += a[i] * ({i} + i); if (s & 1) a[i] ^= s; }} "
                    f"return s; }}" for i in range(200))
          + "\nint main(void) { int a[64] = {0}, s = 0;"
          + "".join(f"s += f{i}(a, 64);" for i in range(200)) + "return s; }\n")
SQL = ("create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from "
       "c where x<60000) insert into t select x, x*x%1013 from c;"
       "select b,count(*) from t group by b order by 2 desc limit 1;")
LANE = r"""
cd "$1"
while :; do
	gcc -O2 -c -o g$$.o big.c & clang -O2 -c -o c$$.o big.c; wait
	head -c 3000000 /usr/bin/gdb | xz -6 -c >/dev/null
	openssl speed -seconds 1 -bytes 8192 aes-256-cbc >/dev/null 2>&1
	perl -e 'my %h; for my $i (1..200000){ $h{$i%997} .= chr(65+$i%26); }
		print length(join "", sort values %h), "\n"' >/dev/null
	sqlite3 <sql >/dev/null
	for i in $(seq 60); do /bin/true; done
done
"""


class Load:
    """A busy host: two lanes of compilers, xz, openssl, perl, sqlite3 and short processes, and a
    PostgreSQL under pgbench."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="profpipe-bench.")
        os.chmod(self.dir, 0o755)
        with open(f"{self.dir}/big.c", "w") as f:
            f.write(SOURCE)
        with open(f"{self.dir}/sql", "w") as f:
            f.write(SQL)
        self.children = [subprocess.Popen(["bash", "-c", LANE, "lane", self.dir],
                                          start_new_session=True, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL) for _ in range(2)]
        self.server = None
        self.postgres()
        time.sleep(2)
        return self

    def postgres(self):
        there = os.path.isdir("/usr/lib/postgresql")
        versions = sorted(os.listdir("/usr/lib/postgresql")) if there else []
        if not versions or os.geteuid() != 0:
            print("PostgreSQL: not there; the load goes without it", file=sys.stderr)
            return
        b = f"/usr/lib/postgresql/{versions[-1]}/bin"
        db = f"{self.dir}/db"
        os.mkdir(db)
        shutil.chown(db, "postgres")

        def su(*argv):
            return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *argv]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
        subprocess.run(su(f"{b}/initdb", "-D", db, "-A", "trust"), check=True, **quiet)
        self.server = subprocess.Popen(su(f"{b}/postgres", "-D", db, "-k", db, "-c",
                                          "listen_addresses="), start_new_session=True, **quiet)
        self.children.append(self.server)
        for _ in range(100):
            if subprocess.run(su(f"{b}/pg_isready", "-h", db), **quiet).returncode == 0:
                break
            time.sleep(0.1)
        subprocess.run(su(f"{b}/pgbench", "-h", db, "-i", "-s", "2", "postgres"), check=True,
                       **quiet)
        self.children.append(
                subprocess.Popen(su(f"{b}/pgbench", "-h", db, "-c", "2", "-T", "100000",
                                    "postgres"), start_new_session=True, **quiet))

    def __exit__(self, *_):
        for c in reversed(self.children):
            if c is self.server:
                # If it were killed, it would leave its shared memory in /dev/shm.
                c.send_signal(signal.SIGINT)
                try:
                    c.wait(30)
                except subprocess.TimeoutExpired:
                    pass
            try:
                os.killpg(c.pid, signal.SIGKILL)
            except OSError:
                pass
            c.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def kernel_stacks(before):
    """How many kernel stacks profpipe has taken so far, and in how many ns: two counters of its
    sampling program (bpf/programs/sample.bpf.c)."""
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    maps = json.loads(subprocess.run([tool, "map", "show", "-j"], capture_output=True,
                                     text=True).stdout or "[]")
    for m in maps:
        if m.get("name") == "counters" and m["id"] not in before:
            out = json.loads(subprocess.run([tool, "map", "dump", "id", str(m["id"]), "-j"],
                                            capture_output=True, text=True).stdout)
            sums = [sum(int.from_bytes(bytes(int(b, 16) for b in c["value"]), "little")
                        for c in e["values"]) for e in out]
            return sums[3], sums[4]
    return 0, 0


def run(argv, seconds, settle, stop=False):
    """Runs a profiler under the present load. Measures for `seconds`, after `settle` seconds: cpu
    time of all its processes, peak PSS and BPF maps in MiB, and BPF time per run of its perf_event
    program. stop: the profiler does not end by itself."""
    programs, maps, cpu0 = bpf_programs(), bpf_maps(), children_cpu()
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.append(p.stderr.read()))
    reader.start()
    time.sleep(settle)
    peak, begin = 0.0, cpu_of(tree(p.pid))
    first = {k: v for k, v in bpf_programs().items() if k not in programs}
    stacks = kernel_stacks(maps)
    t0 = time.time()
    while time.time() - t0 < seconds - 1 and p.poll() is None:
        time.sleep(1)
        peak = max(peak, pss(tree(p.pid)))
    took, steady = time.time() - t0, cpu_of(tree(p.pid)) - begin
    ticks = [(v["run_time_ns"] - first[k].get("run_time_ns", 0),
              v.get("run_cnt", 0) - first[k].get("run_cnt", 0))
             for k, v in bpf_programs().items()
             if k in first and v["type"] == "perf_event" and v.get("run_cnt")]
    stacks = [b - a for a, b in zip(stacks, kernel_stacks(maps))]
    memory = sum(v for k, v in bpf_maps().items() if k not in maps) / 2**20
    if stop and p.poll() is None:
        p.send_signal(signal.SIGINT)
    status = p.wait()
    reader.join()
    ns, n = max(ticks, default=(0, 0))
    return {"cpu_s": children_cpu() - cpu0, "steady": 100 * steady / took, "pss_mib": peak,
            "maps_mib": memory, "said": "".join(said), "status": status,
            "bpf_ns_per_run": ns / n if n else None, "bpf_runs": n, "kernel_stacks": stacks[0],
            "kernel_stacks_ns": stacks[1]}


def by_file(path):
    """Counts the truncated stacks of a text output by reason and by the file of the last frame."""
    out = collections.Counter()
    with open(path, errors="replace") as f:
        blocks = f.read().split("\n\n")
    for block in blocks:
        m = re.search(r"\[truncated: ([a-z-]+)\]", block)
        if m:
            files = [p for p in re.findall(r" \(((?:/|\[)[^()]*)\)", block)
                     if p != "[kernel.kallsyms]"]
            out[m.group(1), files[-1] if files else "(before the first user frame)"] += 1
    return out


def profpipe(folder, seconds, hz):
    """Records a stream, and measures the size of its replay as pprof."""
    out, summary = f"{folder}/out.prof", f"{folder}/summary.json"
    r = run([f"{BUILD}/profpipe", "record", "-q", "-F", str(hz), "-d", str(seconds + SETTLE), "-o",
             out, "--summary", summary], seconds, SETTLE)
    if r["status"]:
        sys.exit(f"profpipe record: {r['said']}")
    with open(summary) as f:
        s = json.load(f)
    for ending in (".txt", ".pb.gz"):
        subprocess.run([f"{BUILD}/profpipe", "report", out, "-o", f"{folder}/out{ending}"],
                       check=True)
    r.update(samples=s["samples"], output=os.path.getsize(f"{folder}/out.pb.gz"),
             start_cpu_s=s["cost"]["start_cpu_s"], summary=s, path=f"{folder}/out.txt",
             after=f"as a stream {os.path.getsize(out) / max(s['samples'], 1):.0f} bytes/sample")
    return r


def perf(folder, seconds, mode):
    out = f"{folder}/perf.data"
    if not shutil.which("perf"):
        return None
    r = run(["perf", "record", "-q", "-F", "99", "-a", *mode, "-o", out, "--", "sleep",
             str(seconds + 1)], seconds, 1)
    t0, cpu0 = time.time(), children_cpu()
    text = subprocess.Popen(["perf", "script", "-i", out], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors="replace")
    try:
        samples = sum(1 for line in text.communicate(timeout=600)[0].split("\n\n") if line.strip())
    except subprocess.TimeoutExpired:
        text.kill()
        samples = 0
    r.update(samples=samples, output=os.path.getsize(out), start_cpu_s=None,
             after=f"perf script {time.time() - t0:.0f} s, {children_cpu() - cpu0:.1f} s cpu")
    return r


# --- the cost of making rows ---


def timed(argv):
    """Runs argv. Returns cpu seconds, peak memory in MiB and standard output. For a small program,
    the peak is that of this process at the fork."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                         errors="replace", env=dict(os.environ, GOMAXPROCS="1"))
    said = p.stdout.read()
    _, status, r = os.wait4(p.pid, 0)
    p.returncode = status
    return r.ru_utime + r.ru_stime, r.ru_maxrss / 1024, said


def figure(said, name):
    return int(re.search(rf" {name}=(\d+)", said.splitlines()[-1]).group(1))


def by_prof_deltas(files):
    cpu, _, said = timed([f"{BUILD}/prof-deltas", "--stats", *files])
    return cpu, figure(said, "memory_kib") / 1024, figure(said, "rows"), said


def libraries(programs):
    out = set()
    for path in programs:
        said = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
        out |= {os.path.realpath(m) for m in re.findall(r"(/\S+) \(0x", said)}
    return out


def is_go(path):
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as data:
        try:
            return any(name.startswith((".gopclntab", ".note.go")) for name in giant.sections(data))
        except (struct.error, ValueError, IndexError):
            return False


def extractors(what, files, peer):
    """Prints a table of the extractors' cost for these files, each on one core with warm caches."""
    by_prof_deltas(files)
    rows = {"prof-deltas": min(by_prof_deltas(files) for _ in range(3))}
    if what != "Go":
        cpu, memory, said = timed([f"{BUILD}/tests/libdw-rows", *files])
        rows["libdw"] = (cpu, memory, int(said.split()[0]))
    if peer:
        cpu, memory, said = timed([peer, *files])
        rows[os.path.basename(peer)] = (cpu, memory,
                                        int(re.search(r"# (\d+) deltas",
                                                      said.splitlines()[-1]).group(1)))
    print(f"\nunwind rows of {len(files)} ELF files below /usr, {what}, one core, caches warm")
    print(f"{'':22}{'rows':>12}{'cpu s':>9}{'M rows/s':>10}{'peak MiB':>10}{'times ours':>12}")
    ours = rows["prof-deltas"]
    for name, (cpu, memory, count, *_) in rows.items():
        print(f"{name:22}{count:>12}{cpu:>9.2f}{count / cpu / 1e6:>10.1f}"
              f"{memory:>10.1f}{ours[2] / ours[0] / (count / cpu):>12.1f}")
    print(f"in the kernel: {figure(ours[3], 'bytes') / ours[2]:.2f} bytes a row, "
          f"{figure(ours[3], 'rules')} distinct rules")


def extraction(peer):
    """Measures prof-deltas on the ELF files of /usr, and for comparison libdw (which has no rows of
    Go) and, if its path is given, the leading peer's extractor."""
    files = compare.find(["/usr"])
    go = set(filter(is_go, files))
    if not peer:
        print("no PEER_DELTAS=PATH or --peer-deltas PATH: the peer's extractor is left out",
              file=sys.stderr)
    extractors("all but Go", [path for path in files if path not in go], peer)
    if go:
        extractors("Go", sorted(go), peer)

    programs = [path for path in files if path.startswith("/usr/bin/")]
    programs = compare.select(sorted(programs, key=os.path.getsize, reverse=True), 100)
    host = sorted(set(programs) | libraries(programs))
    cpu, _, count, _ = min(by_prof_deltas(host) for _ in range(3))
    print(f"{len(programs)} programs of /usr/bin with their libraries, {len(host)} "
          f"files, {count} rows: {cpu:.3f} s of cpu")

    with tempfile.TemporaryDirectory(prefix="profpipe-bench.") as folder:
        source = max(compare.find(["/usr/lib/x86_64-linux-gnu"]), key=os.path.getsize)
        text = giant.make(source, f"{folder}/giant", 1 << 30)
        cpu, memory, count, _ = by_prof_deltas([f"{folder}/giant"])
        print(f"a file of 1 GiB with {text >> 20} MiB of text "
              f"({os.path.basename(source)} many times over): {count} rows, {cpu:.2f} "
              f"s of cpu, {memory:.1f} MiB")


def by_depth(folder):
    """Prints what a sample costs in BPF by the depth of the stack, without frame pointers and with
    warm caches."""
    print(f"\n{'frames':>8}{'ns a sample':>14}{'ns a frame':>12}")
    for depth in (10, 50, 300, 1000):
        source = "".join(f"__attribute__((noinline)) int f{i}(volatile int *n) {{ int r = "
                         f"{f'f{i + 1}(n)' if i < depth - 4 else 'spin(n)'}; __asm__ "
                         f"volatile(\"\" : \"+r\"(r)); return r + 1; }}\n"
                         for i in range(depth - 4, -1, -1))
        with open(f"{folder}/deep.c", "w") as f:
            f.write("__attribute__((noinline)) int spin(volatile int *n) { while (*n < "
                    "2000000000) (*n)++; return *n; }\n" + source
                    + "int main(void) { volatile int n = 0; return f0(&n); }\n")
        subprocess.run(["gcc", "-O1", "-fomit-frame-pointer", "-o", f"{folder}/deep",
                        f"{folder}/deep.c"], check=True)
        with subprocess.Popen([f"{folder}/deep"]) as p:
            time.sleep(0.2)
            out = subprocess.run([f"{BUILD}/tests/walk-live", str(p.pid), "2", "999"],
                                 capture_output=True, text=True, check=True).stdout
            p.kill()
        words = out.split()
        n = {k: int(v) for k, v in zip(words[::2], words[1::2]) if v.isdigit()}
        print(f"{n['deepest']:>8}{n['ns_per_sample']:>14}{n['ns_per_frame']:>12}")
    print(f"instructions that the verifier looked at: {n['verified']}, of at most 1000000")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-s", "--seconds", type=int, default=int(os.environ.get("SECONDS_PER_RUN", 20)))
    a.add_argument("--no-peers", action="store_true")
    a.add_argument("--peer-deltas", default=os.environ.get("PEER_DELTAS"),
                   help="the leading peer's extractor of unwind rows (its tool stackdeltas)")
    a.add_argument("--rows-only", action="store_true", help="only how fast unwind rows are made")
    a.add_argument("--python-only", action="store_true", help="only what profiling CPython costs")
    a.add_argument("--python-part", action="append",
                   choices=("depth", "memory", "always", "slowdown"),
                   help="of that only this; may be repeated")
    a.add_argument("--peer", action="append", default=[], metavar="COMMAND",
                   help="another profiler to be measured over the same load: a command that runs "
                   "until it is interrupted; may be repeated")
    args = a.parse_args()
    # The load must not outlive us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    if not args.python_only:
        extraction(None if args.no_peers else args.peer_deltas)
    if args.rows_only:
        return
    stats = open(STATS).read() if os.path.exists(STATS) else None
    try:
        if stats is not None:
            open(STATS, "w").write("1")
    except OSError as e:
        print(f"{STATS}: {e.strerror}: BPF time is profpipe's own word only", file=sys.stderr)
    rows = {}
    try:
        cpython.run(args.peer, args.seconds, args.python_part)
        if args.python_only:
            return
        with tempfile.TemporaryDirectory() as folder:
            by_depth(folder)
        with Load() as load:
            rows["profpipe 99 Hz"] = profpipe(load.dir, args.seconds, 99)
            files = by_file(rows["profpipe 99 Hz"]["path"])
            rows["profpipe 20 Hz"] = profpipe(load.dir, args.seconds, 20)
            for command in args.peer:
                words = shlex.split(command.replace("{hz}", "20"))
                r = run(words, args.seconds, SETTLE, stop=True)
                if r["steady"] == 0:
                    print(f"{command}: did not run: {r['said'].strip()[-300:]}", file=sys.stderr)
                else:
                    rows[os.path.basename(words[0])] = r
            if not args.no_peers:
                for name, mode in (("perf -g (fp) 99 Hz", ["-g"]),
                                   ("perf dwarf 99 Hz", ["--call-graph", "dwarf"])):
                    r = perf(load.dir, args.seconds, mode)
                    if r:
                        rows[name] = r
                    else:
                        print(f"{name}: perf is not installed; left out", file=sys.stderr)
    finally:
        if stats is not None:
            try:
                open(STATS, "w").write(stats)
            except OSError:
                pass

    for name in ("profpipe 99 Hz", "profpipe 20 Hz"):
        s = rows[name]["summary"]
        whole = 100 * (1 - sum(s["truncated"].values()) / max(s["user_stacks"], 1))
        print(f"\n{name}: {s['samples']} samples, {s['user_stacks']} with a user part, "
              f"of which {whole:.2f} % are complete; "
              f"first complete sample after {s.get('first_complete_sample_s', 0):.2f} s")
        for reason, n in sorted(s["truncated"].items(), key=lambda x: -x[1]):
            print(f"  cut {reason:18} {n:6}  {100 * n / s['samples']:.2f} %")
        for reason, n in s["lost"].items():
            print(f"  lost {reason:17} {n:6}")
        for reason, n in s["missed"].items():
            print(f"  missed {reason:15} {n:6}")
    if files:
        print("\ncut at 99 Hz, by reason and the file of the last frame:")
        for (reason, file), n in files.most_common(12):
            print(f"  {n:6}  {reason:18} {file}")

    print(f"\n{'':22}{'cpu, % of one core':>19}{'start, cpu s':>14}{'PSS MiB':>9}"
          f"{'maps MiB':>10}{'BPF us/sample':>15}{'bytes/sample':>14}")
    for name, r in rows.items():
        start, samples = r.get("start_cpu_s"), r.get("samples")
        bpf = f"{r['bpf_ns_per_run'] / 1000:.1f}" if r["bpf_ns_per_run"] else "-"
        print(f"{name:22}{r['steady']:>19.2f}"
              f"{'-' if start is None else f'{start:.2f}':>14}{r['pss_mib']:>9.1f}"
              f"{r['maps_mib']:>10.1f}{bpf:>15}"
              f"{r['output'] / max(samples, 1) if samples else float('nan'):>14.0f}  "
              f"{r.get('after', '')}")
    ours = rows["profpipe 20 Hz"]
    if ours["bpf_runs"] and ours["kernel_stacks"]:
        of_each = ours["kernel_stacks_ns"] / ours["kernel_stacks"] / 1000
        others = ours["bpf_ns_per_run"] / 1000 - ours["kernel_stacks_ns"] / ours["bpf_runs"] / 1000
        print(f"profpipe at 20 Hz: {100 * ours['kernel_stacks'] / ours['bpf_runs']:.0f} % of "
              f"samples in the kernel, whose own walker takes {of_each:.1f} us of each; "
              f"all without it {others:.1f} us a sample")
    for name in (os.path.basename(shlex.split(c)[0]) for c in args.peer):
        if name in rows:
            r = rows[name]
            both = ours["bpf_ns_per_run"] and r["bpf_ns_per_run"]
            bpf = (f", BPF time a sample {ours['bpf_ns_per_run'] / r['bpf_ns_per_run']:.2f}"
                   if both else "")
            print(f"profpipe at 20 Hz, of {name}: cpu "
                  f"{ours['steady'] / r['steady']:.2f}, memory with maps "
                  f"{(ours['pss_mib'] + ours['maps_mib']) / (r['pss_mib'] + r['maps_mib']):.2f}"
                  f"{bpf}")


main()
