# SPDX-License-Identifier: Apache-2.0
"""The rights of each running tool, as the kernel reports them, compared with
docs/privilege-separation.md; and the ids that a run takes."""
import contextlib
import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys

from conftest import BUILD
from running import status_of, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = ("prof-bpf", "prof-deltas", "prof-symd", "prof-export")
HELPERS = ("prof-cpus", "prof-bpf-loader", "prof-bpf-keeper", "prof-bpf-open")
SPIN = [sys.executable, "-c",
        "import time\nt = time.monotonic()\nwhile time.monotonic() < t + 60: pass"]
BASE, STEP, RANGES = 2000000000, 16, 1 << 23
ASAN = "asan" in os.path.basename(BUILD)
CAPS = {2: "DAC_READ_SEARCH", 19: "SYS_PTRACE", 34: "SYSLOG", 38: "PERFMON", 39: "BPF",
        40: "CHECKPOINT_RESTORE"}


def page():
    with open(f"{ROOT}/docs/privilege-separation.md") as f:
        return f.read()


def capabilities(column):
    """The capabilities with a `yes` in a column of the page's table: 0 prof-bpf at its start, 1
    prof-bpf later, 2 prof-cpus, 3 prof-bpf-loader, 4 the workers."""
    rows = re.findall(r"^\| (\w+)" + r" \| (yes|no)" * 5 + r" \|$", page(), re.M)
    return {name for name, *cells in rows if cells[column] == "yes"}


def named_caps(mask):
    return {CAPS.get(n, str(n)) for n in range(64) if int(mask, 16) >> n & 1}


def children(pid):
    found = {}
    for p in os.listdir("/proc"):
        if p.isdigit():
            with contextlib.suppress(OSError, KeyError):
                s = status_of(p)
                if s["PPid"] == str(pid) and s["Name"] in (*TOOLS, *HELPERS):
                    found[s["Name"]] = int(p)
    return found


@contextlib.contextmanager
def running(tmp_path, *wrap, **kw):
    """A run that samples, and its tools' pids."""
    p = subprocess.Popen([*wrap, f"{BUILD}/profpipe", "record", "-v", "-o", tmp_path / "out.folded",
                          "--", *SPIN], stderr=subprocess.PIPE, text=True, errors="replace", **kw)
    said = []
    try:
        for line in p.stderr:
            said.append(line)
            if "sampling has begun" in line:
                break
        else:
            raise AssertionError("".join(said))
        yield wait_for(lambda: (lambda c: c if set(c) == set(TOOLS) else None)(children(p.pid)),
                       "the tools")
    finally:
        p.terminate()
        p.communicate(timeout=60)


def test_every_running_tool_has_the_identity_in_the_page(tmp_path):
    rows = dict(re.findall(r"^\| `(prof-\w+)` \| a user of its own \| (see below|none) \|$", page(),
                           re.M))
    assert rows.pop("prof-metrics") == "none"  # test_run.py looks at it
    assert set(rows) == set(TOOLS)
    uids = set()
    with running(tmp_path) as tools:
        for tool, pid in tools.items():
            # Every thread is checked, since capabilities and filters belong to threads.
            for thread in os.listdir(f"/proc/{pid}/task"):
                try:
                    s = status_of(f"{pid}/task/{thread}")
                except FileNotFoundError:
                    # A spare opener that was no longer needed.
                    continue
                want = set() if rows[tool] == "none" else capabilities(1)
                assert named_caps(s["CapPrm"]) == named_caps(s["CapEff"]) == want, (tool, thread, s)
                assert not any(int(s[c], 16) for c in ("CapInh", "CapAmb", "CapBnd"))
                assert s["NoNewPrivs"] == "1" and (s["Seccomp"] == "2" or ASAN), (tool, thread, s)
                assert not s["Groups"].strip()
                ids, gids = set(s["Uid"].split()), set(s["Gid"].split())
                assert len(ids) == len(gids) == 1
            uids |= ids
            assert BASE <= int(min(ids)) < BASE + STEP * RANGES
            assert int(min(gids)) == int(min(ids)) & ~15
            # Undumpable: the kernel gives its folder to root.
            assert ASAN or os.stat(f"/proc/{pid}/mem").st_uid == 0
    assert len(uids) == len(TOOLS)


