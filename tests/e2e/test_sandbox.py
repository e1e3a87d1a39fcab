# SPDX-License-Identifier: Apache-2.0
"""The confinement of the tools without rights, seen from outside while they run.
tests/unit/cell/cell.c and tests/redteam try from inside."""
import contextlib
import os
import re
import subprocess
import sys

import pytest
from conftest import BUILD
from running import status_of, wait_for

PARSERS = ("prof-deltas", "prof-symd", "prof-export")
SPIN = ("import time\ndef spin():\n    t = time.monotonic()\n"
        "    while time.monotonic() < t + 60: pass\n")
KEEPER = "prof-symd-keep"
NAMESPACES = ("mnt", "net", "ipc", "uts")
O_ACCMODE = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


def children(pid):
    found = {}
    for p in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, KeyError):
            s = status_of(p)
            if s["PPid"] == str(pid):
                found.setdefault(s["Name"], []).append(int(p))
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The pids of the tools of a run that samples, all of them sealed, and what they logged about
    that."""
    folder = tmp_path_factory.mktemp("run")
    with open(folder / "said",
              "w+") as said, subprocess.Popen([f"{BUILD}/profpipe", "record", "-v", "-o",
                                               folder / "x.folded", "--", sys.executable, "-c",
                                               SPIN + "spin()"], stderr=said,
                                              stdout=subprocess.DEVNULL,
                                              stdin=subprocess.DEVNULL) as p:
        try:
            wait_for(lambda: p.poll() is not None or (folder / "said").read_text().count("root:")
                     == len(PARSERS), "the cells")
            text = (folder / "said").read_text()
            assert p.poll() is None, text
            tools = children(p.pid)
            yield {name: tools[name][0] for name in PARSERS}, text
        finally:
            p.terminate()
    assert p.returncode == 0, (folder / "said").read_text()


def what_it_has(run, name):
    """The state that a tool logged: (root, network, Landlock, system calls)."""
    return re.search(rf"^{name}: info: root: (.*); network: (.*); Landlock: (\d+); system calls: "
                     rf"(.*)$", run[1], re.M).groups()


@pytest.fixture(scope="module")
def may_mount():
    """Whether root may create namespaces here: nearly everywhere, but not in some containers."""
    return subprocess.run(["unshare", "-m", "-n", "-i", "-u", "mount", "-t", "tmpfs", "none",
                           "/proc"], capture_output=True).returncode == 0


@pytest.mark.parametrize("name", PARSERS)
def test_every_thread_is_filtered_and_has_no_right(run, name):
    tasks = os.listdir(f"/proc/{run[0][name]}/task")
    assert len(tasks) > 5  # threads of nng, which began between the two filters
    for task in tasks:
        s = status_of(f"{run[0][name]}/task/{task}")
        assert (s["Seccomp"], s["NoNewPrivs"]) == ("2", "1")
        assert int(s.get("Seccomp_filters", 2)) >= 2
        assert {int(s[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert (s["Groups"].strip() == "" and len(set(s["Uid"].split())) == 1
                and s["Uid"].split()[0] != "0")


@pytest.mark.parametrize("name", PARSERS)
def test_the_root_is_empty(run, name, may_mount):
    pid = run[0][name]
    assert what_it_has(run, name)[0] == ("empty" if may_mount else "the host's")
    if not may_mount:
        return
    for folder, _, files in os.walk(f"/proc/{pid}/root/"):
        assert not files, folder
    with open(f"/proc/{pid}/mountinfo") as f:
        (mount,) = f.read().splitlines()
    assert re.search(r" / / ro,nosuid,nodev,noexec\S* - tmpfs ", mount)
    assert os.path.samefile(f"/proc/{pid}/root", f"/proc/{pid}/cwd")


@pytest.mark.parametrize("name", PARSERS)
def test_network_and_namespaces_are_its_own(run, name, may_mount):
    pid = run[0][name]
    if not may_mount:
        assert what_it_has(run, name)[1] == "the host's"
        return
    for ns in NAMESPACES:
        theirs = {os.readlink(f"/proc/{p}/ns/{ns}") for p in [*run[0].values(), "self"]}
        assert len(theirs) == len(PARSERS) + 1, ns
    with open(f"/proc/{pid}/net/dev") as f:
        assert [line.split(":")[0].strip() for line in f.readlines()[2:]] == ["lo"]
    with open(f"/proc/{pid}/net/unix") as f:
        assert "@" not in f.read()


def is_nameless(path):
    """prof-export's journal, and its output before it is whole."""
    return re.fullmatch(r"/(var/)?tmp/(.*/)?#\d+ \(deleted\)", path) is not None


@pytest.mark.parametrize("name", PARSERS)
def test_no_descriptor_of_a_tool_leads_further(run, name):
    """No folder, no device, and nothing to write to except pipes, sockets, its log, and
    prof-export's output and journal, which have no names."""
    pid = run[0][name]
    assert set(children(pid)) <= ({KEEPER} if name == "prof-symd" else set())
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            to, st = os.readlink(f"/proc/{pid}/fd/{fd}"), os.stat(f"/proc/{pid}/fd/{fd}")
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                flags = int(re.search(r"^flags:\s*(\d+)", f.read(), re.M)[1], 8)
            if to.startswith(("pipe:", "socket:",
                              "anon_inode:")) or to == "/dev/null" or to.startswith("/memfd:"):
                continue
            assert os.path.stat.S_ISREG(st.st_mode), to
            assert (flags & O_ACCMODE == os.O_RDONLY or name == "prof-export"
                    and is_nameless(to)), to


