# SPDX-License-Identifier: Apache-2.0
"""Each process that reads untrusted bytes, and prof-cpus, is taken over. tests/redteam then makes
forbidden attempts from inside, one per process. No attempt may succeed. As a control, each attempt
succeeds from a process of root that gave up no rights. Then the same is repeated with parts of the
cell left out, to see what each of the other parts prevents."""
import contextlib
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import pytest
from conftest import BUILD
from running import children_of

# struct takeover_orders: the order, fields that are filled in, and fields that report.
HEAD, SELF, TOLD = struct.Struct("=IIq"), struct.Struct("=i"), struct.Struct(
        "=128s128s128s128s128s128s")
AT_STATE, AT_PIDS, AT_SELF, AT_TRIED = 4, 16, 28, 32
AT_ADDRESSES, AT_ENTERED, AT_PORT, AT_TOLD = 40, 56, 64, 72
DONE, ORDERED, BEGUN = range(3)
LIST = [line.split()
        for line in subprocess.run([f"{BUILD}/tests/redteam-control"], env={"REDTEAM_LIST": "1"},
                                   capture_output=True, text=True, check=True).stdout.splitlines()]
NAMES = [words[0] for words in LIST]
HELD = {words[0] for words in LIST if words[1:] == ["held"]}
ACTS = [words[0] for words in LIST if words[1:] == ["act"]]
ATTEMPTS = [name for name in NAMES if name not in ACTS]
# If the kernel or the machine lacks a feature, or something else stops even root, the control may
# also fail.
MAY_LACK = set("""
    make_secret_memfd make_vsock make_alg make_packet make_bluetooth make_xdp make_userfaultfd
    make_fanotify make_ring make_aio x32_abi other_abi change_segments see_modules_go
    module_from_held io_ports io_level open_device open_by_handle flags_of_held
    attribute_of_held lease_held execute_held clone_held punch_held seal_held direct_held
    handle_of_held message_queue read_log raise_limit keep_capabilities request_key see_quotas
    pidfd_of_peer take_descriptor_of_peer path_of_socket send_urgent let_all_trace
    push_to_terminal move_pages_of_it advise_memory_of_it
""".split())
ROUTES = {"bpf/rows.sock": socket.SOCK_STREAM, "bpf/stream.sock": socket.SOCK_STREAM,
          "bpf/files.sock": socket.SOCK_STREAM, "export/named.sock": socket.SOCK_STREAM,
          "bpf/rows.fds": socket.SOCK_SEQPACKET, "bpf/files.fds": socket.SOCK_SEQPACKET}
VICTIM = ("import ctypes, sys, time\nb = ctypes.create_string_buffer(64)\n"
          "print(ctypes.addressof(b), flush=True)\nwhile True: time.sleep(1)")
# Runs half of the time, and leaves the cpus to the tools.
SPINNER = """#include <time.h>
static volatile unsigned long n;
static inline __attribute__((always_inline)) void inlined(void) { n++; }
static __attribute__((noinline)) void spin(void) { for (int i = 0; i < 4000000; i++) inlined(); }
int main(void)
{
	struct timespec rest = { 0, 5000000 };
	for (;; nanosleep(&rest, 0))
		spin();
}"""
IN_MEMORY = ("import os, sys\nfd = os.memfd_create('program')\n"
             "with open(sys.argv[1], 'rb') as f: os.write(fd, f.read())\n"
             "os.execve(fd, ['program'], {})")
# The name that the kernel gives the process: that of its file; if it runs from memory, that too,
# but before Linux 6.14 the descriptor's.
COMMS = ("program", "memfd:program", "3")


@pytest.fixture(scope="module")
def spinner(tmp_path_factory):
    """A program that runs, and has debug information."""
    path = tmp_path_factory.mktemp("spinner") / "spinner"
    subprocess.run(["gcc", "-g", "-O2", "-x", "c", "-", "-o", path], input=SPINNER, text=True,
                   check=True)
    return path