def test_prof_cpus_has_only_its_right(tmp_path):
    assert "\n| `prof-cpus` | prof-bpf's | see below |\n" in page()
    with running(tmp_path) as tools:
        pid = wait_for(lambda: children(tools["prof-bpf"]).get("prof-cpus"), "prof-cpus")
        s = wait_for(lambda: (lambda s: s if s["Seccomp"] == "2" or ASAN else None)(status_of(pid)),
                     "its filter")
        assert named_caps(s["CapPrm"]) == named_caps(s["CapEff"]) == capabilities(2) == {"PERFMON"}
        assert (s["NoNewPrivs"] == "1" and s["Uid"] == status_of(tools["prof-bpf"])["Uid"]
                and not s["Groups"].strip())
        # It inherits nothing: neither the status and life pipes nor the output.
        kinds = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0]
                       for fd in os.listdir(f"/proc/{pid}/fd") if fd != "2")
        assert set(kinds) <= {"/dev/null", "socket",
                              "anon_inode"} and kinds.count("socket") == 1, kinds
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "its end")


def test_the_loader_has_only_its_rights(tmp_path):
    assert "\n| `prof-bpf-loader` | prof-bpf's | see below |\n" in page()
    with running(tmp_path) as tools:
        pid = wait_for(lambda: children(tools["prof-bpf"]).get("prof-bpf-loader"), "the process")
        s = wait_for(lambda: (lambda s: s if s["Seccomp"] == "2" or ASAN else None)(status_of(pid)),
                     "its filter")
        assert named_caps(s["CapPrm"]) == named_caps(s["CapEff"]) == capabilities(3)
        assert capabilities(3) == {"BPF", "PERFMON"}
        assert not any(int(s[c], 16) for c in ("CapInh", "CapAmb", "CapBnd"))
        assert (s["NoNewPrivs"] == "1" and s["Uid"] == status_of(tools["prof-bpf"])["Uid"]
                and not s["Groups"].strip())
        # Maps and programs, but no event, and nothing inherited.
        kinds = [os.readlink(f"/proc/{pid}/fd/{fd}").split(":") for fd in
                 os.listdir(f"/proc/{pid}/fd")]
        assert [k[0] for k in kinds].count("socket") == 1, kinds
        assert {k[0] for k in kinds} <= {"pipe", "socket", "anon_inode"}, kinds
        held = {k[1] for k in kinds if k[0] == "anon_inode"}
        assert held <= {"bpf-map", "bpf-prog", "btf"}, kinds
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "its end")


def test_the_file_openers_have_only_their_rights(tmp_path):
    assert ("\n| `prof-bpf-keeper` and its workers, `prof-bpf-open` | prof-bpf's | see below |"
            in page())
    with running(tmp_path) as tools:
        keeper = wait_for(lambda: children(tools["prof-bpf"]).get("prof-bpf-keeper"), "the keeper")
        worker = wait_for(lambda: children(keeper).get("prof-bpf-open"), "a worker")
        private = 0
        for pid in (keeper, worker):
            s = wait_for(lambda pid=pid: (lambda s: s if s["Seccomp"] == "2" or ASAN else None)
                         (status_of(pid)), "its filter")
            assert named_caps(s["CapPrm"]) == named_caps(s["CapEff"]) == capabilities(4)
            assert not any(int(s[c], 16) for c in ("CapInh", "CapAmb", "CapBnd"))
            assert (s["NoNewPrivs"] == "1" and s["Uid"] == status_of(tools["prof-bpf"])["Uid"]
                    and not s["Groups"].strip())
            # No event, no map, and not prof-bpf's log, which must not stay open if the process
            # hangs.
            kinds = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0]
                           for fd in os.listdir(f"/proc/{pid}/fd"))
            assert kinds.count("socket") == 1 and set(kinds) <= {"/proc", "pipe", "socket"}, kinds
            log = os.readlink(f"/proc/{tools['prof-bpf']}/fd/2")
            assert log not in {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)}
            with open(f"/proc/{pid}/smaps_rollup") as f:
                private += sum(int(kib) for kib in re.findall(r"^Private_\w+:\s+(\d+)", f.read(),
                                                              re.M))
        assert private < 1024 or ASAN
        assert capabilities(1) == {"BPF", "SYS_PTRACE"}
    wait_for(lambda: not os.path.exists(f"/proc/{worker}"), "its end")