def test_the_libdw_worker_is_confined_like_prof_symd(run, may_mount):
    (keeper,) = children(run[0]["prof-symd"])[KEEPER]
    for pid in keeper, *sum(children(keeper).values(), []):
        s = status_of(pid)
        uid = status_of(run[0]["prof-symd"])["Uid"]
        assert (s["Seccomp"], s["NoNewPrivs"], int(s["CapPrm"], 16), s["Uid"]) == ("2", "1", 0, uid)
        if may_mount:
            assert os.path.samefile(f"/proc/{pid}/root", f"/proc/{run[0]['prof-symd']}/root")
            assert os.readlink(f"/proc/{pid}/ns/net") == os.readlink(
                    f"/proc/{run[0]['prof-symd']}/ns/net")


def test_each_tool_logs_its_confinement(run):
    for name in PARSERS:
        landlock, calls = what_it_has(run, name)[2:]
        assert calls == "limited"
        with contextlib.suppress(FileNotFoundError), open("/sys/kernel/security/lsm") as f:
            assert (int(landlock) > 0) == ("landlock" in f.read().split(","))


def test_the_page_lists_the_calls_that_a_sealed_cell_allows():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(f"{root}/docs/privilege-separation.md") as f:
        listed = re.search(r"<!-- calls of a sealed cell -->\n+```\n(.*?)```", f.read(),
                           re.S)[1].split()
    lists = {}
    for file in "cell", "confine/baseline":
        with open(f"{root}/common/cell/{file}.c") as f:
            lists |= dict(re.findall(r"const struct seccomp_rule (\w+)\[\] = \{(.*?)\n\};",
                                     f.read(), re.S))
    sealed = "baseline_calls", "baseline_files", "baseline_sockets", "living", "last_word"
    assert set(listed) == {call for name in sealed
                           for call in re.findall(r'CALL(?:_IF)?\(\s*"(\w+)"', lists[name])}


# --- by hand ---


@pytest.mark.parametrize("argv",
                         [["prof-symd"], ["prof-export", "-f", "text"],
                          ["prof-symd", "-e", "/bin/ls"]], ids=" ".join)
def test_by_hand_system_calls_are_filtered(argv):
    with subprocess.Popen([f"{BUILD}/{argv[0]}", *argv[1:]], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        try:
            wait_for(lambda: status_of(p.pid)["Seccomp"] == "2", "the filter", 20)
            assert status_of(p.pid)["NoNewPrivs"] == "1"
        finally:
            p.kill()


def dumped(tmp_path, *wrap):
    """Names of functions that prof-dump finds in a Python program. `wrap` runs both."""
    script = (f"import subprocess, sys, time\n"
              f"p = subprocess.Popen([sys.executable, '-c', "
              f"{SPIN + 'print(1, flush=True); spin()'!r}], stdout=subprocess.PIPE)\n"
              f"p.stdout.readline()\n"
              f"try:\n"
              f"    d = subprocess.run([{BUILD + '/prof-dump'!r}, str(p.pid)], "
              f"stdout=subprocess.PIPE)\n"
              f"finally:\n"
              f"    p.kill()\n"
              f"sys.stdout.buffer.write(d.stdout)\n"
              f"sys.exit(d.returncode)")
    p = subprocess.run([*wrap, "/usr/bin/python3", "-c", script], capture_output=True, text=True,
                       timeout=120)
    assert p.returncode == 0, p.stderr
    return p.stdout


@pytest.mark.parametrize("wrap",
                         [[], ["setpriv", "--bounding-set", "-sys_admin"],
                          ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]],
                         ids=["root", "root that may not mount", "nobody"])
def test_prof_dump_works_with_whatever_cell_it_can_have(tmp_path, wrap):
    text = dumped(tmp_path, *wrap)
    assert "spin" in text and "<module>" in text, text


def test_the_privileged_half_opens_programs_and_debug_files(tmp_path):
    """Also debug files: the half that parses has no root in which to find them. If root asks, only
    files that everybody may read."""
    (tmp_path / "p.c").write_text("#include <stdio.h>\n#include <unistd.h>\n"
                                  "static __attribute__((noinline)) void only_in_debug(void) "
                                  "{ puts(\"1\"); fflush(stdout); for (;;) pause(); }\n"
                                  "int main(void) { only_in_debug(); return 0; }\n")
    program, debug = tmp_path / "p", tmp_path / "p.debug"
    subprocess.run(["gcc", "-g", "-O1", "-o", program, tmp_path / "p.c"], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "--strip-all", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as p:
        try:
            p.stdout.readline()
            for mode, named in (0o644, True), (0o600, False):
                debug.chmod(mode)
                said = subprocess.run([f"{BUILD}/prof-dump", str(p.pid)], capture_output=True,
                                      text=True, timeout=60)
                assert said.returncode == 0, said.stderr
                assert ("only_in_debug" in said.stdout) == named, said.stdout
        finally:
            p.kill()
