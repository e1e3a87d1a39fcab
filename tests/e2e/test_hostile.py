# SPDX-License-Identifier: Apache-2.0
"""Programs that attack their profiler, and a prof-symd that attacks prof-bpf: only their own
profile suffers."""
import collections
import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from conftest import BUILD, profpipe
from test_python import interpreted

# A frame whose code object lies in memory that blocks its readers forever, the kernel on behalf of
# another process included.
TAR_PIT = """
import ctypes, fcntl, struct, sys, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
fd = libc.syscall(323, 0o2000000)
assert fd >= 0
fcntl.ioctl(fd, 0xC018AA3F, struct.pack("QQQ", 0xAA, 0, 0))
region = libc.mmap(None, ctypes.c_size_t(65536), 3, 0x22, -1, ctypes.c_long(0))
fcntl.ioctl(fd, 0xC020AA00, struct.pack("QQQQ", region, 65536, 1, 0))
def victim():
    frame = sys._getframe()
    # A frame object of 3.11 points to the interpreter's frame at 24. That has the code at 32 and
    # the previous frame at 48.
    words = (ctypes.c_uint64 * 9).from_address(ctypes.c_uint64.from_address(id(frame) + 24).value)
    fake = (ctypes.c_uint64 * 9)(*(ctypes.c_uint64 * 9).from_address(words[6]))
    fake[4] = region + 4096
    was, words[6] = words[6], ctypes.addressof(fake)
    end = time.monotonic() + 2.5
    while time.monotonic() < end: pass
    words[6] = was
victim()
"""
# Code that runs another function at every moment.
NEIGHBOUR = """
import time
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
kept = []
for i in range(26):
    kept.append(compile(f"def function_{i}(): spin(0.1)\\nfunction_{i}()", "neighbour.py", "exec"))
    exec(kept[i])
"""


def test_memory_that_hangs_its_reader_costs_others_no_name(tmp_path):
    (tmp_path / "hostile.py").write_text(TAR_PIT)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    out = tmp_path / "out.txt"
    p = profpipe("record", "-q", "-F", 199, "-o", out, "--", "sh", "-c",
                 '/usr/bin/python3 "$0" & pit=$!; /usr/bin/python3 "$1"; wait $pit',
                 tmp_path / "hostile.py", tmp_path / "neighbour.py", timeout=60)
    assert p.returncode == 0, p.stderr
    names = collections.Counter(stack[-1][0] for stack in interpreted(out))
    print(names.most_common(8))
    # The frame in the blocking memory has no name, and the process's others may also lack one.
    assert sum(any(name.startswith("[python: ") for name, _, _ in stack)
               for stack in interpreted(out)) > 5
    mine = [stack for stack in interpreted(out) if stack[-1][0] == "neighbour.spin"]
    named = [stack for stack in mine if not any(name.startswith("[python") for name, _, _ in stack)]
    print(len(mine), len(named), len({stack[-2] for stack in named}))
    assert (len(mine) > 20 and len(named) >= 0.9 * len(mine)
            and len({stack[-2] for stack in named}) > 10)


PYTHON = os.path.realpath("/usr/bin/python3")
SPIN = """
import ctypes, sys
if "undumpable" in sys.argv: ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
def spin():
    while True: pass
spin()
"""
# The run's group and the users of its tools, which no other run has.
IDS = [61500, 61501, 61502, 61503, 61504]


