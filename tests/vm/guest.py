# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with one of Debian's kernels, and a root file system in memory with a few of
this machine's files. It is emulated, since test machines seldom offer more."""
import io
import os
import subprocess
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class GuestError(Exception):
    """The machine did not finish."""


def libraries(path):
    """The libraries that a program loads, as the dynamic linker lists them; none for a static
    one."""
    p = subprocess.run(["ldd", path], capture_output=True, text=True)
    words = [line.replace("=>", " ").split()
             for line in p.stdout.splitlines()] if p.returncode == 0 else []
    return {w for line in words for w in line if w.startswith("/")}


class Root:
    """The files of an initramfs, in the form that the kernel unpacks (newc)."""

    def __init__(self):
        self.entries = {}

    def folder(self, path):
        parts = path.strip("/").split("/")
        for i in range(len(parts)):
            self.entries.setdefault("/".join(parts[:i + 1]), (0o040755, b""))

    def put(self, path, data, mode=0o755):
        self.folder(os.path.dirname(path) or "/")
        self.entries[path.strip("/")] = (0o100000 | mode, data)

    def link(self, path, to):
        self.folder(os.path.dirname(path))
        self.entries[path.strip("/")] = (0o120777, to.encode())

    def copy(self, source, path=None, mode=None):
        with open(source, "rb") as f:
            self.put(path or source, f.read(), mode or os.stat(source).st_mode & 0o777)

    def program(self, source, path=None):
        """A program and its libraries."""
        self.copy(source, path)
        for lib in libraries(source):
            if lib.strip("/") not in self.entries:
                self.copy(lib)

    def write(self, path):
        with open(path, "wb") as f:
            at = 0
            for name, (mode, data) in [*((n, e) for n, e in self.entries.items() if n),
                                       ("TRAILER!!!", (0, b""))]:
                raw = name.encode() + b"\0"
                fields = (at + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
                head = b"070701" + b"".join(b"%08X" % v for v in fields) + raw
                f.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
                at += 1


# A guest writes its first line some seconds after it began; the emulator may hang before that.
SILENT = 90


def wait_for(q, timeout):
    """Returns what the emulator said; None: it has not ended."""
    try:
        return q.communicate(timeout=timeout)[1].decode(errors="replace").strip()
    except subprocess.TimeoutExpired:
        return None


def run_once(kernel, initramfs, folder, timeout, words, cpus):
    console, results = f"{folder}/console", f"{folder}/results.tar.gz"
    argv = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,-cx16", "-smp",
            str(cpus), "-m", "768", "-nodefaults", "-no-reboot", "-display", "none", "-kernel",
            kernel, "-initrd", initramfs, "-append",
            f"console=ttyS0 quiet loglevel=4 panic=-1 {words}",
            "-serial", f"file:{console}", "-serial", f"file:{results}"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as q:
        said = wait_for(q, min(SILENT, timeout))
        if said is None and os.path.getsize(console):
            said = wait_for(q, max(timeout - SILENT, 0))
        if said is None:
            q.kill()
            said = f"not at its end after {timeout:.0f} s, or silent for {SILENT} s"
    try:
        with open(results, "rb") as f:
            return tarfile.open(fileobj=io.BytesIO(f.read()))
    except (OSError, tarfile.TarError, EOFError) as e:
        with open(console, errors="replace") as f:
            raise GuestError(f"{kernel}: {said or 'it ended without results'}\n"
                             + "".join(f.readlines()[-40:])) from e


def run(kernel, initramfs, folder, words, timeout=900, cpus=2):
    """Runs the guest. Returns the files that the steps left, by name, and how many seconds it took.
    `words` are added to the kernel's command line."""
    os.makedirs(folder, exist_ok=True)
    began = time.time()
    for last in (False, False, True):
        try:
            tar = run_once(kernel, initramfs, folder, max(timeout - (time.time() - began), 1),
                           words, cpus)
            return {m.name[2:]: tar.extractfile(m).read()
                    for m in tar if m.isfile()}, time.time() - began
        except GuestError:
            # The emulator itself fails now and then, early. A failure that the guest reports is
            # never retried.
            if last or time.time() - began > timeout / 3:
                raise