def test_a_cpu_that_went_and_came_back_is_sampled_again(tmp_path):
    switch = "/sys/devices/system/cpu/cpu1/online"
    # Without cpu hotplug, no cpu can come back either.
    if not os.path.exists(switch):
        return
    p = subprocess.Popen([f"{BUILD}/profpipe", "record", "-v", "-F", "199", "-o",
                          tmp_path / "out.folded"], stderr=subprocess.PIPE, text=True,
                         errors="replace")
    try:
        assert any("sampling has begun" in line for line in p.stderr)
        for state in "01":
            with open(switch, "w") as f:
                f.write(state)
        assert any("cpu 1 came online" in line for line in p.stderr)
        subprocess.run(["taskset", "-c", "1", shutil.copy("/bin/dash", tmp_path / "backagain"),
                        "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"], check=True,
                       timeout=120)
    finally:
        with open(switch, "w") as f:
            f.write("1")
        p.terminate()
        p.communicate(timeout=60)
    samples = sum(int(line.rsplit(" ", 1)[1])
                  for line in (tmp_path / "out.folded").read_text(errors="replace").splitlines()
                  if line.startswith("backagain;"))
    assert samples >= 10


def test_the_page_lists_the_calls_that_prof_bpf_may_make():
    with open(f"{ROOT}/tools/prof-bpf/system_calls.c") as f:
        code = f.read()
    code = code[code.index("const struct seccomp_rule calls[]"):]
    with open(f"{ROOT}/common/cell/confine/baseline.c") as f:
        code += f.read()
    made = set(re.findall(r'CALL(?:_IF|_NUMBER)?\(\s*"(\w+)"', code))
    assert len(made) > 60
    block = re.search(r"<!-- calls of prof-bpf -->\n+```\n(.*?)```", page(), re.S)[1]
    assert set(block.split()) == made
    # Access that amounts to more than reading.
    forbidden = {"ptrace", "process_vm_writev", "execve", "execveat", "fork", "vfork", "clone3",
                 "socket", "socketpair", "connect", "bind", "listen", "open", "creat", "openat2",
                 "open_by_handle_at", "mount", "unshare", "setns", "setuid", "setresuid", "setgid",
                 "capset", "init_module", "finit_module", "keyctl", "add_key", "userfaultfd",
                 "io_uring_setup", "io_uring_enter", "perf_event_open", "pidfd_getfd",
                 "pidfd_send_signal", "chmod", "fchmod", "chown", "fchown", "link", "linkat",
                 "symlink", "rename", "renameat2", "mknod", "mkdir", "truncate", "reboot",
                 "kexec_load", "chroot", "pivot_root", "personality", "settimeofday",
                 "clock_settime", "setpriority", "sched_setscheduler", "pkey_mprotect", "shmat",
                 "splice", "vmsplice", "tee", "tkill"}
    assert not made & forbidden


def test_the_page_lists_the_calls_that_prof_send_may_make():
    code = ""
    for path in "tools/prof-send/confine.c", "common/cell/confine/baseline.c":
        with open(f"{ROOT}/{path}") as f:
            code += f.read()
    made = set(re.findall(r'CALL(?:_IF)?\(\s*"(\w+)"', code))
    block = re.search(r"<!-- calls of prof-send -->\n+```\n(.*?)```", page(), re.S)[1]
    assert set(block.split()) == made
    assert not made & {"bind", "listen", "accept", "accept4", "execve", "fork", "vfork", "ptrace",
                       "kill", "process_vm_readv", "open", "openat2", "unlink", "rename", "mount"}