class Peer:
    """A prof-bpf as in a run, with a prof-deltas, and tests/hostile-symd in prof-symd's place."""

    def __init__(self, stack):
        self.stack = stack
        self.dir = tempfile.mkdtemp(dir="/tmp")
        stack.callback(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o711)
        os.mkdir(f"{self.dir}/bpf")
        os.chown(f"{self.dir}/bpf", IDS[1], IDS[0])
        os.chmod(f"{self.dir}/bpf", 0o710)

    def start(self, *argv, nice=5, **kw):
        """The profiled programs leave some cpu time to the others."""
        p = self.stack.enter_context(subprocess.Popen(list(map(str, argv)),
                                                      preexec_fn=lambda: os.nice(nice), **kw))
        self.stack.callback(p.kill)
        return p.pid

    def profile(self, deltas=True):
        where = ["--run-dir", self.dir, "--ids", ":".join(map(str, IDS))]
        life, self.life = os.pipe()
        self.bpf = subprocess.Popen([f"{BUILD}/prof-bpf", *where, "-F", "199", "--life-fd",
                                     str(life)], pass_fds=[life], stderr=subprocess.PIPE, text=True,
                                    preexec_fn=lambda: os.nice(-15))
        os.close(life)
        self.stack.enter_context(self.bpf)
        self.stack.callback(self.bpf.kill)
        self.where = where
        if deltas:
            self.deltas = self.start(f"{BUILD}/prof-deltas", *where, nice=-15)

    def dead_mount(self, path, mode):
        """A file system whose server never answers; mode: the mode of the mounted root."""
        libc = ctypes.CDLL(None, use_errno=True)
        fd = os.open("/dev/fuse", os.O_RDWR)
        self.stack.callback(os.close, fd)
        if libc.mount(b"dead", os.fsencode(path), b"fuse", 6,
                      f"fd={fd},rootmode={mode:o},user_id=0,group_id=0,allow_other".encode()):
            raise OSError(ctypes.get_errno(), "mount")
        self.stack.callback(libc.umount2, os.fsencode(path), 2)

    def symd(self, *commands):
        return ["setpriv", f"--reuid={IDS[3]}", f"--regid={IDS[0]}", "--clear-groups",
                f"{BUILD}/tests/hostile-symd", self.dir, str(IDS[1]), *map(str, commands)]

    def say(self, *commands):
        p = subprocess.run(self.symd(*commands), capture_output=True, text=True, timeout=100,
                           preexec_fn=lambda: os.nice(-15))
        print(p.stdout, p.stderr)
        assert p.returncode == 0, p.stderr
        return p.stdout.splitlines()

    def peak_kib(self):
        with open(f"/proc/{self.bpf.pid}/status") as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])

    def end(self):
        os.close(self.life)
        _, said = self.bpf.communicate(timeout=20)
        assert self.bpf.returncode == 0, said
        return said


@pytest.fixture
def peer():
    with contextlib.ExitStack() as stack:
        yield Peer(stack)


# The rows of the last two are valid, but fill the table of rules, after which other rows are not
# read.
TOLERATED = {"wrong", "circle"}
KINDS = ("unsorted outside unknown invalid torn more fewer huge endless stranger twice "
         "backwards noise circle wrong".split())
SPINNER = """
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) long spin(long n)
{
	for (long i = 0; i < n; i++)
		__asm__ volatile("");
	return n;
}
__attribute__((noinline)) long around(long n) { return spin(n) + 1; }
int main(int argc, char **argv)
{
	time_t end = time(NULL) + atoi(argv[1]);
	while (time(NULL) < end)
		around(1000000);
	while (argc > 2)
		pause();
}
"""


def test_no_answer_about_rows_ends_prof_bpf_or_fills_it(peer):
    spinner = f"{peer.dir}/spinner"
    subprocess.run(["gcc", "-O2", "-static", "-fomit-frame-pointer", "-x", "c", "-", "-o", spinner],
                   input=SPINNER, text=True, check=True)
    users = iter(range(2 * 65536 + 1000, 2**31, 65536))

    def fresh(name, seconds):
        # A new file of a user with a group of its own, so that the file is not blamed for others'
        # deeds. It stays, since rows of deleted files are not read.
        path, uid = f"{peer.dir}/{name}", next(users)
        shutil.copy(spinner, path)
        os.chown(path, uid, uid)
        return peer.start(path, str(seconds), "stay")

    def attack(kind):
        with subprocess.Popen(["setpriv", f"--reuid={IDS[2]}", f"--regid={IDS[0]}",
                               "--clear-groups", f"{BUILD}/tests/hostile-deltas", peer.dir,
                               str(IDS[1]), kind, "3"], stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.nice(-15)) as p:
            n = 0
            while p.poll() is None and n < 100:
                fresh(f"{kind}{n}", 1)
                n += 1
                with contextlib.suppress(subprocess.TimeoutExpired):
                    p.wait(0.3)
            said = p.stdout.read().strip()
        print(said)
        assert p.returncode == 0 and peer.bpf.poll() is None, (kind, said)
        of = figures(said)
        assert of["answered"] >= 3, said
        assert of["thrown"] == 0 if kind in TOLERATED else of["thrown"] >= 1, said

    peer.profile(deltas=False)
    listener = peer.stack.enter_context(
        subprocess.Popen(peer.symd("watch", 1000000, 1), stdout=subprocess.DEVNULL))
    peer.stack.callback(listener.kill)
    for kind in KINDS:
        attack(kind)
    listener.kill()
    listener.wait()
    # An honest prof-symd connects, and its requests succeed.
    peer.start(f"{BUILD}/prof-deltas", *peer.where, nice=-15)
    good, until = fresh("honest", 60), time.monotonic() + 30
    while True:
        of = figures(peer.say("watch", 20, good)[-1])
        if of["samples"] >= 20 and of["complete"] == of["samples"]:
            break
        assert time.monotonic() < until, of
    assert peer.peak_kib() < 96 << 10
    peer.end()