def ended(pid):
    """None while it lives; else how it ended, if known."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            words = f.read().rpartition(")")[2].split()
    except OSError:
        return "gone"
    return said(int(words[49])) if words[0] in "ZX" else None


def said(status):
    return (f"killed by {signal.Signals(status & 127).name}" if status & 127
            else f"exit {status >> 8}")


def is_mapped(pid, name):
    with open(f"/proc/{pid}/maps") as f:
        return any(" r-xp " in line and name in line for line in f)


class Scene:
    """The targets of the attempts: a victim of root and one of the tool's own user, a secret, a
    writable file in a closed folder, servers for everybody."""

    def __init__(self, stack, run_dir, uid=0, gid=0):
        self.dir = tempfile.mkdtemp(dir="/var/tmp")  # where programs may run, and people look in
        stack.callback(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.secret, self.closed, self.open_file, self.ran, path = (
            f"{self.dir}/{name}" for name in ("secret", "closed", "closed/open", "ran", "socket"))
        with open(self.secret, "w") as f:
            f.write("secret")
        os.chmod(self.secret, 0o600)
        os.mkdir(self.closed, 0o700)
        self.fresh()
        self.serve(stack, path, socket.SOCK_STREAM)
        abstract = f"redteam-{os.getpid()}-{id(self)}"
        self.serve(stack, f"\0{abstract}", socket.SOCK_STREAM)
        with contextlib.suppress(OSError):  # another scene has it
            self.serve(stack, "\0redteam-datagrams", socket.SOCK_DGRAM)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.master, self.terminal = os.openpty()
        stack.callback(os.close, self.master)
        stack.callback(os.close, self.terminal)
        os.set_blocking(self.master, False)
        self.log = ""
        victims = [self.victim(stack, who)
                   for who in ([],
                               ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"])]
        file = stack.enter_context(open(f"{self.dir}/orders", "w+b"))
        file.truncate(4096)
        self.page = mmap.mmap(file.fileno(), 4096)
        stack.callback(self.page.close)
        struct.pack_into("=iii", self.page, AT_PIDS, victims[0][0], victims[0][0], victims[1][0])
        struct.pack_into("=QQ", self.page, AT_ADDRESSES, victims[0][1], victims[1][1])
        struct.pack_into("=Q", self.page, AT_PORT, tcp.getsockname()[1])
        TOLD.pack_into(self.page, AT_TOLD,
                       *(s.encode() for s in (run_dir, self.secret, self.open_file, self.ran, path,
                                              abstract)))
        self.victims = [pid for pid, _ in victims]

    def serve(self, stack, path, kind):
        server = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        server.bind(path)
        if path[0] != "\0":
            os.chmod(path, 0o777)
        if kind != socket.SOCK_DGRAM:
            server.listen(1000)

    def victim(self, stack, who):
        p = stack.enter_context(subprocess.Popen([*who, "/usr/bin/python3", "-c", VICTIM],
                                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                                 text=True, start_new_session=True))
        stack.callback(p.kill)
        return p.pid, int(p.stdout.readline())

    def fresh(self):
        left = [e for e in os.scandir("/dev/shm") if e.name.startswith("redteam-")]
        for entry in [*os.scandir(self.closed),
                      *(e for e in os.scandir(self.dir) if e.name == "linked"), *left]:
            (os.rmdir if entry.is_dir(follow_symlinks=False) else os.unlink)(entry.path)
        shutil.copy(shutil.which("true"), self.open_file)
        os.chmod(self.open_file, 0o777)
        with open(self.ran, "w"):
            os.chmod(self.ran, 0o666)

    def order(self, name):
        self.fresh()
        HEAD.pack_into(self.page, 0, NAMES.index(name), DONE, 0)
        # Written last and in one step, because the tool acts as soon as it sees it.
        self.page[AT_STATE] = ORDERED

    def state(self):
        return HEAD.unpack_from(self.page, 0)[1:]

    @property
    def taken(self):
        """The pid of the process that is taken over; 0: none yet."""
        return SELF.unpack_from(self.page, AT_SELF)[0]

    @property
    def tried(self):
        """The process that carried the order out."""
        return struct.unpack_from("=q", self.page, AT_TRIED)[0]

    def forget(self):
        SELF.pack_into(self.page, AT_SELF, 0)
        struct.pack_into("=Q", self.page, AT_ENTERED, 0)

    def entered(self):
        return struct.unpack_from("=Q", self.page, AT_ENTERED)[0]

    def signal(self):
        if self.taken:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.taken, signal.SIGUSR2)

    def hear(self):
        with contextlib.suppress(BlockingIOError, OSError):
            self.log += os.read(self.master, 65536).decode(errors="replace")


def outcome(scene, poke, how_ended, patience=30):
    """How the ordered attempt was refused, or None if it worked. how_ended: like `ended`, for the
    process that tried."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        scene.hear()
        how = how_ended()
        state, result = scene.state()
        if state == DONE:
            return None if result >= 0 else os.strerror(-result)
        if state == BEGUN and how:
            # The program that replaced it succeeded.
            return None if how == "exit 0" or os.path.getsize(scene.ran) else how
        assert state != ORDERED or not how, f"it ended before it tried: {how}: {scene.log}"
        if state == ORDERED:
            poke()
        time.sleep(0.002)
    if scene.state()[0] == BEGUN:
        return None  # another program runs in its place
    raise AssertionError(f"nothing was tried: {scene.log}")


