# SPDX-License-Identifier: Apache-2.0
"""profpipe record in the background, and the files that it leaves."""
import fcntl
import os
import signal
import subprocess
import time

import pytest

from conftest import BUILD

NOBODY = 65534
TOOLS = ["prof-bpf", "prof-deltas", "prof-symd", "prof-export"]
ALL_TOOLS = [*TOOLS, "prof-send"]
BURN = "import time\nt = time.time() + %s\nwhile time.time() < t: pass\n"


def burn(seconds):
    return ["/usr/bin/python3", "-c", BURN % seconds]


def children(pid):
    """The tools that a launcher started: name to pid."""
    found = {}
    for p in os.listdir("/proc"):
        try:
            with open(f"/proc/{p}/stat") as f:
                text = f.read()
            with open(f"/proc/{p}/cmdline") as f:
                name = f.read().split("\0")[0]
        except (OSError, NotADirectoryError):
            continue
        if p.isdigit() and int(text.rsplit(")", 1)[1].split()[1]) == pid and name in ALL_TOOLS:
            found[name] = int(p)
    return found


def kill_tool(pid, name, seconds=60):
    """Kills a tool of a launcher. If it has no such tool just now, waits for its successor."""
    until_s = time.monotonic() + seconds
    while name not in (tools := children(pid)):
        assert time.monotonic() < until_s, (name, tools)
        time.sleep(0.02)
    os.kill(tools[name], signal.SIGKILL)


def lives(pid):
    """Zombies do not count as alive: their parent may never reap them."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def status_of(pid):
    """pid: also that of a thread, as PID/task/TID."""
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def children_of(pid):
    """The pids of all children of the main thread."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def cpu_s(pid):
    """The cpu time of a process, in ticks of the kernel."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ran_s(pid):
    """How long the main thread ran, by the scheduler's count."""
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) / 1e9


def wait_for(condition, what, seconds=40):
    """Waits until the condition is true, and returns its result."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come")


class Run:
    """profpipe record in the background; the with statement ends it."""

    def __init__(self, *args, **kw):
        self.args, self.kw, self.said = [f"{BUILD}/profpipe", "record", "-v",
                                         *map(str, args)], kw, ""

    def __enter__(self):
        self.p = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, errors="replace", **self.kw)
        return self

    def __exit__(self, *_):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()
        self.p.stdout.close()
        self.p.stderr.close()

    def tools(self):
        """Returns the four tools, once all have started and have their own identities."""
        for _ in range(500):
            found = children(self.p.pid)
            if len(found) == 4 and all(
                    os.path.exists(f"/proc/{p}") and status_of(p)["Uid"].split()[0] != "0"
                    for p in found.values()):
                return found
            time.sleep(0.01)
        raise AssertionError(f"only {found} of the tools came up")

    def sampling(self):
        """Waits until sampling has begun, and returns the tools."""
        for line in self.p.stderr:
            self.said += line
            if "sampling has begun" in line:
                return self.tools()
        raise AssertionError(f"sampling never began: {self.said}")

    def end(self, timeout=40):
        out, err = self.p.communicate(timeout=timeout)
        return self.p.returncode, out, self.said + err


def leftovers():
    """Run folders that no launcher holds, since other tests may run on this host."""
    found = set()
    for n in os.listdir("/run"):
        if not n.startswith("profpipe.") or n == "profpipe.lock":
            continue
        try:
            fd = os.open(f"/run/{n}", os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found.add(n)
        except BlockingIOError:
            pass
        finally:
            os.close(fd)
    return {n for n in found if os.path.exists(f"/run/{n}")}


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    before = leftovers()
    yield
    left = leftovers() - before
    if left:
        # Another test's launcher may be about to lock its folder, or to remove it.
        time.sleep(2)
        left &= leftovers()
    assert not left