def fuse():
    """Whether the kernel has FUSE, perhaps as a module that was not loaded yet."""
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(["modprobe", "-q", "fuse"], check=False, stderr=subprocess.DEVNULL)
    return os.path.exists("/dev/fuse")


def test_no_file_is_given_by_another_way(peer):
    """Requests of a prof-symd that was taken over, together with a process that helps it."""
    folder = f"{peer.dir}/folder"
    os.makedirs(f"{folder}/.debug")
    os.makedirs(f"{peer.dir}/dead/.debug")
    spinner, secret, good = f"{folder}/spinner", f"{folder}/secret.debug", f"{folder}/good.debug"
    subprocess.run(["gcc", "-O2", "-static", "-x", "c", "-", "-o", spinner], input=SPINNER,
                   text=True, check=True)
    for path, mode in (secret, 0o600), (good, 0o644), (f"{folder}/set-id.debug", 0o4755):
        shutil.copy(spinner, path)
        os.chmod(path, mode)
    os.symlink("/etc/shadow", f"{folder}/link.debug")
    os.symlink(secret, f"{folder}/link-to-elf.debug")
    os.symlink("/proc/self/exe", f"{folder}/magic.debug")
    os.mkfifo(f"{folder}/pipe.debug")
    os.mknod(f"{folder}/zero.debug", 0o666 | 0o020000, os.makedev(1, 5))
    with open(f"{folder}/text.debug", "w") as f:
        f.write("not ELF")
    os.mkdir(f"{folder}/folder.debug")
    # Everybody may read these files, but only root may enter their folder.
    os.mkdir(f"{peer.dir}/closed", 0o700)
    enclosed = f"{peer.dir}/closed/spinner"
    for path in enclosed, f"{peer.dir}/closed/enclosed.debug":
        shutil.copy(spinner, path)
    by_enclosed = peer.start(enclosed, "100")
    names = ["secret.debug", "link.debug", "link-to-elf.debug", "magic.debug", "pipe.debug",
             "zero.debug", "text.debug", "folder.debug", "../folder/good.debug", "/etc/shadow",
             "..", ".", ".debug", "x" * 255]
    assert fuse()
    beside = f"{peer.dir}/dead/spinner"
    shutil.copy(spinner, beside)
    peer.dead_mount(f"{peer.dir}/dead/.debug", 0o40000)
    by_dead = peer.start(beside, "100")
    victims = {kind: peer.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                spinner, "100")
               for kind in ("link", "hard", "others", "pipe", "dead", "good")}
    maps = {kind: f"/tmp/perf-{pid}.map" for kind, pid in victims.items()}
    for path in maps.values():
        peer.stack.callback(os.unlink, path)
    os.symlink("/etc/shadow", maps["link"])
    os.link(secret, maps["hard"])
    os.mkfifo(maps["pipe"])
    for kind, uid in ("others", 61999), ("good", 65534), ("dead", 65534):
        with open(maps[kind], "w") as f:
            f.write("400000 10 good\n")
        os.chown(maps[kind], uid, uid)
    peer.dead_mount(maps["dead"], 0o100644)
    peer.profile()
    waited = [word for pid in [*victims.values(), by_dead, by_enclosed]
              for word in ("watch", 3, pid)]
    asked = [word for kind, pid in victims.items() for word in ("jit", pid)]
    asked += [word for name in names for word in ("debug", spinner, name)]
    asked += ["debug", enclosed, "enclosed.debug"]
    dead = ["debug", beside, "in-dead.debug"] * 6
    # A mount that never answers delays no answer about other files.
    said = peer.say(*waited, *asked, "debug", spinner, "good.debug", *dead, "debug", spinner,
                    "good.debug", "jit", victims["good"], "watch", 10, victims["good"])
    jits = [line.split(maxsplit=2)[2] for line in said if line.startswith("jit map")]
    debugs = [line.split(maxsplit=2)[1:] for line in said if line.startswith("debug")]
    assert [name for name, _ in debugs] == [*names, "enclosed.debug", "good.debug",
                                            *["in-dead.debug"] * 6, "good.debug"]
    assert not any(how.startswith("given") for name, how in debugs if name != "good.debug"), debugs
    assert [how for name, how in debugs if name == "good.debug"] == ["given 4 7f454c46"] * 2
    assert [how for name, how in debugs if name == "in-dead.debug"] == ["ETIMEDOUT"] * 6
    of = figures(said[-1])
    assert of["samples"] >= 10 and of["complete"] >= of["samples"] - 2
    peer.end()