@pytest.fixture(scope="module")
def control():
    """The names of the attempts that work for root, who has every right."""
    worked = set()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))
        scene = Scene(stack, folder)
        for route, kind in ROUTES.items():
            os.makedirs(os.path.dirname(f"{folder}/{route}"), exist_ok=True)
            scene.serve(stack, f"{folder}/{route}", kind)
        for name in ATTEMPTS:
            scene.forget()
            scene.order(name)
            held = shutil.copy(scene.open_file, f"{scene.dir}/held")
            # Mounts, host name and queues of its own; what it leaves in /dev/shm goes with them.
            with subprocess.Popen(["unshare", "-m", "-u", "-i", "sh", "-c",
                                   'mount -t tmpfs none /dev/shm && exec "$@"', "sh",
                                   f"{BUILD}/tests/redteam-control", held],
                                  env={"REDTEAM_ORDERS": f"{scene.dir}/orders"},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=scene.terminal) as p:
                assert p.stdout.readline() == b"ready\n"
                if outcome(scene, scene.signal, lambda p=p: ended(p.pid)) is None:
                    worked.add(name)
                p.kill()
    return worked


def test_the_attempts_work_for_root(control):
    lacking = [name for name in ATTEMPTS if name not in control]
    print(f"{len(control)} of {len(ATTEMPTS)}; not: {lacking}")
    assert set(lacking) <= MAY_LACK, set(lacking) - MAY_LACK


class Target:
    """A target that is taken over, and that is restarted when it dies of that."""

    def __init__(self, stack, name, ids, without=""):
        self.stack, self.name, self.ids = stack, name, ids
        self.dir = tempfile.mkdtemp(dir="/tmp")
        stack.callback(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o711)
        self.scene = Scene(stack, self.dir, self.uid(), ids[0])
        stack.callback(self.scene.fresh)
        self.env = {"REDTEAM_ORDERS": f"{self.scene.dir}/orders",
                    "REDTEAM_PART": {"worker": "worker", "keeper": "keeper", "lender": "keeper",
                                     "dump": "half"}.get(name, "tool"),
                    "REDTEAM_WITHOUT": without}
        stack.callback(self.end)

    def uid(self):
        name = {"worker": "symd", "keeper": "symd"}.get(self.name, self.name)
        return self.ids[["", "cpus", "deltas", "symd", "export"].index(name)]

    @contextlib.contextmanager
    def program(self, spinner, in_memory):
        """A descriptor that no tool was ever given, of a file that everybody may write."""
        path = f"{self.scene.closed}/program"
        shutil.copy(spinner, path)
        with open(path, "ab") as f:
            f.write(os.urandom(16))
        os.chmod(path, 0o777)
        p = subprocess.Popen(["/usr/bin/python3", "-c", IN_MEMORY, path] if in_memory else [path],
                             stdin=subprocess.DEVNULL)
        try:
            while not is_mapped(p.pid, "/memfd:program" if in_memory else path):
                time.sleep(0.002)
            yield p.pid
        finally:
            p.kill()
            p.wait()


