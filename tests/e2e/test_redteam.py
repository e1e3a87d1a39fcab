# SPDX-License-Identifier: Apache-2.0
"""Each unprivileged tool after it was taken over: tests/redteam tries from inside of it, one thing a process, what a tool has no business doing.
Nothing may work; and what is tried does work from a process of root's that nothing was taken from, or it would prove nothing."""
import concurrent.futures
import contextlib
import mmap
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import pytest
from conftest import BUILD

ORDERS = struct.Struct("=IIqiiQ128s128s128s128s")
DONE, ORDERED, BEGUN = range(3)
SIGSYS_DEATH = "killed"
LIST = subprocess.run([f"{BUILD}/tests/redteam-control"], env={"REDTEAM_LIST": "1"}, capture_output=True, text=True, check=True).stdout.splitlines()
ATTEMPTS = [line.split()[0] for line in LIST]
HELD = {line.split()[0] for line in LIST if line.endswith(" held")}
# Where kernel or machine has no such thing, or another reason keeps even root from it, the control may fail, too.
MAY_LACK = set("""make_secret_memfd make_vsock make_alg make_packet make_userfaultfd make_fanotify make_ring x32_abi other_abi other_descriptor_table see_modules_go module_from_held io_ports
open_device open_by_handle connect_inet connect_rows connect_stream connect_files connect_named flags_of_held attribute_of_held lease_held execute_held message_queue read_log raise_limit
keep_capabilities""".split())
# The file that prof-export is handed is its output, to be written.
OWN = {"export": HELD}
VICTIM = "import ctypes, sys, time\nb = ctypes.create_string_buffer(64)\nprint(ctypes.addressof(b), flush=True)\nwhile True: time.sleep(1)"