def figures(line):
    return {k: int(v) for k, v in re.findall(r"(\S+)=(\d+)", line)}


def test_wild_configs_change_nothing_but_names(peer, tmp_path):
    native = peer.start("xz", "-T1", "-9", "-c", "/dev/zero", stdout=subprocess.DEVNULL)
    pythons = []
    for i in range(3):
        copy = f"{peer.dir}/python{i}"
        shutil.copy(PYTHON, copy)
        os.chmod(copy, 0o755)
        pythons.append(copy)
        peer.start(copy, "-c", SPIN)
    peer.profile()
    # Nonsense configs, also for a file that does hold an interpreter: the walk uses these.
    lies = [word for copy in pythons for word in ("lie", copy)]
    said = peer.say(*lies, "wild", 10000, "watch", 20, native)
    wild = re.fullmatch(r"wild (\d+) gone=0", said[-2])
    assert wild and int(wild[1]) >= 10000
    of = figures(said[-1])
    assert of["samples"] >= 20 and of["complete"] == of["samples"] and of["interpreted"] == 0
    assert peer.peak_kib() < 64 << 10
    # The config of a file that holds no interpreter is asked for once.
    assert peer.end().count("which the file does not contain") == 1


def test_memory_is_read_only_from_processes_that_run_python(peer):
    for name, mode in ("sshd", 0o755), ("set-id", 0o4755):
        shutil.copy(PYTHON, f"{peer.dir}/{name}")
        os.chmod(f"{peer.dir}/{name}", mode)
    asleep = peer.start(PYTHON, "-c", "import time\ntime.sleep(1000)")
    native = peer.start("xz", "-T1", "-9", "-c", "/dev/zero", stdout=subprocess.DEVNULL)
    good, sshd, set_id = [peer.start(python, "-c", SPIN)
                          for python in (PYTHON, f"{peer.dir}/sshd", f"{peer.dir}/set-id")]
    undumpable = peer.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", PYTHON,
                            "-c", SPIN, "undumpable")
    time.sleep(0.5)  # it is asleep before samples are taken
    peer.profile()
    tell = ["tell", PYTHON, "tell", f"{peer.dir}/sshd", "tell", f"{peer.dir}/set-id"]
    known = [word for pid in (sshd, set_id, undumpable, good) for word in ("await", pid)]
    refused = [1, peer.bpf.pid, peer.deltas, native, asleep, sshd, set_id, undumpable]
    said = peer.say(*tell, *known, *[word for pid in [*refused, good] for word in ("ask", pid)],
                    "shapes", good)
    said = [line for line in said if line.startswith(("ask", "shape"))]
    for line in said[:len(refused)]:
        of = figures(line)
        assert (of["given"] == 0 and of.get("EACCES", 0) <= 1 and of["ESRCH"] > 50
                and set(of) <= {"given", "gone", "EACCES", "ESRCH"}), line
    assert all("EACCES=1" in line for line in said[3:len(refused)])
    of = figures(said[len(refused)])
    assert of["given"] == 64 and of["ok"] == 1
    given = {line.split()[1]: figures(line) for line in said[len(refused) + 1:]}
    # An object consists of its own bytes, from its start on.
    most = given.pop("most")["given"]
    assert 100 * 256 <= most <= 300 * 256, most
    assert {name: f["given"] for name, f in given.items() if f["given"]} == {"plain": 64}
    assert [name for name, f in given.items() if "EINVAL" in f] == [
        "nothing", "huge", "sum", "more", "pid"]
    peer.end()


# Spins beside memory to which none of its functions leads, and prints its address.
SECRET = """
import ctypes, mmap
m = mmap.mmap(-1, 1 << 20)
m.write(b"secret" * 1000)
print(ctypes.addressof(ctypes.c_char.from_buffer(m)), flush=True)
"""


def test_memory_that_no_function_leads_to_is_not_given(peer):
    p = peer.stack.enter_context(subprocess.Popen([PYTHON, "-c", SECRET + SPIN], text=True,
                                                  stdout=subprocess.PIPE))
    peer.stack.callback(p.kill)
    at = int(p.stdout.readline())
    peer.profile()
    said = peer.say("tell", PYTHON, "await", p.pid, "ask", p.pid, "read", p.pid, at, "read", p.pid,
                    at + 4096)
    asked, *read = [figures(line) for line in said if line.startswith(("ask", "shape"))]
    assert asked["given"] == 64 and [of["given"] for of in read] == [0, 0], said
    assert all("EFAULT" in of for of in read), said
    peer.end()