class Deployed(Target):
    """The four tools as in a deployment; one of them, or one of its children, is taken over. When
    that one dies, it is started again, with the tools that exit with it."""

    ORDER = ["bpf", "deltas", "symd", "export"]

    def __init__(self, stack, name, ids, without=""):
        super().__init__(stack, name, ids, without)
        self.tool = {"worker": "symd", "keeper": "symd"}.get(name, name)
        for i, folder in (1, "bpf"), (4, "export"):
            os.mkdir(f"{self.dir}/{folder}")
            os.chown(f"{self.dir}/{folder}", ids[i], ids[0])
            os.chmod(f"{self.dir}/{folder}", 0o710)
        self.out = stack.enter_context(open(f"{self.scene.dir}/out", "w+b"))
        self.processes = {}

    def start(self, name):
        taken = name == self.tool
        if taken:
            self.scene.forget()
        ready, status = os.pipe()
        argv = [f"{BUILD}/tests/redteam-{name}" if taken else f"{BUILD}/prof-{name}", "--run-dir",
                self.dir, "--ids", ":".join(map(str, self.ids)), "--status-fd", str(status)]
        if name == "bpf":
            # Programs of other tests, dozens of which may die with the taken tool, must not be part
            # of this.
            argv += ["-F", "199", *(f"--comm={comm}" for comm in COMMS)]
        elif name == "export":
            argv += ["-f", "text", "--output-fd", str(self.out.fileno())]
        p = subprocess.Popen(argv, pass_fds=[status, self.out.fileno()],
                             env=self.env if taken else {}, stdin=subprocess.DEVNULL,
                             stderr=self.scene.terminal)
        os.close(status)
        self.processes[name] = p
        return ready

    def stop(self, *names):
        for name in names:
            p = self.processes.pop(name, None)
            if p:
                p.kill()
                p.wait()

    def bring_up(self):
        """Starts again every tool that has ended, and every tool that it talked to, except for
        prof-bpf, which outlives them all."""
        self.scene.hear()
        gone = {name for name, p in self.processes.items() if p.poll() is not None}
        assert "bpf" not in gone, self.scene.log
        if (self.name == "keeper" and "symd" in self.processes
                and (not self.scene.taken or ended(self.scene.taken))):
            gone.add("symd")
        self.stop(*gone)
        if gone & {"symd", "export"}:
            self.stop("symd", "export")
        # Each waits for the tool that it dials.
        for name, ready in [(name, self.start(name))
                            for name in self.ORDER if name not in self.processes]:
            word = os.read(ready, 4096)
            os.close(ready)
            self.scene.hear()
            assert len(word) >= 8, f"{name} is not ready: {self.scene.log}"
            assert struct.unpack_from("=I", word, 4) == (1,), (
                f"{name} is not ready: {self.scene.log}")

    def end(self):
        self.stop(*list(self.processes))

    def how_ended(self):
        if self.name in ("worker", "keeper"):
            return ended(self.scene.tried) if self.scene.state()[0] == BEGUN else None
        code = self.processes[self.tool].poll()
        return None if code is None else said(-code if code < 0 else code << 8)

    def attempt(self, name, spinner, in_memory=False):
        if self.name == "worker":
            # After many deaths of its workers, prof-symd starts the next one only later.
            try:
                return self.attempt_once(name, spinner, in_memory, patience=4)
            except AssertionError:
                self.stop("symd", "export")
        return self.attempt_once(name, spinner, in_memory)

    def attempt_once(self, name, spinner, in_memory, patience=30):
        self.bring_up()
        self.scene.order(name)
        if name not in HELD and (
                self.name != "worker" or self.scene.taken and not ended(self.scene.taken)):
            how = outcome(self.scene, self.scene.signal, self.how_ended, patience)
        else:
            with self.program(spinner, in_memory):
                how = outcome(self.scene, (lambda: None) if name in HELD else self.scene.signal,
                              self.how_ended, patience)
        if how is None and name not in ACTS:
            self.start_over()
        return how

    def start_over(self):
        """Earlier attempts may have left traces."""
        self.stop(self.tool)
        # prof-symd goes with its worker: it gives up a file over which one died.
        if self.tool in ("symd", "export"):
            self.stop("symd", "export")