class Scene:
    """What the attempts are told: a victim of root's, a secret, a writable file behind a closed folder, a server for anybody."""

    def __init__(self, stack, run_dir):
        self.dir = tempfile.mkdtemp(dir="/var/tmp")  # where programs may run, and people look in
        stack.callback(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.secret, self.closed, self.open_file, self.socket = f"{self.dir}/secret", f"{self.dir}/closed", f"{self.dir}/closed/open", f"{self.dir}/socket"
        with open(self.secret, "w") as f:
            f.write("secret")
        os.chmod(self.secret, 0o600)
        os.mkdir(self.closed, 0o700)
        self.fresh()
        self.server = socket.socket(socket.AF_UNIX)
        stack.enter_context(self.server)
        self.server.bind(self.socket)
        os.chmod(self.socket, 0o777)
        self.server.listen(100)
        self.victim = stack.enter_context(subprocess.Popen(["/usr/bin/python3", "-c", VICTIM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True))
        stack.callback(self.victim.kill)
        self.address = int(self.victim.stdout.readline())
        self.file = open(f"{self.dir}/orders", "w+b")
        stack.enter_context(self.file)
        self.file.truncate(4096)
        self.page = mmap.mmap(self.file.fileno(), 4096)
        stack.callback(self.page.close)
        self.run_dir = run_dir

    def fresh(self):
        for name in os.listdir(self.closed):
            os.unlink(f"{self.closed}/{name}")
        shutil.copy(shutil.which("true"), self.open_file)
        os.chmod(self.open_file, 0o777)

    def order(self, name):
        ORDERS.pack_into(self.page, 0, ATTEMPTS.index(name), ORDERED, 0, self.victim.pid, self.victim.pid, self.address, *(s.encode() for s in (self.run_dir, self.secret, self.open_file, self.socket)))

    def state(self):
        return ORDERS.unpack_from(self.page, 0)[1:3]


def outcome(scene, process, poke, patience=20):
    """Of the attempt that was ordered: how it was refused, or None where it worked."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        state, result = scene.state()
        if state == DONE:
            return None if result >= 0 else os.strerror(-result)
        if process.poll() is not None:
            state, result = scene.state()
            if state == DONE:
                return None if result >= 0 else os.strerror(-result)
            if state == BEGUN:
                # What replaced it ended well.
                return None if process.returncode == 0 else f"killed by {signal.Signals(-process.returncode).name}" if process.returncode < 0 else f"exit {process.returncode}"
            raise AssertionError(f"the tool ended before it tried: {process.returncode}")
        poke()
        time.sleep(0.002)
    raise AssertionError("nothing was tried")


@pytest.fixture(scope="module")
def control():
    """What works for root, who has everything: the names of the attempts."""
    worked = set()
    with contextlib.ExitStack() as stack:
        scene = Scene(stack, "/nowhere")
        for name in ATTEMPTS:
            scene.fresh()
            scene.order(name)
            # Mounts, host name and queues of its own; what it leaves in /dev/shm goes with them.
            with subprocess.Popen(["unshare", "-m", "-u", "-i", "-n", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh", f"{BUILD}/tests/redteam-control", scene.open_file],
                                  env={"REDTEAM_ORDERS": f"{scene.dir}/orders"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
                assert p.stdout.readline() == b"ready\n"
                if outcome(scene, p, lambda: p.send_signal(signal.SIGUSR2)) is None:
                    worked.add(name)
                p.kill()
    return worked


def test_what_is_tried_works_for_root(control):
    lacking = [name for name in ATTEMPTS if name not in control]
    print(f"{len(control)} of {len(ATTEMPTS)}; not: {lacking}")
    assert set(lacking) <= MAY_LACK, set(lacking) - MAY_LACK


IDS = [61510, 61511, 61512, 61513, 61514]


class Run:
    """The four tools as in a deployment, one of them taken over; that one is started again when it dies, and with it what exits when it goes."""

    ORDER = ["bpf", "deltas", "symd", "export"]

    def __init__(self, stack, taken, ids):
        self.stack, self.taken, self.ids = stack, taken, ids
        self.dir = tempfile.mkdtemp(dir="/tmp")
        stack.callback(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o711)
        for i, name in (1, "bpf"), (4, "export"):
            os.mkdir(f"{self.dir}/{name}")
            os.chown(f"{self.dir}/{name}", ids[i], ids[0])
            os.chmod(f"{self.dir}/{name}", 0o710)
        self.scene = Scene(stack, self.dir)
        self.out = open(f"{self.scene.dir}/out", "w+b")
        stack.enter_context(self.out)
        self.processes = {}
        stack.callback(self.end)

    def start(self, name):
        path = f"{BUILD}/tests/redteam-{name}" if name == self.taken else f"{BUILD}/prof-{name}"
        ready, status = os.pipe()
        argv = [path, "--run-dir", self.dir, "--ids", ":".join(map(str, self.ids)), "--status-fd", str(status)]
        argv += ["-F", "49"] if name == "bpf" else ["-f", "text", "--output-fd", str(self.out.fileno())] if name == "export" else []
        env = {"REDTEAM_ORDERS": f"{self.scene.dir}/orders"} if name == self.taken else {}
        p = subprocess.Popen(argv, pass_fds=[status, self.out.fileno()], env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        os.close(status)
        self.processes[name] = p
        return ready

    def stop(self, *names):
        for name in names:
            p = self.processes.pop(name, None)
            if p:
                p.kill()
                p.communicate()

    def bring_up(self):
        """Whoever is not there any more, and whoever it talked to."""
        gone = {name for name, p in self.processes.items() if p.poll() is not None}
        self.stop(*gone)
        if gone & {"symd", "export"}:
            self.stop("symd", "export")
        # Each waits until what it dials is there.
        for name, ready in [(name, self.start(name)) for name in self.ORDER if name not in self.processes]:
            said = os.read(ready, 4096)
            os.close(ready)
            if len(said) < 8 or struct.unpack_from("=I", said, 4)[0] != 1:
                self.processes[name].kill()
                raise AssertionError(f"{name} is not ready: {self.processes.pop(name).communicate()[1]}")

    def end(self):
        self.stop(*list(self.processes))

    def attempt(self, name):
        self.bring_up()
        self.scene.fresh()
        self.scene.order(name)
        if name not in HELD:
            return outcome(self.scene, self.processes[self.taken], lambda: self.processes[self.taken].send_signal(signal.SIGUSR2))
        # A program that it was never handed, which runs until it was: with a file that anybody may write.
        program = f"{self.scene.closed}/program"
        shutil.copy(shutil.which("xz"), program)
        os.chmod(program, 0o777)
        with subprocess.Popen([program, "-T1", "-9", "-c", "/dev/zero"], stdout=subprocess.DEVNULL) as p:
            try:
                return outcome(self.scene, self.processes[self.taken], lambda: None)
            finally:
                p.kill()


@pytest.mark.parametrize("tool", ["deltas", "symd", "export"])
def test_a_tool_that_was_taken_over_can_do_nothing(tool, control):
    refused, worked = {}, []
    with contextlib.ExitStack() as stack:
        run = Run(stack, tool, [i + 10 * ["deltas", "symd", "export"].index(tool) for i in IDS])
        for name in ATTEMPTS:
            if name in OWN.get(tool, ()):
                continue
            how = run.attempt(name)
            if how is None:
                worked.append(name)
            else:
                refused.setdefault(how, []).append(name)
        run.bring_up()
        bpf = run.processes["bpf"]
        assert bpf.poll() is None
        os.kill(run.scene.victim.pid, 0)
    for how, names in refused.items():
        print(f"{how}: {len(names)}: {' '.join(names)}")
    print(f"refused {sum(map(len, refused.values()))}, of which {sum(name in control for names in refused.values() for name in names)} work for root")
    assert not worked, worked