def test_a_recording_by_hand_keeps_no_right_that_it_does_not_need(tmp_path):
    assert "\n| `prof-bpf` by hand | its caller | the same as prof-bpf |\n" in page()
    p = subprocess.Popen([f"{BUILD}/prof-bpf", "-d", "30", "-o", tmp_path / "run.prof"])
    try:
        s = wait_for(lambda: (lambda s: s if s["Seccomp"] == "2"
                              or (ASAN and not int(s["CapPrm"], 16) >> 38 & 1)
                              else None)(status_of(p.pid)), "the filter")
        assert named_caps(s["CapPrm"]) == capabilities(1) and s["NoNewPrivs"] == "1"
        deltas = wait_for(lambda: children(p.pid).get("prof-deltas"), "prof-deltas")
        wait_for(lambda: not int(status_of(deltas)["CapEff"], 16), "its drop")
    finally:
        p.terminate()
        assert p.wait(60) == 0
    assert not os.path.exists(f"/proc/{deltas}")


# --- the ids of a run ---


def range_of(tools):
    return (int(status_of(tools["prof-bpf"])["Uid"].split()[0]) - BASE) // STEP


def lived_in(ranges):
    """Whether processes have ids of these ranges, as those of an earlier run may for a moment."""
    for p in os.listdir("/proc"):
        if p.isdigit():
            with contextlib.suppress(OSError, KeyError):
                s = status_of(p)
                if any((int(i) - BASE) // STEP in ranges for i in f"{s['Uid']} {s['Gid']}".split()):
                    return True
    return False


# Ranges that few runs use, and that differ from those of the same test in another run.
FIRST = 20 + os.getpid() * 5 % 40
R = range(FIRST, FIRST + 5)


@contextlib.contextmanager
def only_free(tmp_path, *free, lived=()):
    """A wrapper for a launcher in whose lock file others hold all ranges but these."""
    wait_for(lambda: not lived_in(set(free) - set(lived)), "the end of another run")
    path = tmp_path / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        begin = 0
        for k in [*sorted(free), RANGES]:
            # F_OFD_SETLK
            if k > begin:
                fcntl.fcntl(fd, 37, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, begin,
                                                k - begin, 0))
            begin = k + 1
        yield ["unshare", "-m", "sh", "-ec",
               f"touch /run/profpipe.lock; mount --bind {path} /run/profpipe.lock; "
               'exec "$@"', "sh"]
    finally:
        os.close(fd)


def test_ids_that_a_process_lives_under_are_not_taken(tmp_path):
    held = []
    try:
        # As user, as group and as supplementary group.
        for k, ids in zip(R,
                          (["--reuid", "{}"], ["--regid", "{}", "--clear-groups"],
                           ["--groups", "{}"])):
            held.append(
                    subprocess.Popen(["setpriv", *(i.format(BASE + k * STEP + 7) for i in ids),
                                      "sleep", "100"]))
        wait_for(lambda: all(str(BASE + k * STEP + 7) in s["Uid"] + s["Gid"] + s["Groups"]
                             for k, s in zip(R, (status_of(p.pid) for p in held))),
                 "the others' processes")
        with only_free(tmp_path, *R[:4], lived=R[:3]) as wrap, running(tmp_path, *wrap) as tools:
            assert range_of(tools) == R[3]
    finally:
        for p in held:
            p.kill()
            p.wait()