class Cpus(Target):
    """prof-cpus, started as prof-bpf does."""

    def attempt(self, name, spinner, in_memory=False):
        # Each attempt has a new one, since the process ends when a signal arrives.
        self.scene.forget()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = ["bash", "-c", f'exec 3<&{theirs.fileno()}; exec "$@"', "bash",
                f"{BUILD}/tests/redteam-cpus", "--cpus", "cpu-clock", "-F", "49", "--ids",
                ":".join(map(str, self.ids))]
        with ours, subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=self.env,
                                    stdin=subprocess.DEVNULL,
                                    stderr=self.scene.terminal) as self.process:
            theirs.close()
            try:
                while not self.scene.entered():
                    assert self.process.poll() is None, self.scene.log
                    time.sleep(0.002)
                self.scene.order(name)
                return outcome(self.scene, self.scene.signal, lambda: ended(self.process.pid))
            finally:
                self.process.kill()

    def end(self):
        pass


class Dump(Target):
    """The half of prof-dump that reads files."""

    def uid(self):
        return 2000001024

    def attempt(self, name, spinner, in_memory=False):
        self.scene.forget()
        self.scene.order(name)
        with (self.program(spinner, in_memory) as pid,
              subprocess.Popen([f"{BUILD}/tests/redteam-dump", "-n", str(pid)], env=self.env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True) as p):
            def how_ended():
                if p.poll() is None:
                    return None
                by = re.search(r"ended by signal (\d+)", p.stderr.read())
                return said(int(by[1])) if by else f"exit {p.returncode}"
            try:
                return outcome(self.scene, lambda: None, how_ended)
            finally:
                p.kill()
                # The next order is for another process.
                if self.scene.taken:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.scene.taken, signal.SIGKILL)
                    while not ended(self.scene.taken):
                        time.sleep(0.002)

    def end(self):
        pass


class Send(Target):
    """prof-send by hand, as a user of its own, or its lender. No server listens at its endpoint."""

    def uid(self):
        return self.ids[1]

    def attempt(self, name, spinner, in_memory=False):
        # Most attempts kill it, so each has a new one.
        self.scene.forget()
        os.chmod(f"{self.scene.dir}/orders", 0o666)
        tokens = f"{self.dir}/tokens"
        if not os.path.exists(tokens):
            for path in tokens, f"{self.dir}/spool":
                os.mkdir(path, 0o700)
                os.chown(path, self.uid(), self.ids[0])
            with open(f"{tokens}/headers", "w") as f:
                f.write("authorization: token\n")
            os.chmod(f"{tokens}/headers", 0o600)
            os.chown(f"{tokens}/headers", self.uid(), self.ids[0])
        argv = ["setpriv", f"--reuid={self.uid()}", f"--regid={self.ids[0]}", "--clear-groups",
                f"{BUILD}/tests/redteam-send", "--otlp", "http://127.0.0.1:9",
                "--otlp-header-file", f"{tokens}/headers", "--otlp-spool", f"{self.dir}/spool"]
        with subprocess.Popen(argv, env=self.env, stdin=subprocess.PIPE,
                              stderr=self.scene.terminal) as process:
            def how_ended():
                if self.name == "send":
                    return ended(process.pid)
                return ended(self.scene.tried) if self.scene.state()[0] == BEGUN else None
            try:
                while not self.scene.entered():
                    assert process.poll() is None, self.scene.log
                    time.sleep(0.002)
                self.scene.order(name)
                return outcome(self.scene, self.scene.signal, how_ended)
            finally:
                process.kill()

    def end(self):
        pass