# Spins beside a file that it has read: a variable, an attribute, and memory that is free again.
READ = """
class Box: pass
box = Box()
box.inner = {"key": [open(%r).read()]}
data = open(%r).read()
open(%r).read()
def loop(box):
    while True:
        box.inner
loop(box)
"""


@pytest.mark.parametrize("how,most", [("tell", 4 << 10), ("greedy", 64 << 10)])
def test_a_peer_that_follows_all_words_reads_only_names(peer, how, most):
    secret = f"{peer.dir}/secret"
    with open(secret, "w") as f:
        f.write("TOP-SECRET-SECRET" * 20)
    p = peer.start(PYTHON, "-c", READ % (secret, secret, secret))
    time.sleep(0.5)
    peer.profile()
    said = peer.say(how, PYTHON, "await", p, "crawl", p, "TOP-SECRET-SECRET")
    of = figures(said[-1])
    # Objects and their strings and tables were given; with a wrong description, other memory.
    assert of["roots"] and of["ok"] and of["EFAULT"] and 400 < of["bytes"] < most, said
    assert how == "greedy" or of["found"] == 0, said
    peer.end()


def test_a_peer_that_floods_or_reads_no_answer_is_limited(peer):
    good = peer.start(PYTHON, "-c", SPIN)
    native = peer.start("xz", "-T1", "-9", "-c", "/dev/zero", stdout=subprocess.DEVNULL)
    peer.profile()
    said = peer.say("tell", PYTHON, "await", good, "flood", good, 3, "watch", 20, native)
    of = figures(said[-1])
    said += peer.say("await", good, "deaf", good)
    flood = figures(next(line for line in said if line.startswith("flood")))
    most = (16 << 20) + (4 << 20) * flood["ms"] / 1000
    assert 16 << 20 <= flood["given"] <= most + (1 << 20) and flood["EAGAIN"] and not flood["gone"]
    assert "deaf thrown out" in said
    assert of["samples"] >= 20 and of["complete"] == of["samples"]
    assert peer.peak_kib() < 96 << 10
    peer.end()


def test_code_names_are_copied_for_each_peer_and_not_awaited_at_the_end(peer):
    good = peer.start(PYTHON, "-c", SPIN)
    peer.profile()
    first = figures(peer.say("tell", PYTHON, "await", good, "watch", 60, good)[-1])
    # It runs the same code all the time.
    second = figures(peer.say("watch", 60, good)[-1])
    assert first["copied"] >= 2 and 2 <= second["copied"] <= 6, (first, second)
    for of in first, second:
        assert of["interpreted"] >= 0.9 * of["samples"], (first, second)
    since = time.monotonic()
    peer.bpf.send_signal(signal.SIGTERM)
    # Another prof-symd might come until the launcher reports that none will.
    os.close(peer.life)
    assert peer.bpf.wait(30) == 0
    assert time.monotonic() - since < 10


# A process that waits with invalid frames.
WRONG_FRAMES = """
import ctypes, sys, time
kind = sys.argv[1]
def victim():
    frame = sys._getframe()
    at = ctypes.c_uint64.from_address(id(frame) + 24).value
    if kind == "lengths":
        ctypes.c_uint64.from_address(id(frame.f_code.co_qualname) + 16).value = 1 << 63
        ctypes.c_uint64.from_address(id(frame.f_code.co_linetable) + 16).value = 1 << 62
    else:
        ctypes.c_uint64.from_address(at + 48).value = {
            "cycle": at, "unmapped": 0x10000, "kernel": 0xffffffff81000000, "odd": at + 3}[kind]
    print("ready", flush=True)
    while True: pass
victim()
"""


@pytest.mark.parametrize("kind", ["cycle", "unmapped", "kernel", "odd", "lengths", "pit"])
def test_a_dump_of_wrong_frames_ends_and_has_the_native_ones(kind, tmp_path):
    program = WRONG_FRAMES
    if kind == "pit":
        ready = "    print('ready', flush=True)\n    end = time"
        program = TAR_PIT.replace("    end = time", ready).replace("2.5", "60")
    with subprocess.Popen(["/usr/bin/python3", "-c", program, kind], stdout=subprocess.PIPE,
                          text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            dump = profpipe("dump", p.pid, timeout=60)
        finally:
            p.kill()
    assert dump.returncode == 0, dump.stderr
    assert "Py_BytesMain" in dump.stdout and "_start" in dump.stdout
    # Frames that form a circle are cut.
    assert dump.stdout.count("\n") < 70000