def test_the_groups_of_a_process_stop_no_run(tmp_path):
    """The root of a container may have any 65,536 groups."""
    groups = ",".join(str(BASE + k * STEP) for k in range(2000))
    with subprocess.Popen(["setpriv", "--groups", groups, "sleep", "100"]) as p:
        try:
            with running(tmp_path) as one, running(tmp_path) as other:
                ranges = [range_of(one), range_of(other)]
        finally:
            p.kill()
    assert len({r // 1000 for r in ranges}) == 2, f"they can be predicted: {ranges}"


def test_ids_that_are_delegated_or_have_a_name_are_not_taken(tmp_path):
    (tmp_path / "subuid").write_text(
            f"mallory:{BASE + R[0] * STEP + 15}:1\nlong:1:{BASE - 2}\nnonsense\n:::\n"
            f"x:99999999999999999999:7\n")
    (tmp_path / "subgid").write_text(f"mallory:{BASE + R[1] * STEP - 5}:6\n")
    with open("/etc/passwd") as f:
        (tmp_path / "passwd").write_text(f.read()
                                         + f"mallory:x:{BASE + R[2] * STEP + 3}:1::/:/bin/sh\n")
    with open("/etc/group") as f:
        (tmp_path / "group").write_text(f.read() + f"mallory:x:{BASE + R[3] * STEP}:\n")
    binds = "; ".join(f"touch /etc/{n} 2>/dev/null; mount --bind {tmp_path}/{n} /etc/{n}"
                      for n in ("subuid", "subgid", "passwd", "group"))
    with only_free(tmp_path, *R) as wrap, running(tmp_path, *wrap, "sh", "-ec",
                                                  f'{binds}; exec "$@"', "sh") as tools:
        assert range_of(tools) == R[4]


def test_no_free_ids_and_a_lock_that_is_not_roots_are_one_line_each(tmp_path):
    run = [f"{BUILD}/profpipe", "record", "-d", "1", "-o", tmp_path / "x.folded"]
    with only_free(tmp_path) as wrap:
        p = subprocess.run([*wrap, *run], capture_output=True, text=True, timeout=60)
        assert (p.returncode == 1 and len(p.stderr.splitlines()) == 1
                and "no range of 16 ids" in p.stderr), p.stderr
    for plant in ("ln -s /etc/passwd /run/profpipe.lock",
                  "echo >/run/profpipe.lock; chown 65534 /run/profpipe.lock",
                  "mkfifo /run/profpipe.lock"):
        p = subprocess.run(["unshare", "-m", "sh", "-ec",
                            f'mount -t tmpfs -o mode=755 none /run; {plant}; exec "$@"', "sh",
                            *run], capture_output=True, text=True, timeout=60)
        assert (p.returncode == 1 and len(p.stderr.splitlines()) == 1
                and "profpipe.lock" in p.stderr), (plant, p.stderr)
    mounts = ("mount -t tmpfs -o ro none /run; mount -t tmpfs -o mode=1777 none /dev/shm; "
              "ln -sn /etc/passwd /dev/shm/profpipe.lock")
    p = subprocess.run(["unshare", "-m", "sh", "-ec", mounts + '; exec "$@"', "sh", *run],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 1 and len(p.stderr.splitlines()) == 1, p.stderr
    assert ("/run/profpipe.lock cannot be made: Read-only file system; make /run"
            in p.stderr), p.stderr
    assert not (tmp_path / "x.folded").exists()


def test_root_that_cannot_change_users_is_told_the_reason(tmp_path):
    six = ",".join(f"+{c.lower()}" for c in CAPS.values())
    limited = ["setpriv", "--inh-caps=-all", f"--bounding-set=-all,{six}"]
    p = subprocess.run([*limited, f"{BUILD}/profpipe", "record", "-d", "1", "-o",
                        tmp_path / "x.folded"], capture_output=True, text=True, timeout=60)
    assert (p.returncode == 1 and len(p.stderr.splitlines()) == 1
            and "CAP_SETUID" in p.stderr), p.stderr
    # These three suffice.
    limited[-1] += ",+setuid,+setgid,+chown"
    p = subprocess.run([*limited, f"{BUILD}/profpipe", "record", "-d", "0.5", "-q", "-o",
                        tmp_path / "x.folded", "--", *SPIN], capture_output=True, text=True,
                       timeout=60)
    assert p.returncode == 0 and (tmp_path / "x.folded").stat().st_size, p.stderr


def test_a_run_folder_that_cannot_be_written_has_another_place(tmp_path):
    mounts = ("mount -t tmpfs none /run; touch /run/profpipe.lock; "
              "mount --bind /run/profpipe.lock /run/profpipe.lock; mount -o remount,bind,ro /run")
    p = subprocess.run(["unshare", "-m", "sh", "-ec", mounts + '; exec "$@"', "sh",
                        f"{BUILD}/profpipe", "record", "-d", "0.5", "-q", "-o",
                        tmp_path / "out.folded", "--", *SPIN],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and (tmp_path / "out.folded").stat().st_size, p.stderr