TARGETS = {"deltas": Deployed, "symd": Deployed, "worker": Deployed, "keeper": Deployed,
           "export": Deployed, "send": Send, "lender": Send, "cpus": Cpus, "dump": Dump}
# the file that prof-export gets is its output, which it has to write
NO_FILE = {"keeper", "cpus", "export", "send", "lender"}
# The purpose of each.
OWN = {"keeper": {"do_fork", "do_clone", "make_pair", "see_time_of_it"}, "dump": {"make_memfd"},
       "send": {"make_inet", "make_inet6", "make_pair"}}


def target(stack, name, without=""):
    first = 61510 + 10 * list(TARGETS).index(name)
    return TARGETS[name](stack, name, list(range(first, first + 5)), without)


def attempts_on(name):
    """The attempts, and their files."""
    return [(a, memory) for a in ATTEMPTS if a not in HELD or name not in NO_FILE
            for memory in ((False, True) if a in HELD else (False,))]


def all_attempts(t, spinner):
    """The refused attempts by their errors, and those that worked."""
    refused, worked = {}, set()
    for name, in_memory in attempts_on(t.name):
        how = t.attempt(name, spinner, in_memory)
        if how is None:
            worked.add(name)
        else:
            refused.setdefault(how, []).append((name, in_memory))
    if isinstance(t, Deployed):
        t.bring_up()
        assert t.processes["bpf"].poll() is None
    for pid in t.scene.victims:
        os.kill(pid, 0)
    return refused, worked


@pytest.mark.parametrize("name", TARGETS)
def test_a_tool_taken_over_can_do_nothing(name, control, spinner):
    with contextlib.ExitStack() as stack:
        refused, worked = all_attempts(target(stack, name), spinner)
    for how, tried in refused.items():
        print(f"{how}: {len(tried)}: "
              f"{' '.join(a + ' (memory)' * in_memory for a, in_memory in tried)}")
    work = sum(a in control for tried in refused.values() for a, _ in tried)
    print(f"refused {sum(map(len, refused.values()))}, of which {work} work for root")
    assert worked == OWN.get(name, set()), worked ^ OWN.get(name, set())


# --- each part of a cell ---

# Attempts that the other parts allow without the list of system calls. Memory and programs of its
# own:
OWN_MEMORY = set("""
    make_memfd make_secret_memfd map_held_executable map_code make_code make_code_by_key do_fork
    do_clone do_clone3 trace_me group_it adopt_orphans become_dumpable listen_to_calls
    change_personality change_segments other_abi
""".split())
# namespaces of its own, their contents, and keys;
OWN_SPACES = set("make_inet make_inet6 make_netlink make_vsock make_pair bind_abstract "
                 "shared_memory semaphores messages add_key read_keyring clone_into_namespaces "
                 "new_user_namespace".split())
# parts of the kernel that nobody needs, which may have holes;
MORE_KERNEL = set("make_ring make_userfaultfd make_aio send_urgent filter_socket enlarge_socket "
                  "send_elsewhere see_quotas".split())
# open descriptors and public things: flags and times, never their contents; an inherited folder can
# be listed;
OPEN_ALREADY = set("""
    list_held_folder attribute_of_held times_of_held lock_held record_lock_held direct_held
    append_held signal_by_held splice_held handle_of_held set_terminal see_keyboard
    pidfd_of_peer take_descriptor_of_peer
""".split())
# and other processes are visible; those of its own user, of which there are none, can be slowed
# down.
OTHERS = set("open_pidfd see_cpus_of_it see_time_of_it wait_for_time_of_it lock_by_it "
             "limit_kin schedule_kin renice_kin prioritize_disk_of_kin".split())
NO_CALLS = OWN_MEMORY | OWN_SPACES | MORE_KERNEL | OPEN_ALREADY | OTHERS
# Landlock covers only opening, making and removing. Without the empty root, a process sees which
# files exist, and reaches sockets with a path.
NO_ROOT = set("""
    open_path_only open_by_handle see_file see_with_statx read_link ask_access change_folder
    watch_file reopen_held connect_server connect_rows connect_stream connect_files
    connect_named connect_rows_lane connect_files_lane
""".split())
# An empty root hides no process: without Landlock, those of its own user are reachable.
NO_LANDLOCK = set(
        "trace_kin read_kin write_kin signal_kin take_descriptor_of_kin message_queue".split())
# Without all of these parts, it can do what any user can.
A_USER = set("""
    open_passwd open_root open_proc open_terminal list_folder create_file create_with_creat
    make_folder make_node link_symbolic run_shell run_shell_at clone_a_shell connect_inet
    connect_abstract execute_held
""".split())
# The part that is left out, and the attempts that work then.
LAYERS = {
    "landlock": set(),
    "root": set(),
    "landlock root": set(),
    "calls": NO_CALLS,
    "calls root": NO_CALLS | NO_ROOT,
    "calls landlock": NO_CALLS | NO_LANDLOCK,
    "calls landlock root": NO_CALLS | NO_ROOT | NO_LANDLOCK | A_USER,
}
# Whether a tool has threads, peers, a terminal, that folder or files depends on the tool.
BY_WHO = set("new_user_namespace take_descriptor_of_peer list_held_folder send_urgent "
             "send_elsewhere set_terminal trace_me limit_kin".split()) | HELD
# prof-cpus has a root and a network, of which it reads nothing. prof-send and its lender also keep
# the host's root.
CPUS = NO_ROOT | NO_LANDLOCK | {"connect_inet", "connect_abstract", "open_event"}
MORE = {"cpus": CPUS, "send": NO_ROOT, "lender": NO_ROOT}


@pytest.mark.parametrize("name, without", [
    *(pytest.param("deltas", w, marks=[pytest.mark.check_all] if len(w.split()) == 2 else [])
      for w in LAYERS),
    *(pytest.param(name, "calls", marks=pytest.mark.check_all)
      for name in TARGETS if name != "deltas")])
def test_each_part_of_a_cell_holds_by_itself(name, without, control, spinner):
    with contextlib.ExitStack() as stack:
        refused, worked = all_attempts(target(stack, name, without), spinner)
    print(f"prof-{name} without {without.replace(' ', ', ')}: "
          f"{sum(map(len, refused.values()))} refused, {len(worked)} possible: "
          f"{' '.join(sorted(worked))}")
    may = LAYERS[without] | MORE.get(name, set())
    assert worked <= may, worked - may
    # And all of these attempts work, unless this kernel lacks the feature.
    missing = LAYERS[without] - worked - BY_WHO - (MAY_LACK - control)
    assert not missing, missing


# --- actions that are allowed ---


def ends(p):
    """How many sockets and pipes prof-bpf has, but for those to its workers, which come and go."""
    found = 0
    for fd in os.listdir(f"/proc/{p.pid}/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/{p.pid}/fd/{fd}").startswith(("socket:", "pipe:"))
    for child in children_of(p.pid):
        with contextlib.suppress(OSError):
            found -= len(children_of(child))
    return found


@pytest.mark.parametrize("name", ["deltas", "symd", "export"])
def test_messages_of_a_tool_taken_over_harm_no_other(name, spinner):
    """It sends unwanted descriptors, queues full of noise, and false reports about its death."""
    with contextlib.ExitStack() as stack:
        t = target(stack, name)
        t.bring_up()
        bpf, before = t.processes["bpf"], ends(t.processes["bpf"])
        for act in ACTS:
            how = t.attempt(act, spinner)
            assert act != "send_descriptors" or how is None and t.scene.state()[1] > 0
            # Whether or not it was disconnected.
            t.start_over()
            t.bring_up()
            assert t.processes["bpf"] is bpf and bpf.poll() is None, t.scene.log
            end = time.monotonic() + 20
            while ends(bpf) > before and time.monotonic() < end:
                time.sleep(0.05)
            assert ends(bpf) <= before, act
